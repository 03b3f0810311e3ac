"""The arrays of the users of a store who asked last, held in the process."""

from __future__ import annotations

import threading
from uuid import UUID

from memstore.store.user_index import UserIndex


class IndexCache:
    """The arrays of the users who asked last, as many as there is room for. Safe to share by threads.

    The user who asks has arrays, also where these alone exceed `max_bytes`. But users with more than `max_chunks` have
    none; for them it keeps the speakers of the chunks that were found.
    """

    def __init__(self, max_chunks: int, max_bytes: int) -> None:
        self.max_chunks = max_chunks
        self._max_bytes = max_bytes
        self._kept: dict[tuple[UUID, UUID], UserIndex] = {}  # who asked last comes last
        # Of all that are kept: to add them up at each change takes 0.1 s for 100,000 users.
        self._bytes = 0
        self._speakers: dict[tuple[UUID, UUID], frozenset[str]] = {}
        self._turn = threading.Lock()

    def get(self, user_id: UUID, model: UUID) -> UserIndex | None:
        """Return a user's arrays with the vectors of a model, of whatever version."""
        with self._turn:
            kept = self._kept.pop((user_id, model), None)
            if kept is not None:
                self._kept[user_id, model] = kept
            return kept

    def put(self, user_id: UUID, model: UUID, arrays: UserIndex) -> None:
        """Keep a user's arrays; those of users who have not asked for long go."""
        with self._turn:
            self._drop((user_id, model))
            self._kept[user_id, model] = arrays
            self._bytes += arrays.nbytes
            while len(self._kept) > 1 and self._bytes > self._max_bytes:
                self._drop(next(iter(self._kept)))

    def forget(self, user_id: UUID) -> None:
        with self._turn:
            for key in [key for key in (*self._kept, *self._speakers) if key[0] == user_id]:
                self._drop(key)
                self._speakers.pop(key, None)

    def _drop(self, key: tuple[UUID, UUID]) -> None:
        gone = self._kept.pop(key, None)
        self._bytes -= 0 if gone is None else gone.nbytes

    def speakers(self, user_id: UUID, model: UUID) -> frozenset[str]:
        """Return the names of those who speak in a user's messages, as far as they are known."""
        arrays = self.get(user_id, model)
        return self._speakers.get((user_id, model), frozenset()) if arrays is None else arrays.speakers_of_messages

    def add_speakers(self, user_id: UUID, model: UUID, names: frozenset[str]) -> frozenset[str]:
        """Take in the speakers of the chunks that were found for a user without arrays; return all speakers so far."""
        with self._turn:
            heard = self._speakers[user_id, model] = self._speakers.get((user_id, model), frozenset()) | names
        return heard
