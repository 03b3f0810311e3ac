"""Parts of pages that are sent again when they change, as a stream; pages have a link to look again beside."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, TypeAlias

from starlette.responses import Response, StreamingResponse

from memstore.server.http.streams import streaming
from memstore.server.inspector.drawing import drawn
from memstore.server.inspector.visit import Visit

SECONDS_SILENT = 15.0  # after which a comment keeps the connection
SECONDS_BETWEEN = 0.5  # two looks at least: any message of anybody rings the bell, and a look asks the database
EVERY = 10  # seconds between two loads of a page for whoever asks for that
Looked: TypeAlias = Callable[[Visit], Awaitable[dict[str, Any]]]


def again(visit: Visit, response: Response) -> Response:
    """Give a page that a browser loads again every ten seconds where its address asks for that."""
    if visit.asked("again") is not None:
        response.headers["Refresh"] = str(EVERY)
    return response


def stream(visit: Visit, template: str, look: Looked, *, seconds: float) -> Response:
    """Give what a template makes of what is looked at, now and each time that it changes: events `changed` of HTML.

    It is looked at when something happens in this process, twice a second at most, and so many seconds after the last
    time.
    """
    streaming(visit.request.scope)
    return StreamingResponse(_changes(visit, template, look, seconds), media_type="text/event-stream")


async def _changes(visit: Visit, template: str, look: Looked, seconds: float) -> AsyncIterator[str]:
    bell, holds = visit.behind.bell, visit.request.state.holds
    told, said = None, 0.0
    while not bell.stopping and await holds():
        # A browser that leaves cancels this: what is asked of the database is finished all the same.
        shown = await asyncio.shield(asyncio.ensure_future(look(visit)))
        found = drawn(template, shown | {"writes": visit.writes, "visit": visit})
        now = time.monotonic()
        if found != told:
            told, said = found, now
            yield "event: changed\n" + "".join(f"data: {line}\n" for line in found.splitlines()) + "\n"
        elif now - said >= SECONDS_SILENT:
            said = now
            yield ": nothing new\n\n"
        await asyncio.gather(bell.wait(seconds), asyncio.sleep(SECONDS_BETWEEN))
