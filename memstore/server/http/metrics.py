"""Metrics as Prometheus reads them, for the operator: what OpenTelemetry's instruments recorded, and the queue."""

from __future__ import annotations

import asyncio

from fastapi import APIRouter, Depends, Response
from opentelemetry import metrics as api
from opentelemetry.exporter.prometheus import PrometheusMetricReader
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.resources import Resource
from prometheus_client import CONTENT_TYPE_LATEST, REGISTRY, generate_latest

from memstore import telemetry
from memstore.errors import MemstoreError
from memstore.memory.store import AsyncMemoryStore
from memstore.server.http.asked import StoreDep, operator

SECONDS = 5.0  # for the database to answer: Prometheus waits for ten

router = APIRouter(tags=["health"], dependencies=[Depends(operator)])


def collect() -> None:
    """Have what is recorded from now on read here; where the program has a provider of its own, that has it."""
    if not isinstance(api.get_meter_provider(), MeterProvider):
        reader = PrometheusMetricReader(disable_target_info=True)
        api.set_meter_provider(MeterProvider([reader], resource=Resource.create({"service.name": telemetry.NAME})))


@router.get("/metrics", include_in_schema=False)
async def scraped(store: StoreDep) -> Response:
    """Give all metrics of this process, and how many jobs and workers there are."""
    await _look(store)
    return Response(generate_latest(REGISTRY), media_type=CONTENT_TYPE_LATEST)


async def _look(store: AsyncMemoryStore) -> None:
    """Note how many jobs there are by state, where workers have made a queue, and whether the database answers."""
    try:
        async with asyncio.timeout(SECONDS):
            found = await store.job_counts()
    except (MemstoreError, TimeoutError):  # a scrape tells of it: that is what it is for
        telemetry.gauge("memstore.database.up", "1", 0)
        return
    telemetry.gauge("memstore.database.up", "1", 1)
    for state in ("waiting", "backfilling", "later", "running", "failed"):
        telemetry.gauge("memstore.jobs", "{job}", getattr(found, state), {"memstore.job.state": state})
    telemetry.gauge("memstore.workers", "{worker}", found.workers)
