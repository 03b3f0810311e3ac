"""Streamable HTTP: the user is in the URL, `/mcp/{user}`, and a session is that user's alone."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import uvicorn
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.types import Receive, Scope, Send

from memstore.memory.store import AsyncMemoryStore
from memstore.server.addressed import addressed
from memstore.server.listening import listening
from memstore.server.mcp.asked import Asked, Call
from memstore.server.mcp.deriving import Deriving
from memstore.server.mcp.protocol import mcp_server

HERE = "127.0.0.1"
PREFIX = "/mcp"
USER = "memstore.user"  # of the ASGI scope
GRACE = 3  # seconds for what runs when it is stopped; a client may hold a stream for ever
SIGNALS = (signal.SIGINT, signal.SIGTERM)
BESIDE = 100_000  # bytes of a request beside its largest message
# A page of the web that has its own name resolve to this machine sends that name as Host, and its own Origin.
ONLY_HERE = TransportSecuritySettings(
    allowed_hosts=[f"{HERE}:*", "localhost:*", "[::1]:*"],
    allowed_origins=[f"http://{HERE}:*", "http://localhost:*", "http://[::1]:*"],
)


class Mounted:
    """An ASGI application for `/mcp/{user}`; `running()` must surround its use, as the lifespan of what mounts it.

    Who may ask for which user is for whoever mounts it to say: it answers every request that it is given. With `only`
    there is one user, at `/mcp` too. `security` bounds the Host and Origin headers, by default to this machine's own
    names; None does not check them. A call that takes longer than so many `seconds` is given up.
    """

    def __init__(
        self,
        store: AsyncMemoryStore,
        *,
        only: str | None = None,
        security: TransportSecuritySettings | None = ONLY_HERE,
        seconds: float | None = None,
    ) -> None:
        self._store = store
        self._only = only
        self._deriving = Deriving(store)
        self._sessions = StreamableHTTPSessionManager(
            mcp_server(self._whose, seconds),
            security_settings=security,
            max_request_body_size=store.settings.max_message_bytes + BESIDE,
        )

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Keep sessions, and derive what they bring, until the block ends."""
        try:
            async with self._sessions.run():
                yield
        finally:
            await self._deriving.close()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request of HTTP."""
        if scope["type"] != "http":
            return
        user = self._user_of(scope)
        if user is None:
            await PlainTextResponse("There is no such memory: /mcp/{user}", 404)(scope, receive, send)
            return
        nobody = AccessToken(token="", client_id="memstore", scopes=[], subject=user)  # nosec B106  # no password
        owner = AuthenticatedUser(nobody)
        # A session belongs to whom it was opened for: under another user's URL it is not found.
        await self._sessions.handle_request({**scope, USER: user, "user": owner}, receive, send)

    def _user_of(self, scope: Scope) -> str | None:
        """Give the user that the URL names; a slash in a name is percent-encoded. None for what is no user's URL."""
        sent: bytes = scope.get("raw_path") or scope["path"].encode()
        if sent.partition(b"?")[0].decode("latin-1") in (PREFIX, f"{PREFIX}/"):
            return self._only
        asked = addressed(sent, PREFIX)
        return asked.user if asked and not asked.rest and self._only in (None, asked.user) else None

    async def _whose(self, call: Call) -> Asked:
        assert isinstance(call.request, Request)
        user = str(call.request.scope[USER])
        await self._deriving.met(user)
        return Asked(self._store, self._store.user(user), self._deriving)


def mounted(store: AsyncMemoryStore, **options: Any) -> Mounted:
    """Give the application that answers `/mcp/{user}` from an open store; see `Mounted`."""
    return Mounted(store, **options)


def run(user: str | None, database: str | None, port: int) -> None:
    """Serve on this machine alone until Ctrl-C or SIGTERM: whoever has an account here can reach it."""
    asyncio.run(_serve(user, database, port))


async def _serve(user: str | None, database: str | None, port: int) -> None:
    with listening(HERE, port) as bound:
        async with await AsyncMemoryStore.open(database) as store:
            app = Mounted(store, only=user)
            place = f"http://{HERE}:{bound.getsockname()[1]}{PREFIX}{'' if user is not None else '/USER'}"
            print(f"memstore: {place}; Ctrl-C stops it", file=sys.stderr, flush=True)
            async with app.running():
                await _Server(app).serve(sockets=[bound])


class _Server(uvicorn.Server):
    """Stops at a signal, and then ends as any other function does: uvicorn's own raises the signal once more."""

    def __init__(self, app: Mounted) -> None:
        super().__init__(
            uvicorn.Config(app, lifespan="off", log_config=None, access_log=False, timeout_graceful_shutdown=GRACE)
        )

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Have signals stop it: what runs then is finished first, a second one does not wait."""
        loop = asyncio.get_running_loop()
        for number in SIGNALS:
            loop.add_signal_handler(number, self.handle_exit, number, None)
        try:
            yield
        finally:
            for number in SIGNALS:
                loop.remove_signal_handler(number)
