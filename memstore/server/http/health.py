"""Health, for process managers: no token, no names, no numbers. Metrics for Prometheus, which are the operator's."""

from __future__ import annotations

from typing import Literal

from fastapi import APIRouter, Depends, Request
from opentelemetry import metrics
from opentelemetry.exporter.prometheus import PrometheusMetricReader
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.resources import Resource
from prometheus_client import CONTENT_TYPE_LATEST, REGISTRY, generate_latest
from pydantic import BaseModel
from starlette.responses import Response

from memstore import telemetry
from memstore.errors import MemstoreError
from memstore.server.http.dependencies import StoreDep, require_operator
from memstore.server.http.errors import ERROR_RESPONSES, Problem, database_unavailable

router = APIRouter(tags=["health"])


class Health(BaseModel):
    """That it is well."""

    status: Literal["ok"] = "ok"


@router.get("/healthz")
async def healthy() -> Health:
    """Return that the process answers."""
    return Health()


@router.get("/readyz", responses=ERROR_RESPONSES)
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


@router.get("/metrics", include_in_schema=False, dependencies=[Depends(require_operator)])
async def scrape(store: StoreDep) -> Response:
    """Return all metrics of this process, and how many jobs and workers there are."""
    counts = await store.job_counts()
    for state in ("waiting", "backfilling", "later", "running", "failed"):
        telemetry.gauge("memstore.jobs", "{job}", getattr(counts, state), {"memstore.job.state": state})
    telemetry.gauge("memstore.workers", "{worker}", counts.workers)
    return Response(generate_latest(REGISTRY), media_type=CONTENT_TYPE_LATEST)
