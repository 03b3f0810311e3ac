"""How an event is sent to a webhook: signed as Standard Webhooks says, and again after pauses that grow."""

from __future__ import annotations

import base64
import hmac
import json
import random
import time
from collections.abc import Mapping
from http import HTTPStatus
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError
from urllib.request import HTTPRedirectHandler, ProxyHandler, Request, build_opener

from procrastinate import BaseRetryStrategy, RetryDecision
from procrastinate.jobs import Job

from memstore._compat import with_timeout
from memstore._version import __version__
from memstore.errors import MemstoreError
from memstore.providers.connections import is_local
from memstore.store.webhooks import SECRET_PREFIX, Target

TIMEOUT_SECONDS = 15.0
# Between attempts: three days and a half in all.
RETRY_SECONDS = (5, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000, 86_400)


class DeliveryFailed(MemstoreError):
    """A receiver did not answer with a status of 2xx; `is_gone` if it wants nothing more."""

    def __init__(self, why: str, status: int | None = None) -> None:
        super().__init__(why[:200])
        self.is_gone = status == HTTPStatus.GONE


class DeliveryRetry(BaseRetryStrategy):
    """Makes a delivery again after `RETRY_SECONDS`, a fifth more or less by chance."""

    def get_retry_decision(self, *, exception: BaseException, job: Job) -> RetryDecision | None:
        """Return when to make the delivery again; None after the last attempt."""
        if job.attempts >= len(RETRY_SECONDS):
            return None
        return RetryDecision(retry_in={"seconds": round(RETRY_SECONDS[job.attempts] * random.uniform(0.8, 1.2))})


class _NoRedirect(HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        return None


def send(target: Target, user: str, event: Mapping[str, Any]) -> None:
    """Send an event. Raises `DeliveryFailed` unless the receiver answers in time with a status of 2xx."""
    data = {"user_id": user, "user": target.user_name, **event["data"]}
    payload = {"type": event["type"], "timestamp": event["timestamp"], "data": data}
    body = json.dumps(payload, separators=(",", ":")).encode()
    headers = {"content-type": "application/json", "user-agent": f"memstore/{__version__}"}
    headers |= sign(target.secret, event["id"], int(time.time()), body)
    # A proxy's own 127.0.0.1 is another one.
    opener = build_opener(ProxyHandler({} if is_local(target.url) else None), _NoRedirect)
    request = Request(target.url, body, headers, method="POST")
    try:
        with_timeout(TIMEOUT_SECONDS, lambda: opener.open(request, timeout=TIMEOUT_SECONDS).close())
    except HTTPError as error:
        error.close()
        raise DeliveryFailed(f"status {error.code}", error.code) from None
    except (OSError, HTTPException, ValueError, OverflowError) as error:
        raise DeliveryFailed(f"no answer: {type(error).__name__}: {error}") from None


def sign(secret: str, id: str, seconds: int, body: bytes) -> dict[str, str]:
    """Return the headers of an event: its id, the time of this attempt, and the signature of both and the body."""
    key = base64.b64decode(secret.removeprefix(SECRET_PREFIX))
    digest = hmac.digest(key, f"{id}.{seconds}.".encode() + body, "sha256")
    signature = f"v1,{base64.b64encode(digest).decode()}"
    return {"webhook-id": id, "webhook-timestamp": str(seconds), "webhook-signature": signature}
