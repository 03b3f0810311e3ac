"""Deriving beside a server: what was said becomes findable once a silence has followed it.

In this process and one user at a time, unless workers do it (`enqueue`). A step that another process took is not taken
twice, so that two servers, a worker and a command may derive one user at once.
"""

from __future__ import annotations

import asyncio
import logging
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from memstore.memory.store import AsyncMemoryStore

QUIET = 1.0  # seconds: whoever hands over a conversation in several calls is not derived between them
MOST_SEEN = 10_000  # users
MOST_TOLD = 1000  # warnings that are not told twice

logger = logging.getLogger("memstore")


class Deriving:
    """Derives for the users who were written to here, until it is closed; what is left waits for whoever comes next."""

    def __init__(self, store: AsyncMemoryStore, quiet: float = QUIET) -> None:
        self._store = store
        self._quiet = quiet
        self._due: dict[str, float] = {}
        self._at: str | None = None
        self._task: asyncio.Task[None] | None = None
        self._seen: set[str] = set()
        self._told: set[str] = set()

    def wrote(self, user: str) -> None:
        """Say that something of this user's is pending now."""
        if self._store.settings.enqueue:
            return
        self._due[user] = time.monotonic() + self._quiet
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._passes(), name="memstore-derive")

    def is_pending(self, user: str) -> bool:
        """Whether something of this user's that was written here is not derived yet."""
        return user in self._due or self._at == user

    async def met(self, user: str) -> None:
        """Derive what an earlier process left of a user who is met for the first time."""
        if user in self._seen:
            return
        if len(self._seen) >= MOST_SEEN:
            self._seen.clear()
        pending = (await self._store.stats(user=user))["pending"]
        self._seen.add(user)
        if pending:
            self.wrote(user)

    async def close(self) -> None:
        """Begin no further step; one that a thread is at is not waited for here."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _passes(self) -> None:
        while self._due:
            user = min(self._due, key=self._due.__getitem__)
            wait = self._due[user] - time.monotonic()
            if wait > 0:
                await asyncio.sleep(wait)
                continue  # something may have been said meanwhile
            del self._due[user]
            self._at = user
            try:
                await self._derive(user)
            finally:
                self._at = None

    async def _derive(self, user: str) -> None:
        try:
            report = await self._store.derive(user=user)
        except Exception as error:  # whatever it is: it costs what recall would have found, and nothing else
            self._tell(f"not derived: {error}")
            return
        for one in (*report.failed, *report.waiting):
            self._tell(f"not derived yet: {one}")

    def _tell(self, text: str) -> None:
        if text not in self._told:
            if len(self._told) >= MOST_TOLD:
                self._told.clear()
            self._told.add(text)
            logger.warning("%s", text)
