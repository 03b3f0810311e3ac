"""Streamable HTTP: the user is in the URL, `/mcp/{user}`, and a session is that user's alone."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager, contextmanager

import uvicorn
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.transport_security import TransportSecuritySettings
from starlette.responses import PlainTextResponse
from starlette.types import Receive, Scope, Send

from memstore.client.store import AsyncMemoryStore
from memstore.client.worker import stopped_by_signals
from memstore.server.addresses import open_socket, parse_user_path
from memstore.server.mcp.server import USER, MemoryServer

HOST = "127.0.0.1"
PREFIX = "/mcp"
GRACE_SECONDS = 3  # for requests under way when it stops; a client may hold a stream for ever
OVERHEAD = 100_000  # bytes of a request beside its largest message


class McpApp:
    """An ASGI application for `/mcp/{user}`; `running()` must surround its use, as the lifespan of what mounts it.

    It answers every request: who may ask for which user is checked by what mounts it. With `user` there is one user, at
    `/mcp` too. `check_host` refuses requests whose Host or Origin is not this machine, as a page of the web may send
    them. A call that takes longer than `timeout` seconds is given up.
    """

    def __init__(
        self,
        store: AsyncMemoryStore,
        *,
        user: str | None = None,
        check_host: bool = True,
        timeout: float | None = None,
    ) -> None:
        self._user = user
        server = MemoryServer(store, timeout=timeout)
        server.streamable_http_app(  # makes the session manager; its routes would read names with a slash otherwise
            host=HOST,
            transport_security=None if check_host else TransportSecuritySettings(enable_dns_rebinding_protection=False),
            max_request_body_size=store.settings.max_message_bytes + OVERHEAD,
        )
        self._sessions = server.session_manager

    def running(self) -> AbstractAsyncContextManager[None]:
        """Keep sessions, and derive what they store, until the block ends."""
        return self._sessions.run()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request of HTTP."""
        if scope["type"] != "http":
            return
        user = self._user_of(scope)
        if user is None:
            await PlainTextResponse("There is no such memory: /mcp/{user}", 404)(scope, receive, send)
            return
        token = AccessToken(token="", client_id="memstore", scopes=[], subject=user)  # nosec B106  # no password
        owner = AuthenticatedUser(token)  # a session is not found under another user's URL
        await self._sessions.handle_request({**scope, USER: user, "user": owner}, receive, send)

    def _user_of(self, scope: Scope) -> str | None:
        """Return the user of a URL; a slash in a name is percent-encoded. None for what is no user's URL."""
        path: bytes = scope.get("raw_path") or scope["path"].encode()
        if path.partition(b"?")[0].decode("latin-1") in (PREFIX, f"{PREFIX}/"):
            return self._user
        found = parse_user_path(path, PREFIX)
        return found.user if found and not found.rest and self._user in (None, found.user) else None


async def serve_http(user: str | None, database: str | None, port: int) -> None:
    """Serve on this machine alone until Ctrl-C or SIGTERM: whoever has an account here can reach it."""
    with open_socket(HOST, port) as bound:
        async with await AsyncMemoryStore.open(database) as store:
            app = McpApp(store, user=user)
            url = f"http://{HOST}:{bound.getsockname()[1]}{PREFIX}{'' if user is not None else '/USER'}"
            print(f"memstore: {url}; Ctrl-C stops it", file=sys.stderr, flush=True)
            config = uvicorn.Config(
                app, lifespan="off", log_config=None, access_log=False, timeout_graceful_shutdown=GRACE_SECONDS
            )
            async with app.running():
                await _Server(config).serve(sockets=[bound])


class _Server(uvicorn.Server):
    """Returns from `serve` at a signal, so that the store is closed; uvicorn's own raises the signal once more."""

    def stop(self) -> None:
        """Finish what runs, and stop."""
        self.should_exit = True

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Stop at the first signal; the second ends the process."""
        with stopped_by_signals(self):
            yield
