"""A worker as a program: opens a store and works until it is told to stop. Async only, as the worker itself."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Protocol
from uuid import UUID

from memstore import ids
from memstore.ingest.backfill.calibration import forecast
from memstore.ingest.sweep import sweep
from memstore.ingest.worker import Worker
from memstore.memory.store import AsyncMemoryStore
from memstore.models import BackfillPlan, BackfillStatus
from memstore.settings import Settings
from memstore.store import queue_schema
from memstore.waiting import in_thread

Told = Callable[[BackfillStatus], None]
LOOK = 0.5  # seconds between two looks at a backfill
SIGNALS = (signal.SIGTERM, signal.SIGINT)


class Stoppable(Protocol):
    """What can be told to stop, and finishes what it is at."""

    def stop(self) -> None:
        """Begin no more."""


class WorkingStore(AsyncMemoryStore):
    """An open store that has a worker."""

    async def worker(self, concurrency: int, *, only: UUID | None = None) -> Worker:
        """Give a worker on this store, with the queue's tables made; the login must own the others."""
        await in_thread(queue_schema.prepare, self.url)
        return Worker(self._database, await self._opened.resources(), concurrency=concurrency, only=only)

    async def calibrated(self, plan: BackfillPlan, *, user: str | None = None, concurrency: int = 4) -> BackfillPlan:
        """Give the plan with how long it takes here, measured for some seconds on what is pending."""
        sizes = {name: one.tokens + one.messages for name, one in plan.derivers.items()}
        if not any(sizes.values()):
            return replace(plan, seconds=0.0, seconds_between=(0.0, 0.0))
        found = await forecast(
            self._database,
            await self._opened.resources(),
            sizes,
            concurrency=concurrency,
            user=None if user is None else ids.user_id(user),
        )
        return replace(plan, seconds=found.seconds, seconds_between=(found.least, found.most))

    async def work_until_done(self, backfill: UUID, told: Told, *, concurrency: int = 4) -> BackfillStatus:
        """Work until a backfill is done or paused, or a signal comes; say how far it is about once a second."""
        worker = await self.worker(concurrency, only=backfill)
        with stopped_by_signals(worker):
            working = asyncio.create_task(worker.run())
            try:
                while (found := await self.backfills.status(backfill)).backfill.state == "running":
                    told(found)
                    await sweep(self._database, only=backfill)
                    if (await asyncio.wait([working], timeout=LOOK))[0]:
                        break
            finally:
                worker.stop()
                await working
        return await self.backfills.status(backfill)


async def work(
    url: str | None = None, *, settings: Settings | Mapping[str, Any] | None = None, concurrency: int = 4
) -> dict[str, int]:
    """Derive what is pending, as it comes, until SIGTERM or SIGINT; what runs then is finished first.

    Any number of processes on any number of machines may do so with one database. A second signal does not wait. Gives
    the messages that went through and what was made of them.
    """
    async with await WorkingStore.open(url, settings=settings) as store:
        worker = await store.worker(concurrency)
        with stopped_by_signals(worker):
            await worker.run()
        return worker.made


@contextmanager
def stopped_by_signals(worker: Stoppable) -> Iterator[None]:
    """Have the first signal stop a worker or a server; the next one ends the process as it would any other."""
    loop = asyncio.get_running_loop()

    def stop() -> None:
        worker.stop()
        leave()

    def leave() -> None:
        for number in SIGNALS:
            loop.remove_signal_handler(number)

    for number in SIGNALS:
        loop.add_signal_handler(number, stop)
    try:
        yield
    finally:
        leave()
