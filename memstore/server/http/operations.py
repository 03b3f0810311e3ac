"""Operations: deriving here and now, backfills, the jobs of workers; health for process managers, and metrics.

All but one user's deriving and health are the operator's. Health needs no token and tells no names and no numbers.
"""

from __future__ import annotations

from typing import Annotated, Literal
from uuid import UUID

from fastapi import APIRouter, Depends, Query, Request
from opentelemetry import metrics
from opentelemetry.exporter.prometheus import PrometheusMetricReader
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.resources import Resource
from prometheus_client import CONTENT_TYPE_LATEST, REGISTRY, generate_latest
from pydantic import BaseModel, Field
from starlette.responses import Response

from memstore import telemetry
from memstore.errors import MemstoreError
from memstore.models import Backfill, BackfillPlan, BackfillStatus, DeriveReport, Job, JobCounts
from memstore.server.http.dependencies import (
    USER,
    StoreDep,
    StrictFloat,
    StrictInt,
    StrictModel,
    UserDep,
    json_response,
    require_operator,
)
from memstore.server.http.errors import ERROR_RESPONSES, Problem, database_unavailable
from memstore.server.http.middleware import disable_timeout

MAX_TOKENS, MAX_SECONDS = 10**12, 10**9
OPERATOR = [Depends(require_operator)]
Redo = Annotated[
    Literal["facts", "summaries", "vectors"] | None, Query(description="make anew what another recipe made")
]
Limit = Annotated[int, Query(ge=1, le=1000)]

derive = APIRouter(tags=["derive"])
backfills = APIRouter(tags=["backfills"], dependencies=OPERATOR)
health = APIRouter(tags=["health"])


@derive.post("/derive", response_model=DeriveReport, dependencies=OPERATOR)
async def derive_all(store: StoreDep, request: Request, redo: Redo = None) -> Response:
    """Derive what is pending of all users; it takes as long as it takes. The operator's."""
    disable_timeout(request.scope)
    return json_response(DeriveReport, await store.derive(redo=redo))


@derive.post(f"{USER}/derive", response_model=DeriveReport)
async def derive_user(user: UserDep, store: StoreDep, request: Request, redo: Redo = None) -> Response:
    """Derive what is pending of one user."""
    disable_timeout(request.scope)
    return json_response(DeriveReport, await store.derive(user=user.name, redo=redo))


class BackfillScope(StrictModel):
    """What of the history is meant: of one user or of all, all derivers or some."""

    user: str | None = Field(None, min_length=1)
    only: list[Literal["embed", "summaries", "facts"]] = Field([])


class BackfillCaps(StrictModel):
    """Where a backfill pauses; without a number, nowhere."""

    max_tokens: StrictInt | None = Field(None, ge=1, le=MAX_TOKENS, description="of calls of chat models")
    max_seconds: StrictFloat | None = Field(None, gt=0, le=MAX_SECONDS, description="of work")


class NewBackfill(BackfillScope, BackfillCaps):
    """A backfill that is to begin."""


@backfills.get("/backfills", response_model=list[Backfill])
async def list_backfills(store: StoreDep, limit: Limit = 20) -> Response:
    """Return the backfills, the latest first."""
    return json_response(list[Backfill], await store.backfills.all(limit=limit))


@backfills.post("/backfills", response_model=BackfillStatus, status_code=201)
async def begin_backfill(store: StoreDep, body: NewBackfill) -> Response:
    """Make what is pending a backfill; workers take it up."""
    backfill = await store.backfills.begin(**body.model_dump())
    return json_response(BackfillStatus, await store.backfills.status(backfill), status=201)


@backfills.post("/backfill-plan", response_model=BackfillPlan)
async def plan_backfill(store: StoreDep, body: BackfillScope) -> Response:
    """Return what is pending and what it would cost; nothing is begun."""
    return json_response(BackfillPlan, await store.backfills.plan(**body.model_dump()))


