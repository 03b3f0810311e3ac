"""Deriving here and now; health for process managers, and metrics.

Deriving for all users and metrics are the operator's. Health needs no token and tells no names and no numbers.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Annotated, Literal

from fastapi import APIRouter, Query, Request
from opentelemetry import metrics
from opentelemetry.exporter.prometheus import PrometheusMetricReader
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.resources import Resource
from prometheus_client import CONTENT_TYPE_LATEST, REGISTRY, generate_latest
from starlette.responses import Response

from memstore import telemetry
from memstore.errors import DatabaseError, MemstoreError
from memstore.models import DeriveReport
from memstore.server.http.dependencies import OPERATOR, USER, StoreDep, UserDep
from memstore.server.http.errors import ERROR_RESPONSES, database_unavailable
from memstore.server.http.middleware import METRICS
from memstore.server.timeout import disable_timeout

Redo = Annotated[Literal["facts", "summaries"] | None, Query(description="make anew what another recipe made")]

derive = APIRouter(tags=["derive"])
health = APIRouter(tags=["health"])


@derive.post("/derive", dependencies=OPERATOR)
async def derive_all(store: StoreDep, request: Request, redo: Redo = None) -> DeriveReport:
    """Derive pending messages of all users; there is no timeout. The operator's."""
    disable_timeout(request.scope)
    return await store.derive(redo=redo)


@derive.post(f"{USER}/derive")
async def derive_user(user: UserDep, store: StoreDep, request: Request, redo: Redo = None) -> DeriveReport:
    """Derive pending messages of one user."""
    disable_timeout(request.scope)
    return await store.derive(user=user.name, redo=redo)


@health.get("/healthz")
async def healthy() -> dict[str, str]:
    """Return that the process is alive."""
    return {"status": "ok"}


@health.get("/readyz", responses=ERROR_RESPONSES)
async def ready(store: StoreDep) -> dict[str, str]:
    """Return whether requests can be served: the database answers."""
    try:
        await store.tokens.exist()
    except MemstoreError:
        raise database_unavailable() from None
    return {"status": "ok"}


def collect_metrics() -> None:
    """Record metrics for /metrics from now on, unless the program has a meter provider of its own."""
    if not isinstance(metrics.get_meter_provider(), MeterProvider):
        reader = PrometheusMetricReader(disable_target_info=True)
        metrics.set_meter_provider(
            MeterProvider([reader], resource=Resource.create({"service.name": telemetry.SERVICE}))
        )


@health.get(METRICS, include_in_schema=False, dependencies=OPERATOR)
async def scrape(store: StoreDep) -> Response:
    """Return all metrics of this process, and how many jobs and workers there are, where this login may read that."""
    with suppress(DatabaseError):
        counts = await store.job_counts()
        for state in ("waiting", "backfilling", "later", "running", "failed"):
            telemetry.gauge("memstore.jobs", "{job}", getattr(counts, state), {"memstore.job.state": state})
        telemetry.gauge("memstore.workers", "{worker}", counts.workers)
    return Response(generate_latest(REGISTRY), media_type=CONTENT_TYPE_LATEST)
