"""The worker as a program: it opens a store and works until it is stopped. Async only, as the worker itself."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from uuid import UUID

from memstore._compat import to_thread
from memstore.client.store import AsyncMemoryStore
from memstore.derive.pipeline import OnCall
from memstore.derive.worker import Worker, enqueue_pending
from memstore.models import BackfillStatus
from memstore.settings import Settings
from memstore.store import queue

ShowStatus = Callable[[BackfillStatus], None]
SIGNALS = (signal.SIGTERM, signal.SIGINT)


class WorkingStore(AsyncMemoryStore):
    """An open store that can run workers."""

    async def worker(self, concurrency: int, *, only: UUID | None = None, on_call: OnCall = lambda _: None) -> Worker:
        """Return a worker on this store, after making the queue's tables; the login must own the others."""
        await to_thread(queue.prepare_queue, self.url)
        dependencies = await self._runtime.load_dependencies()
        return Worker(self._database, dependencies, concurrency=concurrency, only=only, on_call=on_call)

    async def work_until_done(
        self, backfill: UUID, show: ShowStatus, *, concurrency: int = 4, on_call: OnCall = lambda _: None
    ) -> BackfillStatus:
        """Work until a backfill is done or paused, or a signal comes; call `show` with its progress twice a second.

        `on_call` gets a `CallProgress` as each call of a chat model begins here and as it ends, in another thread.
        """
        worker = await self.worker(concurrency, only=backfill, on_call=on_call)
        with stop_on_signals(worker.stop):
            working = asyncio.create_task(worker.run())
            try:
                while (status := await self.backfills.status(backfill)).backfill.state == "running":
                    show(status)
                    await enqueue_pending(self._database, only=backfill)
                    if (await asyncio.wait([working], timeout=0.5))[0]:
                        break
            finally:
                worker.stop()
                await working
        return await self.backfills.status(backfill)


async def work(
    url: str | None = None,
    *,
    settings: Settings | Mapping[str, Any] | None = None,
    concurrency: int = 4,
    on_call: OnCall = lambda _: None,
) -> dict[str, int]:
    """Derive new messages as they come, until SIGTERM or SIGINT; running jobs are finished first.

    Any number of processes on any number of machines may share one database. A second signal does not wait. Returns how
    many messages were derived, and the rows made of them. `on_call` is called as in `work_until_done`.
    """
    async with await WorkingStore.open(url, settings=settings) as store:
        worker = await store.worker(concurrency, on_call=on_call)
        with stop_on_signals(worker.stop):
            await worker.run()
        return dict(worker.made)


@contextmanager
def stop_on_signals(stop: Callable[[], None]) -> Iterator[None]:
    """Stop a worker or a server at the first signal; the next one ends the process as it would any other."""
    loop = asyncio.get_running_loop()

    def stop_once() -> None:
        stop()
        leave()

    def leave() -> None:
        for number in SIGNALS:
            loop.remove_signal_handler(number)

    for number in SIGNALS:
        loop.add_signal_handler(number, stop_once)
    try:
        yield
    finally:
        leave()
