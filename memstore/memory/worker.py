"""A worker as a program: opens a store and works until it is told to stop. Async only, as the worker itself."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from memstore.ingest.worker import Worker
from memstore.memory.store import AsyncMemoryStore
from memstore.settings import Settings
from memstore.store import queue_schema
from memstore.waiting import in_thread

SIGNALS = (signal.SIGTERM, signal.SIGINT)


class WorkingStore(AsyncMemoryStore):
    """An open store that has a worker."""

    async def worker(self, concurrency: int) -> Worker:
        """Give a worker on this store, with the queue's tables made; the login must own the others."""
        await in_thread(queue_schema.prepare, self.url)
        return Worker(self._database, await self._opened.resources(), concurrency=concurrency)


async def work(
    url: str | None = None, *, settings: Settings | Mapping[str, Any] | None = None, concurrency: int = 4
) -> None:
    """Derive what is pending, as it comes, until SIGTERM or SIGINT; what runs then is finished first.

    Any number of processes on any number of machines may do so with one database. A second signal does not wait.
    """
    async with await WorkingStore.open(url, settings=settings) as store:
        worker = await store.worker(concurrency)
        with stopped_by_signals(worker):
            await worker.run()


@contextmanager
def stopped_by_signals(worker: Worker) -> Iterator[None]:
    """Have the first signal stop a worker; the next one ends the process as it would any other."""
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
