"""Events: what happened to a user's memory, as a list and as a stream."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import APIRouter, Depends, Header, Query
from fastapi.sse import EventSourceResponse, ServerSentEvent
from pydantic import BaseModel
from starlette.responses import Response

from memstore.events import Event, EventType
from memstore.server.http.asked import UserDep
from memstore.server.http.pages import answer
from memstore.server.http.paths import USER
from memstore.server.http.problems import documented
from memstore.server.http.streams import BellDep, HoldsDep

router = APIRouter(prefix=f"{USER}/events", tags=["events"], responses=documented(404))
MOST = 1000
LOOK = 2.0  # seconds after which a stream looks for what other processes did
Types = Annotated[list[EventType] | None, Query(alias="type")]


class Happened(BaseModel):
    """Events in order. Who reads on from the last one's cursor misses nothing."""

    items: list[Event]


@router.get("", response_model=Happened)
async def events(
    user: UserDep,
    after: Annotated[str | None, Query(description="`cursor` of the last event that was read")] = None,
    types: Types = None,
    limit: Annotated[int, Query(ge=1, le=MOST)] = 100,
) -> Response:
    """Give what happened, in order."""
    found = await user.events(after=after, types=types, limit=limit)
    return answer(Happened, Happened.model_construct(items=found))


async def _begun(
    user: UserDep,
    types: Types = None,
    after: Annotated[str | None, Query(description="as Last-Event-ID, which wins")] = None,
    last: Annotated[str | None, Header(alias="Last-Event-ID", description="the id of the last event that came")] = None,
) -> list[Event]:
    """Give the first events, or refuse a cursor before the stream begins."""
    return await user.events(after=last or after, types=types, limit=MOST)


@router.get("/stream", response_class=EventSourceResponse)
async def stream(
    user: UserDep,
    bell: BellDep,
    holds: HoldsDep,
    begun: Annotated[list[Event], Depends(_begun)],
    types: Types = None,
    after: Annotated[str | None, Query()] = None,
    last: Annotated[str | None, Header(alias="Last-Event-ID")] = None,
) -> AsyncIterator[ServerSentEvent]:
    """Give what happened and what happens from now on; the id of an event is its cursor."""
    cursor, found = last or after, begun
    while not bell.stopping and await holds():
        for one in found:
            cursor = one.cursor
            yield ServerSentEvent(id=cursor, event=one.type, data=one)
        if len(found) < MOST:
            await bell.wait(LOOK)
        found = await user.events(after=cursor, types=types, limit=MOST)
