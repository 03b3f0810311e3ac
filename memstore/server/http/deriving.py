"""Deriving: embeddings, summaries and facts of what is pending, here and now."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Query, Request
from fastapi.sse import EventSourceResponse, ServerSentEvent
from pydantic import BaseModel
from starlette.responses import Response

from memstore.errors import MemstoreError
from memstore.memory.store import AsyncMemoryStore
from memstore.models import DeriveReport
from memstore.server.http.asked import StoreDep, UserDep, operator
from memstore.server.http.pages import answer
from memstore.server.http.paths import USER
from memstore.server.http.problems import documented, problem_of
from memstore.server.http.streams import Bell, BellDep, unhurried

TOLD_EVERY = 0.25  # seconds; a deriver tells of each batch

router = APIRouter(tags=["derive"], responses=documented(404, 409, 502))
Redo = Annotated[
    Literal["facts", "summaries", "vectors"] | None, Query(description="make anew what another recipe made")
]


class DeriveProgress(BaseModel):
    """How far a deriver is, in messages."""

    deriver: str
    done: int
    total: int


@router.post("/derive", response_model=DeriveReport, dependencies=[Depends(operator)])
async def derive(store: StoreDep, request: Request, redo: Redo = None) -> Response:
    """Derive what is pending of all users; it takes as long as it takes. The operator's."""
    unhurried(request.scope)
    return answer(DeriveReport, await store.derive(redo=redo))


@router.post("/derive/stream", response_class=EventSourceResponse, dependencies=[Depends(operator)])
async def derive_stream(store: StoreDep, bell: BellDep, redo: Redo = None) -> AsyncIterator[ServerSentEvent]:
    """The same, telling events `progress` and in the end `done`, or `failed` with what to do. The operator's."""
    async for one in _told(store, bell, None, redo):
        yield one


@router.post(f"{USER}/derive", response_model=DeriveReport)
async def derive_user(user: UserDep, store: StoreDep, request: Request, redo: Redo = None) -> Response:
    """Derive what is pending of one user."""
    unhurried(request.scope)
    return answer(DeriveReport, await store.derive(user=user.name, redo=redo))


@router.post(f"{USER}/derive/stream", response_class=EventSourceResponse)
async def derive_user_stream(
    user: UserDep, store: StoreDep, bell: BellDep, redo: Redo = None
) -> AsyncIterator[ServerSentEvent]:
    """The same, telling events `progress` and in the end `done`, or `failed` with what to do."""
    async for one in _told(store, bell, user.name, redo):
        yield one


async def _told(
    store: AsyncMemoryStore, bell: Bell, user: str | None, redo: str | None
) -> AsyncIterator[ServerSentEvent]:
    """Derive while somebody listens: who leaves, and a server that is to stop, end it between two batches."""
    latest: dict[str, DeriveProgress] = {}

    def progress(deriver: str, done: int, total: int) -> None:
        latest[deriver] = DeriveProgress(deriver=deriver, done=done, total=total)

    task = asyncio.ensure_future(store.derive(user=user, redo=redo, progress=progress))
    try:
        while not bell.stopping:
            await asyncio.wait([task], timeout=TOLD_EVERY)
            for deriver in list(latest):
                yield ServerSentEvent(event="progress", data=latest.pop(deriver))
            if task.done():
                yield ServerSentEvent(event="done", data=await task)
                return
    except MemstoreError as error:
        yield ServerSentEvent(event="failed", data=problem_of(error).body())
    finally:
        task.cancel()