@backfills.get("/backfills/{backfill}", response_model=BackfillStatus)
async def get_backfill(store: StoreDep, backfill: UUID) -> Response:
    """Return how far a backfill is."""
    return json_response(BackfillStatus, await store.backfills.status(backfill))


@backfills.post("/backfills/{backfill}/pause", response_model=BackfillStatus)
async def pause_backfill(store: StoreDep, backfill: UUID) -> Response:
    """Let no step of a backfill begin; those under way are finished."""
    return json_response(BackfillStatus, await store.backfills.pause(backfill))


@backfills.post("/backfills/{backfill}/resume", response_model=BackfillStatus)
async def resume_backfill(store: StoreDep, backfill: UUID, body: BackfillCaps) -> Response:
    """Resume a paused backfill, with other caps where they are given."""
    return json_response(BackfillStatus, await store.backfills.resume(backfill, **body.model_dump()))


@backfills.post("/backfills/{backfill}/cancel", response_model=BackfillStatus)
async def cancel_backfill(store: StoreDep, backfill: UUID) -> Response:
    """End a backfill. What it has derived stays."""
    return json_response(BackfillStatus, await store.backfills.cancel(backfill))


class JobList(BaseModel):
    """Jobs that wait for workers, or were given up."""

    counts: JobCounts
    items: list[Job]


class RetryRequest(StrictModel):
    """Jobs by number; null: all that were given up."""

    ids: list[Annotated[StrictInt, Field(ge=1, le=MAX_TOKENS)]] | None = None


class RetryResult(BaseModel):
    """How many jobs wait again."""

    retried: int


@backfills.get("/jobs", response_model=JobList)
async def list_jobs(store: StoreDep, failed: bool = False, limit: Limit = 100) -> Response:
    """Return the jobs that wait or run, or those that were given up."""
    jobs = await store.jobs(failed=failed, limit=limit)
    return json_response(JobList, JobList.model_construct(counts=await store.job_counts(), items=jobs))


@backfills.post("/jobs/retry", response_model=RetryResult)
async def retry_jobs(store: StoreDep, body: RetryRequest) -> Response:
    """Retry jobs that were given up."""
    return json_response(RetryResult, RetryResult(retried=await store.retry_jobs(body.ids)))


class Health(BaseModel):
    """That it is well."""

    status: Literal["ok"] = "ok"


@health.get("/healthz")
async def healthy() -> Health:
    """Return that the process answers."""
    return Health()


@health.get("/readyz", responses=ERROR_RESPONSES)
async def ready(request: Request, store: StoreDep) -> Health:
    """Return whether requests can be served: the database answers, and this server is not about to stop."""
    if request.app.state.stopping.is_set():
        raise Problem(503, "stopping", "This server is about to stop: ask another.")
    try:
        await store.tokens.exist()
    except MemstoreError:
        raise database_unavailable() from None
    return Health()


def collect_metrics() -> None:
    """Record metrics for /metrics from now on, unless the program has a meter provider of its own."""
    if not isinstance(metrics.get_meter_provider(), MeterProvider):
        reader = PrometheusMetricReader(disable_target_info=True)
        metrics.set_meter_provider(MeterProvider([reader], resource=Resource.create({"service.name": telemetry.NAME})))


@health.get("/metrics", include_in_schema=False, dependencies=[Depends(require_operator)])
async def scrape(store: StoreDep) -> Response:
    """Return all metrics of this process, and how many jobs and workers there are."""
    counts = await store.job_counts()
    for state in ("waiting", "backfilling", "later", "running", "failed"):
        telemetry.gauge("memstore.jobs", "{job}", getattr(counts, state), {"memstore.job.state": state})
    telemetry.gauge("memstore.workers", "{worker}", counts.workers)
    return Response(generate_latest(REGISTRY), media_type=CONTENT_TYPE_LATEST)
