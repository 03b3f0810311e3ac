"""The application: middleware and routers, MCP, and the pages for people."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, nullcontext
from http import HTTPMethod
from typing import TYPE_CHECKING, Any

from fastapi import APIRouter, Depends, FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import RedirectResponse
from starlette.routing import Route
from starlette.types import Message, Receive, Scope, Send

from memstore._version import __version__
from memstore.client.store import AsyncMemoryStore
from memstore.errors import MemstoreError
from memstore.server.http import conversations, memory, operations
from memstore.server.http.dependencies import BEARER, Authenticator, get_principal, get_store, get_user
from memstore.server.http.errors import ERROR_RESPONSES, ProblemAPI, handle_error
from memstore.server.http.middleware import (
    API,
    MCP,
    UI,
    RequestMiddleware,
    disable_timeout,
)
from memstore.server.ui.app import create_ui

if TYPE_CHECKING:  # another extra, which may not be there
    from memstore.server.mcp.server import McpApp

ROUTERS = (
    conversations.users,
    conversations.conversations,
    conversations.messages,
    memory.contexts,
    memory.facts,
    operations.derive,
)
SUMMARY = "Persistent, hierarchical memory for LLM assistants: messages in, contexts within a token budget out."


def create_app(
    store: AsyncMemoryStore,
    *,
    allow_local: bool = False,
    hosts: Sequence[str] = (),
    mcp: McpApp | None = None,
    ui_writes: bool = False,
) -> FastAPI:
    """Return the application over an open store, which stays its owner's to close.

    `allow_local` needs no token until the first one is made; `hosts` are the names by which the server may be asked
    (none: any); `mcp` is served at /mcp/{user} to those who may see that user; with `ui_writes` pages take forms.
    """
    authenticator = Authenticator(store.tokens, allow_local=allow_local)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        async with nullcontext() if mcp is None else mcp.running():
            yield

    app = ProblemAPI(
        title="memstore",
        summary=SUMMARY,
        version=__version__,
        docs_url=None,  # its pages load scripts from elsewhere
        redoc_url=None,
        # Its spans have paths and questions, and its log what was refused.
        telemetry={"tracing": False, "logs": False},
        max_body_size=store.settings.server_body_bytes,
        lifespan=lifespan,
        exception_handlers=dict.fromkeys((MemstoreError, HTTPException, RequestValidationError), handle_error),
    )
    app.state.store, app.state.authenticator = store, authenticator
    authenticated: list[Any] = [Depends(BEARER), Depends(get_principal)]
    api = APIRouter(prefix=API, dependencies=authenticated, responses=ERROR_RESPONSES)
    for router in ROUTERS:
        api.include_router(router)
    app.include_router(api)
    app.include_router(operations.health)
    if mcp is not None:
        app.router.routes.append(Route(f"{MCP}/{{user:name}}", _RequireUser(mcp)))
    app.router.routes.append(Route("/", lambda _: RedirectResponse(f"{UI}/")))
    app.mount(UI, create_ui(store, authenticator, writes=ui_writes))
    if hosts:
        app.add_middleware(TrustedHostMiddleware, allowed_hosts=list(hosts), www_redirect=False)
    app.add_middleware(RequestMiddleware, timeout=store.settings.server_timeout_seconds)  # the outermost
    return app


class _RequireUser:
    """Passes requests on to MCP where the token opens the memory of the path's user."""

    def __init__(self, app: McpApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope)
        await get_user(request.path_params["user"], await get_store(request), await get_principal(request))
        if scope["method"] == HTTPMethod.GET:
            disable_timeout(scope)  # it listens to a stream

        async def receive_in_time() -> Message:
            message = await receive()
            if message["type"] == "http.request" and not message.get("more_body"):
                disable_timeout(scope)  # all is here, and a call has a timeout of its own, which its answer explains
            return message

        await self._app(scope, receive_in_time, send)
