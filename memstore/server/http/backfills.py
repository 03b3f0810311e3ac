"""Backfills and the jobs of workers: the operator's."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Annotated, Literal
from uuid import UUID

from fastapi import APIRouter, Depends, Query
from fastapi.sse import EventSourceResponse, ServerSentEvent
from pydantic import BaseModel, Field
from starlette.responses import Response

from memstore.models import Backfill, BackfillPlan, BackfillStatus, Job, JobCounts
from memstore.server.http.asked import Body, Real, StoreDep, Whole, operator
from memstore.server.http.pages import answer
from memstore.server.http.problems import documented
from memstore.server.http.streams import BellDep, HoldsDep

router = APIRouter(tags=["backfills"], dependencies=[Depends(operator)], responses=documented(404, 409))
LOOK = 1.0  # seconds between two looks at how far one is
MOST_TOKENS, MOST_SECONDS = 10**12, 10**9


class Part(Body):
    """What of the history is meant: of one user or of all, all derivers or some."""

    user: str | None = Field(None, min_length=1)
    only: list[Literal["embed", "summaries", "facts"]] = Field([])


class Caps(Body):
    """Where it is paused; without a number, nowhere."""

    max_tokens: Whole | None = Field(None, ge=1, le=MOST_TOKENS, description="of calls of chat models")
    max_seconds: Real | None = Field(None, gt=0, le=MOST_SECONDS, description="of work")


class NewBackfill(Part, Caps):
    """A backfill that is to begin."""


class Jobs(BaseModel):
    """What waits for workers, or was given up."""

    counts: JobCounts
    items: list[Job]


class Retry(Body):
    """Jobs by number; null: all that were given up."""

    ids: list[Annotated[Whole, Field(ge=1, le=MOST_TOKENS)]] | None = None


class Retried(BaseModel):
    """How many jobs wait again."""

    retried: int


@router.get("/backfills", response_model=list[Backfill])
async def backfills(store: StoreDep, limit: Annotated[int, Query(ge=1, le=1000)] = 20) -> Response:
    """Give the backfills, the latest first."""
    return answer(list[Backfill], await store.backfills.all(limit=limit))


@router.post("/backfills", response_model=BackfillStatus, status_code=201)
async def begin(store: StoreDep, given: NewBackfill) -> Response:
    """Make what is pending a backfill; workers take it up."""
    made = await store.backfills.begin(**given.model_dump())
    return answer(BackfillStatus, await store.backfills.status(made), status=201)


@router.post("/backfill-plan", response_model=BackfillPlan)
async def plan(store: StoreDep, given: Part) -> Response:
    """Give what is pending and what it would cost; nothing is begun."""
    return answer(BackfillPlan, await store.backfills.plan(**given.model_dump()))


@router.get("/backfills/{backfill}", response_model=BackfillStatus)
async def status(store: StoreDep, backfill: UUID) -> Response:
    """Give how far a backfill is."""
    return answer(BackfillStatus, await store.backfills.status(backfill))


@router.post("/backfills/{backfill}/pause", response_model=BackfillStatus)
async def pause(store: StoreDep, backfill: UUID) -> Response:
    """Let no step of it begin; those under way are finished."""
    return answer(BackfillStatus, await store.backfills.pause(backfill))


@router.post("/backfills/{backfill}/resume", response_model=BackfillStatus)
async def resume(store: StoreDep, backfill: UUID, caps: Caps) -> Response:
    """Go on with a paused one, with other caps where they are given."""
    return answer(BackfillStatus, await store.backfills.resume(backfill, **caps.model_dump()))


@router.post("/backfills/{backfill}/cancel", response_model=BackfillStatus)
async def cancel(store: StoreDep, backfill: UUID) -> Response:
    """End it. What it has derived stays."""
    return answer(BackfillStatus, await store.backfills.cancel(backfill))


async def _there(store: StoreDep, backfill: UUID) -> BackfillStatus:
    """Give how far it is, or refuse one that is not there before the stream begins."""
    return await store.backfills.status(backfill)


@router.get("/backfills/{backfill}/progress", response_class=EventSourceResponse)
async def progress(
    store: StoreDep, bell: BellDep, holds: HoldsDep, backfill: UUID, found: Annotated[BackfillStatus, Depends(_there)]
) -> AsyncIterator[ServerSentEvent]:
    """Give how far it is, each time that changes, until it no longer runs: events `progress`, and in the end `done`."""
    told = None
    while not bell.stopping and await holds():
        if found.backfill.state != "running":
            yield ServerSentEvent(event="done", data=found)
            return
        if told != (found.done, found.failing):
            yield ServerSentEvent(event="progress", data=found)
        told = found.done, found.failing
        await bell.wait(LOOK)
        found = await store.backfills.status(backfill)


@router.get("/jobs", response_model=Jobs)
async def jobs(store: StoreDep, failed: bool = False, limit: Annotated[int, Query(ge=1, le=1000)] = 100) -> Response:
    """Give the jobs that wait or run, or those that were given up."""
    found = await store.jobs(failed=failed, limit=limit)
    return answer(Jobs, Jobs.model_construct(counts=await store.job_counts(), items=found))


@router.post("/jobs/retry", response_model=Retried)
async def retry(store: StoreDep, given: Retry) -> Response:
    """Have jobs that were given up tried again."""
    return answer(Retried, Retried(retried=await store.retry_jobs(given.ids)))
