"""The outermost layer: each request gets an id, a deadline and a line in the log; nothing it fails by goes unanswered.

The log has the method (if it is one of HTTP's), the path as the route has it, status, milliseconds and the id: no
names, no queries, no bodies and no tokens. Of an error that nobody expected it has the type and where it was raised,
for its message may quote.
"""

from __future__ import annotations

import asyncio
import logging
import time
import traceback
from http import HTTPMethod, HTTPStatus
from uuid import uuid4

from anyio import BrokenResourceError
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from memstore import telemetry
from memstore.records import FIELDS
from memstore.server.http.paths import ROOT
from memstore.server.http.problems import Problem

logger = logging.getLogger("memstore.server")
UNKNOWN = "(no route)"


class Told:
    """Answers for whatever is beneath it."""

    def __init__(self, app: ASGIApp, seconds: float) -> None:
        self._app, self._seconds = app, seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began, id, status = time.perf_counter(), uuid4().hex, 0
        method = scope["method"] if scope["method"] in HTTPMethod.__members__ else telemetry.OTHER

        async def sent(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                MutableHeaders(scope=message)["X-Request-ID"] = id
            await send(message)

        with telemetry.request(method, Headers(scope=scope)) as about:
            problem = await self._served(scope, receive, sent)
            if problem is not None and not status:
                await problem.response()(scope, receive, sent)
            route = _route(scope)
            about |= {"http.route": route, "http.response.status_code": status}
        milliseconds = 1000 * (time.perf_counter() - began)
        fields = {"method": method, "route": route, "status": status, "ms": round(milliseconds, 1), "id": id}
        logger.info("%s %s %d %.1f ms %s", method, route, status, milliseconds, id, extra={FIELDS: fields})

    async def _served(self, scope: Scope, receive: Receive, send: Send) -> Problem | None:
        """Serve a request; give the problem where that failed."""
        try:
            async with asyncio.timeout(self._seconds) as deadline:
                scope["state"] = {**scope.get("state", {}), "deadline": deadline}
                await self._app(scope, receive, send)
        except TimeoutError:
            detail = f"This took longer than {self._seconds:g} s and was given up: ask for less, or again later."
            return Problem(HTTPStatus.SERVICE_UNAVAILABLE, "too-slow", detail, headers={"Retry-After": "5"})
        except Exception as error:  # whatever it is: the client is owed an answer, and the log what happened
            if _of_leaving(error):
                return None
            where = "".join(traceback.format_tb(error.__traceback__))
            logger.error("unexpected %s\n%s", type(error).__name__, where)
            detail = "Something went wrong in the server, which its log tells by the id in X-Request-ID."
            return Problem(HTTPStatus.INTERNAL_SERVER_ERROR, "internal-error", detail)
        return None


def _of_leaving(error: Exception) -> bool:
    """Whether there is nothing wrong but that the client has left while it was being answered."""
    if isinstance(error, ExceptionGroup):
        return all(map(_of_leaving, error.exceptions))
    return isinstance(error, BrokenResourceError | ClientDisconnect)


def _route(scope: Scope) -> str:
    """Give the path as the route has it, whole, as metrics have it: the framework's leaves out what it stands under."""
    found = getattr(scope.get("route"), "path_format", UNKNOWN)
    return ROOT + found if found != UNKNOWN and scope["path"].startswith(f"{ROOT}/") else found
