"""The application: middleware and routers, MCP, and the pages for people; and the program that serves it."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, nullcontext
from functools import partial
from importlib.util import find_spec
from ipaddress import ip_address
from typing import TYPE_CHECKING

import uvicorn
from fastapi import APIRouter, Depends, FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from memstore._version import __version__
from memstore.client.store import AsyncMemoryStore
from memstore.client.worker import stop_on_signals
from memstore.errors import ConfigurationError, MemstoreError
from memstore.plugins import require_extra
from memstore.server.http import conversations, dependencies, erasures, memory, middleware, operations, spaces
from memstore.server.http.errors import ERROR_RESPONSES, IssuerUnavailable, ProblemAPI, handle_error
from memstore.server.ui.app import create_ui
from memstore.settings import Settings

if TYPE_CHECKING:
    # Other extras, which may not be there.
    from memstore.server.http.oidc import OidcVerifier
    from memstore.server.mcp.server import McpApp

ANSWER_SECONDS = 60.0


def create_app(
    store: AsyncMemoryStore,
    *,
    allow_local: bool = False,
    hosts: Sequence[str] = (),
    mcp: McpApp | None = None,
    ui_writes: bool = False,
    oidc: OidcVerifier | None = None,
) -> FastAPI:
    """Return the application over an open store, which stays its owner's to close.

    `allow_local` needs no token until the first one is made; `hosts` are the names by which the server may be asked
    (none: any); `mcp` is served at /mcp/{user} to those who may see that user; with `ui_writes` pages take forms.
    `oidc` checks the tokens of an issuer.
    """
    authenticator = dependencies.Authenticator(store.tokens, allow_local=allow_local, oidc=oidc)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        async with nullcontext() if mcp is None else mcp.running():
            yield

    app = ProblemAPI(
        title="memstore",
        summary="Persistent, hierarchical memory for LLM assistants: messages in, contexts within a token budget out.",
        version=__version__,
        # Its pages load scripts from elsewhere.
        docs_url=None,
        redoc_url=None,
        # Its spans have paths and questions, and its log what was refused.
        telemetry={"tracing": False, "logs": False},
        lifespan=lifespan,
        exception_handlers=dict.fromkeys((MemstoreError, HTTPException, RequestValidationError), handle_error),
    )
    app.state.store, app.state.authenticator = store, authenticator
    api = APIRouter(
        prefix=middleware.API,
        dependencies=[Depends(dependencies.BEARER), Depends(dependencies.refuse_ignored_input)],
        responses=ERROR_RESPONSES,
    )
    for router in (
        conversations.users,
        conversations.conversations,
        conversations.messages,
        memory.contexts,
        memory.facts,
        erasures.erasures,
        operations.derive,
        spaces.spaces,
    ):
        api.include_router(router)
    app.include_router(api)
    app.include_router(operations.health)
    if mcp is not None:
        app.router.routes.append(Route(f"{middleware.MCP}/{{user:owner}}", _RequireUser(mcp)))
    if oidc is not None:
        app.router.routes.append(Route(oidc.WELL_KNOWN + "{path:path}", partial(_describe_resource, oidc)))
    app.router.routes.append(Route("/", lambda _: RedirectResponse(f"{middleware.UI}/")))
    app.mount(middleware.UI, create_ui(store, authenticator, writes=ui_writes))
    app.add_middleware(dependencies.AuthenticationMiddleware, authenticator=authenticator)
    if hosts:
        app.add_middleware(TrustedHostMiddleware, allowed_hosts=list(hosts), www_redirect=False)
    max_bodies = {f"{middleware.UI}/": 64 * 1024, "": store.settings.server_body_bytes}
    if mcp is not None:
        max_bodies = {f"{middleware.MCP}/": mcp.max_body, **max_bodies}
    # Added last: it is the outermost.
    app.add_middleware(middleware.RequestMiddleware, timeout=ANSWER_SECONDS, max_bodies=max_bodies)
    return app


class _RequireUser:
    """Passes requests on to MCP where the token opens the memory of the path's user."""

    def __init__(self, app: McpApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope)
        await dependencies.get_user(
            request.path_params["user"],
            await dependencies.get_store(request),
            await dependencies.get_principal(request),
        )
        await self._app(scope, receive, send)


