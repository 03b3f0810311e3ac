"""Events of a user's memory: as a list, and as server-sent events that go on until the client leaves."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Annotated

from fastapi import APIRouter, Depends, Header, Query, Request
from fastapi.sse import EventSourceResponse, ServerSentEvent
from pydantic import BaseModel, Field
from starlette.responses import Response

from memstore.events import Event, EventType
from memstore.memory.store import AsyncMemoryStore
from memstore.server.http.auth import Authenticator, bearer_token
from memstore.server.http.dependencies import USER, StrictModel, UserDep
from memstore.server.http.middleware import disable_timeout
from memstore.server.http.pagination import DEFAULT_LIMIT, MAX_LIMIT, json_response

router = APIRouter(prefix=f"{USER}/events", tags=["events"])
POLL_SECONDS = 2.0  # after which a stream looks for events of other processes


class Notifier:
    """Wakes streams when an event happens in this process, and ends them when the server stops."""

    def __init__(self) -> None:
        self.stopping = False
        self._waiting: set[asyncio.Future[None]] = set()

    def subscribe(self, store: AsyncMemoryStore) -> Callable[[], None]:
        """Notify of every event of a store; return what ends that."""
        loop = asyncio.get_running_loop()

        def on_event(_: Event) -> None:
            if not loop.is_closed():
                loop.call_soon_threadsafe(self.notify)

        return store.subscribe(on_event).close

    def notify(self) -> None:
        """Wake all that wait."""
        waiting, self._waiting = self._waiting, set()
        for future in waiting:
            if not future.done():
                future.set_result(None)

    def stop(self) -> None:
        """Let every stream end."""
        self.stopping = True
        self.notify()

    async def wait(self, seconds: float) -> None:
        """Wait for a notification, or for so long."""
        if self.stopping:
            return
        future = asyncio.get_running_loop().create_future()
        self._waiting.add(future)
        try:
            await asyncio.wait([future], timeout=seconds)
        finally:
            self._waiting.discard(future)


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
    notifier: Notifier = request.app.state.notifier
    authenticator: Authenticator = request.app.state.authenticator
    token_hash, cursor = await bearer_token(request), last or params.after
    disable_timeout(request.scope)
    while not notifier.stopping and await authenticator.find(token_hash) is not None:
        for event in events:
            cursor = event.cursor
            yield ServerSentEvent(id=cursor, event=event.type, data=event)
        if len(events) < params.limit:
            await notifier.wait(POLL_SECONDS)
        events = await user.events(after=cursor, types=params.type, limit=params.limit)
