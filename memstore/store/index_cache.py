"""The arrays of the users who asked last, kept in the process."""

from __future__ import annotations

import threading
from collections import OrderedDict
from uuid import UUID

from memstore.store.user_index import UserIndex

MOST_UNITS = 150_000  # of a user (130,000 messages); others are scanned in the database. 355 MB with 384 dimensions
MOST_BYTES = 512 * 2**20  # of all users of a store, but for the one who asks
MAX_REMEMBERED = 1000  # users without arrays whose speakers are known
NOBODY: frozenset[str] = frozenset()


class IndexCache:
    """The arrays of the users who asked last, as many as there is room for. Safe to share by threads.

    Users with more than `most_units` units have none; of them it knows who was heard in what was found for them. Of
    users whose embedder is not the store's own it knows that one, so that a question is not embedded twice.
    """

    def __init__(self, most_units: int = MOST_UNITS, most_bytes: int = MOST_BYTES) -> None:
        self.most_units = most_units
        self._most = most_bytes
        self._kept: OrderedDict[tuple[UUID, UUID], UserIndex] = OrderedDict()
        self._bytes = 0  # of all that are kept: to add them up at each change takes 0.1 s for 100,000 users
        self._speakers: OrderedDict[tuple[UUID, UUID], frozenset[str]] = OrderedDict()
        self._active_models: OrderedDict[UUID, tuple[str, int]] = OrderedDict()
        self._migrations: set[frozenset[UUID]] = set()
        self._turn = threading.Lock()

    def get(self, user_id: UUID, model: UUID) -> UserIndex | None:
        """Return a user's arrays with the vectors of a model, of whatever version."""
        with self._turn:
            if (user_id, model) in self._kept:
                self._kept.move_to_end((user_id, model))
            return self._kept.get((user_id, model))

    def put(self, user_id: UUID, model: UUID, arrays: UserIndex) -> None:
        """Keep a user's arrays; those of users who have not asked for long go."""
        with self._turn:
            self._drop((user_id, model))
            self._kept[user_id, model] = arrays
            self._bytes += arrays.nbytes
            while len(self._kept) > 1 and self._bytes > self._most:
                self._drop(next(iter(self._kept)))

    def forget(self, user_id: UUID) -> None:
        """Drop what is known of a user."""
        with self._turn:
            for key in [key for key in self._kept if key[0] == user_id]:
                self._drop(key)
            for key in [key for key in self._speakers if key[0] == user_id]:
                del self._speakers[key]

    def _drop(self, key: tuple[UUID, UUID]) -> None:
        gone = self._kept.pop(key, None)
        self._bytes -= 0 if gone is None else gone.nbytes

    def speakers(self, user_id: UUID, model: UUID) -> frozenset[str]:
        """Return the names of those who speak in a user's messages, as far as they are known."""
        arrays = self.get(user_id, model)
        return self._speakers.get((user_id, model), NOBODY) if arrays is None else arrays.speakers_of_messages

    def add_speakers(self, user_id: UUID, model: UUID, names: frozenset[str]) -> frozenset[str]:
        """Take in who speaks in what was found for a user without arrays; return all who were heard."""
        with self._turn:
            heard = self._speakers[user_id, model] = self._speakers.pop((user_id, model), NOBODY) | names
            while len(self._speakers) > MAX_REMEMBERED:
                self._speakers.popitem(last=False)
        return heard

    def active_model(self, user_id: UUID) -> tuple[str, int] | None:
        """Return name and dimensions of the embedder that was seen to serve a user in place of the store's own."""
        return self._active_models.get(user_id)

    def set_active_model(self, user_id: UUID, embedder: tuple[str, int] | None) -> None:
        """Note which embedder serves a user in place of the store's own; None where that one does."""
        with self._turn:
            self._active_models.pop(user_id, None)
            if embedder is not None:
                self._active_models[user_id] = embedder
                while len(self._active_models) > MAX_REMEMBERED:
                    self._active_models.popitem(last=False)

    def is_migration(self, one: UUID, other: UUID) -> bool:
        """Return whether `move` was told of these two embedders."""
        return frozenset((one, other)) in self._migrations

    def add_migration(self, one: UUID, other: UUID) -> None:
        """Note that users were moved between two embedders."""
        self._migrations.add(frozenset((one, other)))
