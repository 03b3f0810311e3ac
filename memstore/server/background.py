"""Deriving in the background for users whose messages were stored here."""

from __future__ import annotations

import asyncio
import logging
import time

from memstore.client.store import AsyncMemoryStore

logger = logging.getLogger("memstore")


class BackgroundDeriver:
    """Derives for users whose messages were stored here, one user at a time, so that these become searchable soon.

    Until it is closed; the next process does what is left. Workers and other processes may derive the same user at
    once: a step that one of them has taken is not taken again.
    """

    def __init__(self, store: AsyncMemoryStore) -> None:
        self._store = store
        self._due: dict[str, float] = {}
        self._current: str | None = None
        self._task: asyncio.Task[None] | None = None
        self._seen: set[str] = set()

    def notify_write(self, user: str) -> None:
        # A conversation that arrives in several calls is not derived between them.
        self._due[user] = time.monotonic() + 1.0
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run(), name="memstore-derive")

    def is_pending(self, user: str) -> bool:
        return user in self._due or self._current == user

    async def first_seen(self, user: str) -> None:
        """Schedule what an earlier process left of a user, at the first call for that user."""
        if user not in self._seen:
            if not self._store.is_read_only and (await self._store.stats(user=user))["pending"]:
                self.notify_write(user)
            self._seen.add(user)

    async def close(self) -> None:
        """Start no further step; one that runs in a thread is not waited for."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        while self._due:
            user = min(self._due, key=self._due.__getitem__)
            wait = self._due[user] - time.monotonic()
            if wait > 0:
                await asyncio.sleep(wait)
                # More may have been stored meanwhile.
                continue
            del self._due[user]
            self._current = user
            try:
                await derive_user(self._store, user)
            finally:
                self._current = None


async def derive_user(store: AsyncMemoryStore, user: str) -> bool:
    """Derive, and log what is left for the next time; return whether it came to its end."""
    try:
        report = await store.derive(user=user)
    except Exception as error:
        # It costs what search would have found; the next write tries again.
        logger.warning("not derived: %s", error)
        return False
    for problem in (*report.failed, *report.waiting):
        logger.warning("not derived yet: %s", problem)
    return True
