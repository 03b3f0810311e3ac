"""Deriving beside a chat: what was said becomes findable while somebody reads or types, never while they wait."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from memstore.cli.show import hint

if TYPE_CHECKING:
    from memstore import MemoryStore

LEAVING = 10.0  # seconds for the step that is under way when the chat ends


class _Paused(BaseException):
    """Ends a pass between two steps. Not an Exception: `derive` would take it for a conversation that failed."""


class Deriving:
    """Derives what is pending of a user, in a thread, from `begin` until `pause` or until all is done.

    A step that is under way goes on beside what comes; the pass ends after it. What is left waits for the next one, and
    what fails is said once and breaks nothing.
    """

    def __init__(self, store: MemoryStore, user: str) -> None:
        self._store = store
        self._user = user
        self._told: set[str] = set()
        self._wanted, self._paused = threading.Event(), threading.Event()
        self._closing = False
        self._thread: threading.Thread | None = None

    def begin(self) -> None:
        """Derive in the background."""
        self._paused.clear()
        self._wanted.set()
        if self._thread is None:
            self._thread = threading.Thread(target=self._passes, name="memstore-derive", daemon=True)
            self._thread.start()

    def pause(self) -> None:
        """Begin no further step."""
        self._wanted.clear()
        self._paused.set()

    def close(self) -> None:
        """End the thread, if need be without waiting for a step that takes too long."""
        self._closing = True
        self._paused.set()
        self._wanted.set()
        if self._thread is not None:
            self._thread.join(LEAVING)

    def once(self) -> None:
        """Derive here and now."""
        try:
            report = self._store.derive(user=self._user, progress=self._step)
        except _Paused:
            return
        except Exception as error:  # whatever it is: it costs the chat what it would have found, and nothing else
            self._tell(f"not derived: {error}")
            return
        for one in (*report.failed, *report.waiting):
            self._tell(f"not derived yet: {one}")

    def _passes(self) -> None:
        while not self._closing:
            self._wanted.wait()
            self._wanted.clear()
            if not self._paused.is_set():
                self.once()

    def _step(self, *_: object) -> None:
        if self._paused.is_set():
            raise _Paused

    def _tell(self, text: str) -> None:
        if text not in self._told and not self._closing:
            self._told.add(text)
            hint(text)
