"""How much and how often: the size of a body, requests a second of each caller, and streams at once."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http import HTTPStatus
from math import ceil

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from memstore.server.http.problems import SECONDS, Problem

AT_ONCE = 10.0  # seconds' worth of requests that may come at once
MOST_KEPT = 10_000  # callers whose buckets are kept; the full ones of more are forgotten


class Buckets:
    """A token bucket for each caller: `rate` requests a second, ten seconds' worth at once. 0 lets all through."""

    def __init__(self, rate: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate, self._clock = rate, clock
        self._most = max(1.0, rate * AT_ONCE)
        self._left: dict[str, tuple[float, float]] = {}  # what was left, and when

    def wait(self, caller: str) -> float:
        """Give the seconds until a caller may take one; 0 for now. None is taken."""
        left = self._left_now(caller, self._clock())
        return 0.0 if left >= 1.0 else (1.0 - left) / self._rate

    def take(self, caller: str) -> float:
        """Take one; give 0, or the seconds until there is one again."""
        now = self._clock()
        left = self._left_now(caller, now)
        if left < 1.0:
            return (1.0 - left) / self._rate
        if not self._rate:
            return 0.0
        if len(self._left) >= MOST_KEPT:
            self._left = {one: kept for one, kept in self._left.items() if self._left_now(one, now) < self._most}
        self._left[caller] = (left - 1.0, now)
        return 0.0

    def _left_now(self, caller: str, now: float) -> float:
        left, then = self._left.get(caller, (self._most, now))
        return min(self._most, left + (now - then) * self._rate)


def check_rate(buckets: Buckets, caller: str) -> None:
    """Take one of a caller's requests; raise a `Problem` where it asks too often."""
    if seconds := buckets.take(caller):
        raise too_many(seconds)


def too_many(seconds: float) -> Problem:
    """Give what is told to whoever asks too often, and may again in so many seconds."""
    wait = str(ceil(seconds))
    detail = f"Too many requests: ask again in {wait} s. server_requests_per_second is the limit."
    return Problem(HTTPStatus.TOO_MANY_REQUESTS, "too-many-requests", detail, headers={"Retry-After": wait})


class Streams:
    """How many streams each caller has open; at most so many, 0 for any number."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._open: Counter[str] = Counter()

    @contextmanager
    def one(self, caller: str) -> Iterator[None]:
        """Count one more of a caller while the block lasts; raises a `Problem` where there are too many."""
        if self._most and self._open[caller] >= self._most:
            detail = f"You have {self._most:,} streams open: close one first. server_streams is the limit."
            raise Problem(HTTPStatus.TOO_MANY_REQUESTS, "too-many-streams", detail, headers={"Retry-After": SECONDS})
        self._open[caller] += 1
        try:
            yield
        finally:
            self._open[caller] -= 1
            if not self._open[caller]:
                del self._open[caller]


class BodyLimit:
    """Refuses bodies of more than so many bytes: by what they say of themselves, else as they come."""

    def __init__(self, app: ASGIApp, most: int) -> None:
        self._app, self._most = app, most

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through, or answer 413."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        said = next((value for name, value in scope["headers"] if name == b"content-length"), b"0")
        if not said.isdigit() or int(said) > self._most:
            await self._problem().response()(scope, receive, send)
            return
        read = 0

        async def counted() -> Message:
            nonlocal read
            message = await receive()
            read += len(message.get("body", b""))
            if read > self._most:
                raise self._problem()
            return message

        await self._app(scope, counted, send)

    def _problem(self) -> Problem:
        detail = f"The body has more than {self._most:,} bytes: send it in parts, or raise server_body_bytes."
        return Problem(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "body-too-large", detail, headers={"Connection": "close"})
