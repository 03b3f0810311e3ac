"""The app: resources behind the door. What else is served, such as MCP and the inspector, is mounted beside them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from importlib.metadata import version

from fastapi import APIRouter, FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp

from memstore.errors import MemstoreError
from memstore.memory.store import AsyncMemoryStore
from memstore.server.http import (
    backfills,
    contexts,
    conversations,
    deriving,
    events,
    facts,
    health,
    messages,
    metrics,
    recall,
    users,
)
from memstore.server.http.asked import BEARER, KNOWN_PARAMETERS
from memstore.server.http.beside import Behind, Beside, Guarded
from memstore.server.http.door import Callers, Door
from memstore.server.http.limits import BodyLimit
from memstore.server.http.paths import PAGES, ROOT, AsSent
from memstore.server.http.problems import (
    Problem,
    documented,
    on_http_error,
    on_invalid_request,
    on_memstore_error,
    on_problem,
    told_of_problems,
)
from memstore.server.http.sessions import Sessions
from memstore.server.http.streams import Bell
from memstore.server.http.told import Told
from memstore.waiting import in_thread

RESOURCES = (users, conversations, messages, contexts, recall, facts, events, deriving, backfills)
OPENAPI = "/openapi.json"
SUMMARY = "Persistent, hierarchical memory for LLM assistants: messages in, contexts within a token budget out."


def create_app(
    store: AsyncMemoryStore,
    *,
    open_without_tokens: bool = False,
    hosts: Sequence[str] = (),
    mounted: Mapping[str, Beside] | None = None,
    pages: Callable[[Behind], ASGIApp] | None = None,
) -> FastAPI:
    """Give the app over an open store, which stays its owner's to close.

    `open_without_tokens` lets this machine's own user in as long as no token was ever made; `hosts` are the only names
    by which the server may be asked. What is `mounted`, by path, is behind the same door, and for the same users.
    `pages` makes what is for people, under /ui: there a cookie does for a token, and whoever has none is asked for one.
    """
    settings = store.settings
    app = FastAPI(
        title="memstore",
        summary=SUMMARY,
        version=version("memstore"),
        openapi_url=OPENAPI,
        docs_url=None,  # its pages load scripts from elsewhere
        redoc_url=None,
        # Its spans have paths and questions, and its log what was refused: `telemetry.request` has ours.
        telemetry={"tracing": False, "logs": False},
        lifespan=partial(_lifespan, beside=tuple((mounted or {}).values())),
        exception_handlers={
            MemstoreError: on_memstore_error,
            Problem: on_problem,
            HTTPException: on_http_error,
            RequestValidationError: on_invalid_request,
        },
    )
    app.state.store, app.state.bell = store, Bell()
    app.include_router(_resources())
    app.include_router(health.router)
    app.include_router(metrics.router)
    # What must not go by the door is named in `door.OPEN_TO_ALL`.
    for path, other in (mounted or {}).items():
        app.mount(path, Guarded(other, path))
    callers = Callers(store.tokens, open_without_tokens=open_without_tokens)
    sessions = None if pages is None else Sessions()
    if pages is not None and sessions is not None:
        app.mount(PAGES, pages(Behind(store, callers, sessions, app.state.bell)))
    # The last one added is asked first.
    app.add_middleware(AsSent)
    app.add_middleware(BodyLimit, most=settings.server_body_bytes)
    rate = settings.server_requests_per_second
    app.add_middleware(
        Door, callers=callers, rate=rate, streams=settings.server_streams, hosts=hosts, sessions=sessions
    )
    app.add_middleware(Told, seconds=settings.server_timeout_seconds)
    told_of_problems(app)
    return app


def _resources() -> APIRouter:
    router = APIRouter(prefix=ROOT, dependencies=[BEARER, KNOWN_PARAMETERS], responses=documented())
    for resource in RESOURCES:
        router.include_router(resource.router)
    return router


@asynccontextmanager
async def _lifespan(app: FastAPI, *, beside: Sequence[Beside]) -> AsyncIterator[None]:
    """Wake streams when something happens; run what is mounted."""
    store: AsyncMemoryStore = app.state.store
    silence = app.state.bell.listen(store)
    try:
        async with AsyncExitStack() as running:
            for one in beside:
                await running.enter_async_context(one.running())
            yield
    finally:
        app.state.bell.stop()
        await in_thread(silence)
