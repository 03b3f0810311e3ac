"""What is served beside REST: MCP at `/mcp/{user}`, and pages for people; behind the same door, for the same users."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from http import HTTPMethod, HTTPStatus
from typing import Protocol

from starlette.types import Receive, Scope, Send

from memstore import ids
from memstore.memory.store import AsyncMemoryStore
from memstore.server.addressed import addressed
from memstore.server.http.door import Callers
from memstore.server.http.problems import Problem
from memstore.server.http.sessions import Sessions
from memstore.server.http.streams import Bell, streaming


class Beside(Protocol):
    """An application of paths `/prefix/{user}/…`; `running()` surrounds its use."""

    def running(self) -> AbstractAsyncContextManager[None]:
        """Keep what it works with until the block ends."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""


@dataclass(frozen=True, slots=True)
class Behind:
    """What pages for people work with: the store, who may look, their cookies, and what wakes their streams."""

    store: AsyncMemoryStore
    callers: Callers
    sessions: Sessions
    bell: Bell


class Guarded:
    """Lets a caller through to users whose memory is open to it; to whom has another user's token there is nothing.

    What only listens is a stream of the caller's; all else has the deadline of any request.
    """

    def __init__(self, app: Beside, prefix: str) -> None:
        self._app, self._prefix = app, prefix

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or answer 404, or 429 to whoever has too many streams open."""
        asked = addressed(scope["raw_path"], self._prefix)
        try:
            if asked is None or not scope["state"]["caller"].may_see(ids.user_id(asked.user)):
                told = "There is no such user, or it is not this token's."
                raise Problem(HTTPStatus.NOT_FOUND, "not-found", told)
            if scope["method"] == HTTPMethod.GET:
                streaming(scope)
        except Problem as problem:
            await problem.response()(scope, receive, send)
            return
        await self._app(scope, receive, send)
