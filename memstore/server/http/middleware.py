"""Middleware: the request log, the deadline, the largest body, the cross-origin check, and paths as they were sent.

The log has the method, the route, status, milliseconds and the request's id: no names, queries, bodies or tokens. Of
an unexpected error it has the type and where it was raised, for its message may quote.
"""

from __future__ import annotations

import asyncio
import logging
import time
import traceback
from collections.abc import Mapping
from http import HTTPMethod, HTTPStatus
from uuid import uuid4

from anyio import BrokenResourceError
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from memstore.server.http.errors import Problem, body_too_large
from memstore.telemetry import EXTRA_FIELDS

logger = logging.getLogger("memstore.server")
API, MCP, UI, METRICS = "/v1", "/mcp", "/ui", "/metrics"
LOCAL_HOSTS = ("127.0.0.1", "localhost", "[::1]")


class RequestMiddleware:
    """Adds an id, a deadline and a line in the log to each request, and answers every failure.

    `max_bodies` are the bytes that a body may have, by how the path begins. Refuses what a page of another origin sends
    to change something (CSRF): browsers say where a request comes from, programs that are no browsers do not. Has paths
    with names in them matched undecoded, so that a name may hold a slash: `a%2Fb` is the user a/b, and
    `dependencies.Name` decodes it.
    """

    def __init__(self, app: ASGIApp, timeout: float, max_bodies: Mapping[str, int]) -> None:
        self._app, self._timeout, self._max_bodies = app, timeout, max_bodies

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        start, request_id, status = time.perf_counter(), uuid4().hex, 0
        method = scope["method"] if scope["method"] in HTTPMethod.__members__ else "_OTHER"
        raw_path = (scope.get("raw_path") or b"").partition(b"?")[0].decode("latin-1")
        if raw_path.startswith((f"{API}/", f"{MCP}/", f"{UI}/")):
            scope["path"] = raw_path

        async def send_with_id(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                MutableHeaders(scope=message)["X-Request-ID"] = request_id
            await send(message)

        problem = await self._serve(scope, receive, send_with_id)
        if problem is not None and not status:
            await problem.response()(scope, receive, send_with_id)
        route = _route(scope)
        ms = 1000 * (time.perf_counter() - start)
        fields = {"method": method, "route": route, "status": status, "ms": round(ms, 1), "id": request_id}
        logger.info("%s %s %d %.1f ms %s", method, route, status, ms, request_id, extra={EXTRA_FIELDS: fields})

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> Problem | None:
        headers = Headers(scope=scope)
        max_body = next(size for prefix, size in self._max_bodies.items() if scope["path"].startswith(prefix))
        if scope["method"] not in ("GET", "HEAD", "OPTIONS") and _is_cross_origin(headers):
            return Problem(
                HTTPStatus.FORBIDDEN, "unknown-origin", "Pages of other origins may not change anything here."
            )
        try:
            async with asyncio.timeout(self._timeout) as deadline:
                scope["state"] = {**scope.get("state", {}), "deadline": deadline}
                await self._app(scope, _limit_body(headers, receive, max_body), send)
        except TimeoutError:
            detail = f"This took longer than {self._timeout:g} s and was given up: ask for less, or again later."
            return Problem(HTTPStatus.SERVICE_UNAVAILABLE, "too-slow", detail)
        except Exception as error:
            # Whatever it is: the client is owed an answer, and the log what happened.
            if _is_disconnect(error):
                return None
            where = "".join(traceback.format_tb(error.__traceback__))
            logger.error("unexpected %s\n%s", type(error).__name__, where)
            detail = "Something went wrong in the server, which its log tells by the id in X-Request-ID."
            return Problem(HTTPStatus.INTERNAL_SERVER_ERROR, "internal-error", detail)
        return None


def _limit_body(headers: Headers, receive: Receive, max_body: int) -> Receive:
    """Return a `receive` that raises the 413 for a body that is too large, before a byte is read if it says its length.

    `RequestBodyLimitMiddleware` of Starlette answers such a body in plain text, without saying what to do.
    """
    length = headers.get("content-length", "")
    stated, received = int(length) if length.isdecimal() else 0, 0

    async def receive_within_limit() -> Message:
        nonlocal received
        message = await receive() if stated <= max_body else {}
        received += len(message.get("body", b""))
        if max(stated, received) > max_body:
            raise body_too_large()
        return message

    return receive_within_limit


def _is_disconnect(error: Exception) -> bool:
    if isinstance(error, ExceptionGroup):
        return all(map(_is_disconnect, error.exceptions))
    return isinstance(error, BrokenResourceError | ClientDisconnect)


def _route(scope: Scope) -> str:
    """Return the path template of the route, with the prefix under which its router is included or mounted."""
    route: str | None = getattr(scope.get("route"), "path_format", None)
    if route is None:
        return "(no route)"
    prefix = next((prefix for prefix in (API, UI) if scope["path"].startswith(f"{prefix}/")), "")
    return route if route.startswith(prefix) else prefix + route


def _is_cross_origin(headers: Headers) -> bool:
    origin, host = headers.get("origin"), headers.get("host", "")
    if origin is not None:
        return origin.lower() not in (f"http://{host}".lower(), f"https://{host}".lower())
    return headers.get("sec-fetch-site", "none") not in ("same-origin", "none")
