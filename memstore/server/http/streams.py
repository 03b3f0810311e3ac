"""Streams of events: what keeps them going until the client leaves or the server is to stop."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Annotated

from fastapi import Depends, Request
from starlette.types import Scope

from memstore.events import Event
from memstore.memory.store import AsyncMemoryStore


class Bell:
    """Rings when something happens in this process, for all streams; and once for ever when the server is to stop.

    What happens in other processes nobody rings for: who waits looks again after a while.
    """

    def __init__(self) -> None:
        self.stopping = False
        self._waiting: set[asyncio.Future[None]] = set()

    def listen(self, store: AsyncMemoryStore) -> Callable[[], None]:
        """Ring with every event of a store that happens in this process; give what ends that."""
        loop = asyncio.get_running_loop()

        def heard(_: Event) -> None:
            if not loop.is_closed():
                loop.call_soon_threadsafe(self.ring)

        return store.subscribe(heard).close

    def ring(self) -> None:
        """Wake all who wait."""
        waiting, self._waiting = self._waiting, set()
        for one in waiting:
            if not one.done():
                one.set_result(None)

    def stop(self) -> None:
        """Let every stream end."""
        self.stopping = True
        self.ring()

    async def wait(self, seconds: float) -> None:
        """Wait until it rings, or for so long."""
        if self.stopping:
            return
        rung = asyncio.get_running_loop().create_future()
        self._waiting.add(rung)
        try:
            await asyncio.wait([rung], timeout=seconds)
        finally:
            self._waiting.discard(rung)


async def bell_of(request: Request) -> Bell:
    """Give the server's bell; a stream may go on for longer than an answer."""
    bell: Bell = request.app.state.bell
    streaming(request.scope)
    return bell


def streaming(scope: Scope) -> None:
    """Let this answer go on, as one of the streams that its caller may have open; raises a `Problem` for too many."""
    scope["state"]["count_stream"]()
    unhurried(scope)


def unhurried(scope: Scope) -> None:
    """Let this answer take as long as it takes."""
    scope["state"]["deadline"].reschedule(None)


async def holds_of(request: Request) -> Callable[[], Awaitable[bool]]:
    """Give what tells whether the caller's token still holds."""
    holds: Callable[[], Awaitable[bool]] = request.scope["state"]["holds"]
    return holds


HoldsDep = Annotated[Callable[[], Awaitable[bool]], Depends(holds_of)]
BellDep = Annotated[Bell, Depends(bell_of)]
