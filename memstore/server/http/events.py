"""Events of a user's memory: as a list, and as server-sent events that go on until the client leaves."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Annotated

from fastapi import APIRouter, Depends, Header, Query, Request
from fastapi.sse import EventSourceResponse, ServerSentEvent
from pydantic import BaseModel, Field
from starlette.responses import Response

from memstore.events import Event, EventType
from memstore.server.http.auth import Authenticator, bearer_token
from memstore.server.http.dependencies import DEFAULT_LIMIT, MAX_LIMIT, USER, StrictModel, UserDep, json_response
from memstore.server.http.middleware import disable_timeout

router = APIRouter(prefix=f"{USER}/events", tags=["events"])
POLL_SECONDS = 1.0


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


@router.get("", response_model=EventList)
async def list_events(user: UserDep, params: Params) -> Response:
    """Return what happened, in order."""
    events = await user.events(after=params.after, types=params.type, limit=params.limit)
    return json_response(EventList, EventList.model_construct(items=events))


async def _first_events(user: UserDep, params: Params, last: LastEventId = None) -> list[Event]:
    """Return the first events of a stream, so that an invalid cursor is refused before it begins."""
    return await user.events(after=last or params.after, types=params.type, limit=params.limit)


@router.get("/stream", response_class=EventSourceResponse)
async def stream_events(
    request: Request,
    user: UserDep,
    params: Params,
    events: Annotated[list[Event], Depends(_first_events)],
    last: LastEventId = None,
) -> AsyncIterator[ServerSentEvent]:
    """Send what happened and what happens from now on; the id of an event is its cursor."""
    stopping: asyncio.Event = request.app.state.stopping
    authenticator: Authenticator = request.app.state.authenticator
    token_hash, cursor = await bearer_token(request), last or params.after
    disable_timeout(request.scope)
    while not stopping.is_set() and await authenticator.find(token_hash) is not None:
        for event in events:
            cursor = event.cursor
            yield ServerSentEvent(id=cursor, event=event.type, data=event)
        if len(events) < params.limit:
            with suppress(TimeoutError):
                await asyncio.wait_for(stopping.wait(), POLL_SECONDS)
        events = await user.events(after=cursor, types=params.type, limit=params.limit)
