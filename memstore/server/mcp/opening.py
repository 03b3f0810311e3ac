"""A store that is opened behind the protocol's handshake: a client does not wait for a Postgres to start."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

from memstore.errors import MemstoreError
from memstore.server.mcp.asked import Asked
from memstore.server.mcp.deriving import Deriving
from memstore.waiting import in_thread

if TYPE_CHECKING:
    from memstore.memory.store import AsyncMemoryStore

logger = logging.getLogger("memstore")


class Opening:
    """One user's memory, opened once in the background; where that failed, each call tries again."""

    def __init__(self, user: str, database: str | None, settings: Mapping[str, Any]) -> None:
        self._user = user
        self._database = database
        self._settings = settings
        self._task: asyncio.Task[tuple[AsyncMemoryStore, Deriving]] | None = None

    def begin(self) -> None:
        """Open it, where nobody does so yet."""
        if self._task is None or (self._task.done() and self._task.exception() is not None):
            self._task = asyncio.create_task(self._opened(), name="memstore-open")
            self._task.add_done_callback(_say)

    async def asked(self) -> Asked:
        """Give what a tool works with. Raises what opening the store raised."""
        self.begin()
        assert self._task is not None
        store, deriving = await asyncio.shield(self._task)  # who stops waiting does not stop the others
        await deriving.met(self._user)
        return Asked(store, store.user(self._user), deriving)

    async def close(self) -> None:
        """Close what was opened, or is being opened."""
        if self._task is None:
            return
        found = (await asyncio.gather(self._task, return_exceptions=True))[0]
        if not isinstance(found, BaseException):
            store, deriving = found
            await deriving.close()
            await store.close()

    async def _opened(self) -> tuple[AsyncMemoryStore, Deriving]:
        memory = await in_thread(import_module, "memstore.memory.store")
        store: AsyncMemoryStore = await memory.open_async(self._database, settings=self._settings)
        return store, Deriving(store)


def _say(task: asyncio.Task[Any]) -> None:
    """Log why it was not opened; whoever asks is told too."""
    if not task.cancelled() and isinstance(task.exception(), MemstoreError):
        logger.warning("not opened: %s", task.exception())