class GracefulServer(uvicorn.Server):
    """Stops gracefully: no new connections, requests under way are finished."""

    def stop(self) -> None:
        self.should_exit = True

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Stop at the first signal; the next one ends the process."""
        with stop_on_signals(self.stop):
            yield


async def serve(
    url: str | None = None,
    *,
    host: str,
    port: int,
    ui_writes: bool = False,
    on_start: Callable[[str, bool], None],
) -> None:
    """Serve a store until SIGTERM or SIGINT; `on_start` is called once it listens, with its URL and
    whether it needs no token. Port 0 is any that is free.

    Raise `ConfigurationError` where others than this machine's user could ask and there is no token.
    """
    async with await AsyncMemoryStore.open(url) as store:
        # A provider that is missing fails now, not at the first request.
        await store.warm_up()
        oidc = await load_oidc(store.settings)
        named_hosts, is_local = store.settings.server_hosts, _is_loopback(host)
        # A named host has a proxy, which may let anybody in.
        allow_local = is_local and not named_hosts
        has_tokens = await store.tokens.exist()
        if not has_tokens and not allow_local and oidc is None:
            raise ConfigurationError(
                f"Everybody who reaches {', '.join((host, *named_hosts))} could read every memory: make a token first, "
                "with memstore token create --operator or --user NAME. Without --host and MEMSTORE_SERVER_HOSTS, only "
                "this machine is served."
            )
        bracketed = f"[{host}]" if ":" in host else host
        hosts = (bracketed, *middleware.LOCAL_HOSTS, *named_hosts) if is_local or named_hosts else ()
        operations.collect_metrics()
        mcp = load_mcp(store)
        app = create_app(store, allow_local=allow_local, hosts=hosts, mcp=mcp, ui_writes=ui_writes, oidc=oidc)
        with open_socket(host, port) as listener:
            on_start(f"http://{bracketed}:{listener.getsockname()[1]}", not has_tokens and oidc is None)
            await GracefulServer(uvicorn_config(app)).serve(sockets=[listener])


def uvicorn_config(app: FastAPI) -> uvicorn.Config:
    """Return uvicorn's configuration, with no log of its own: its lines have paths, and so names."""
    return uvicorn.Config(
        app,
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        # Longer than a proxy keeps its side, which would else ask on a connection that ends.
        timeout_keep_alive=75,
        timeout_graceful_shutdown=20,
    )


def load_mcp(store: AsyncMemoryStore) -> McpApp | None:
    if find_spec("mcp") is None:
        return None
    from memstore.server.mcp.server import McpApp  # noqa: PLC0415  (another extra, which may not be there)

    return McpApp(store, timeout=ANSWER_SECONDS)


async def load_oidc(settings: Settings) -> OidcVerifier | None:
    """Return what checks the issuer's tokens, or None without an issuer; `ConfigurationError` if it gives no keys."""
    if settings.server_oidc_issuer is None:
        return None
    with require_extra("oidc", "jwt", "cryptography"):
        from memstore.server.http.oidc import OidcVerifier  # noqa: PLC0415  (another extra, which may not be there)
    oidc = OidcVerifier(settings)
    try:
        await oidc.read_keys()
    except IssuerUnavailable as error:
        raise ConfigurationError(f"server_oidc_issuer: {error}. Correct it, or start it first.") from None
    return oidc


async def _describe_resource(oidc: OidcVerifier, request: Request) -> Response:
    return JSONResponse(oidc.metadata(request.path_params["path"]))


def open_socket(host: str, port: int) -> socket.socket:
    """Return a listening socket, on any free port for 0. Raise `ConfigurationError` where the port is taken."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        server = socket.create_server((host, port), family=family, backlog=2048)
    except OSError as error:
        message = f"{host} has no port {port} for it ({error.strerror}): give another --port, 0 for any."
        raise ConfigurationError(message) from None
    # Connections inherit it. asyncio sets it only for sockets that name their protocol, which this one does not;
    # without it the body of an answer waits 40 ms until the client acknowledges the head.
    server.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return server


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
