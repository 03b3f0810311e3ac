"""Deriving here and now; events, as a list and as a stream that goes on; health for process managers, and metrics.

Deriving for all users and metrics are the operator's. Health needs no token and tells no names and no numbers.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Header, Query, Request
from fastapi.sse import EventSourceResponse, ServerSentEvent
from opentelemetry import metrics
from opentelemetry.exporter.prometheus import PrometheusMetricReader
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.resources import Resource
from prometheus_client import CONTENT_TYPE_LATEST, REGISTRY, generate_latest
from pydantic import BaseModel, Field
from starlette.responses import Response

from memstore import telemetry
from memstore.errors import MemstoreError
from memstore.events import Event, EventType
from memstore.models import DeriveReport
from memstore.server.http.dependencies import (
    DEFAULT_LIMIT,
    MAX_LIMIT,
    OPERATOR,
    USER,
    Authenticator,
    StoreDep,
    StrictModel,
    UserDep,
    bearer_token,
)
from memstore.server.http.errors import ERROR_RESPONSES, Problem, database_unavailable
from memstore.server.http.middleware import disable_timeout

POLL_SECONDS = 1.0
Redo = Annotated[
    Literal["facts", "summaries", "vectors"] | None, Query(description="make anew what another recipe made")
]

derive = APIRouter(tags=["derive"])
events = APIRouter(prefix=f"{USER}/events", tags=["events"])
health = APIRouter(tags=["health"])


@derive.post("/derive", dependencies=OPERATOR)
async def derive_all(store: StoreDep, request: Request, redo: Redo = None) -> DeriveReport:
    """Derive what is pending of all users; it takes as long as it takes. The operator's."""
    disable_timeout(request.scope)
    return await store.derive(redo=redo)


@derive.post(f"{USER}/derive")
async def derive_user(user: UserDep, store: StoreDep, request: Request, redo: Redo = None) -> DeriveReport:
    """Derive what is pending of one user."""
    disable_timeout(request.scope)
    return await store.derive(user=user.name, redo=redo)


class EventParams(StrictModel):
    """Which events are asked for."""

    after: str | None = Field(None, description="`cursor` of the last event that was read; Last-Event-ID wins")
    type: list[EventType] | None = None
    limit: int = Field(DEFAULT_LIMIT, ge=1, le=MAX_LIMIT)


class EventList(BaseModel):
    """Events in order. Who reads on from the last one's cursor misses nothing."""

    items: list[Event]


Params = Annotated[EventParams, Query()]
LastEventId = Annotated[str | None, Header(alias="Last-Event-ID", description="the id of the last event that came")]


@events.get("")
async def list_events(user: UserDep, params: Params) -> EventList:
    """Return what happened, in order."""
    return EventList.model_construct(items=await _first_events(user, params))


async def _first_events(user: UserDep, params: Params, last: LastEventId = None) -> list[Event]:
    """Return events; those of a stream before it begins, so that an invalid cursor is refused."""
    return await user.events(after=last or params.after, types=params.type, limit=params.limit)


@events.get("/stream", response_class=EventSourceResponse)
async def stream_events(
    request: Request,
    user: UserDep,
    params: Params,
    items: Annotated[list[Event], Depends(_first_events)],
    last: LastEventId = None,
) -> AsyncIterator[ServerSentEvent]:
    """Send what happened and what happens from now on; the id of an event is its cursor."""
    stopping: asyncio.Event = request.app.state.stopping
    authenticator: Authenticator = request.app.state.authenticator
    token_hash, cursor = await bearer_token(request), last or params.after
    disable_timeout(request.scope)
    while not stopping.is_set() and await authenticator.find(token_hash) is not None:
        for event in items:
            cursor = event.cursor
            yield ServerSentEvent(id=cursor, event=event.type, data=event)
        if len(items) < params.limit:
            with suppress(TimeoutError):
                await asyncio.wait_for(stopping.wait(), POLL_SECONDS)
        items = await user.events(after=cursor, types=params.type, limit=params.limit)


@health.get("/healthz")
async def healthy() -> dict[str, str]:
    """Return that the process answers."""
    return {"status": "ok"}


@health.get("/readyz", responses=ERROR_RESPONSES)
async def ready(request: Request, store: StoreDep) -> dict[str, str]:
    """Return whether requests can be served: the database answers, and this server is not about to stop."""
    if request.app.state.stopping.is_set():
        raise Problem(503, "stopping", "This server is about to stop: ask another.")
    try:
        await store.tokens.exist()
    except MemstoreError:
        raise database_unavailable() from None
    return {"status": "ok"}


def collect_metrics() -> None:
    """Record metrics for /metrics from now on, unless the program has a meter provider of its own."""
    if not isinstance(metrics.get_meter_provider(), MeterProvider):
        reader = PrometheusMetricReader(disable_target_info=True)
        metrics.set_meter_provider(MeterProvider([reader], resource=Resource.create({"service.name": telemetry.NAME})))


@health.get("/metrics", include_in_schema=False, dependencies=OPERATOR)
async def scrape(store: StoreDep) -> Response:
    """Return all metrics of this process, and how many jobs and workers there are."""
    counts = await store.job_counts()
    for state in ("waiting", "backfilling", "later", "running", "failed"):
        telemetry.gauge("memstore.jobs", "{job}", getattr(counts, state), {"memstore.job.state": state})
    telemetry.gauge("memstore.workers", "{worker}", counts.workers)
    return Response(generate_latest(REGISTRY), media_type=CONTENT_TYPE_LATEST)
