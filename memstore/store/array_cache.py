"""The arrays of the users who asked last, kept in the process."""

from __future__ import annotations

import threading
from collections import OrderedDict
from uuid import UUID

from memstore.store.arrays import Arrays

MOST_UNITS = 150_000  # of a user (130,000 messages); others are scanned in the database. 315 MB with 384 dimensions
MOST_BYTES = 512 * 2**20  # of all users of a store, but for the one who asks


class ArrayCache:
    """The arrays of the users who asked last, as many as there is room for. Safe to share by threads.

    Users with more than `most_units` units have none.
    """

    def __init__(self, most_units: int = MOST_UNITS, most_bytes: int = MOST_BYTES) -> None:
        self.most_units = most_units
        self._most = most_bytes
        self._kept: OrderedDict[tuple[UUID, UUID], Arrays] = OrderedDict()
        self._turn = threading.Lock()

    def get(self, user_id: UUID, model: UUID) -> Arrays | None:
        """Give a user's arrays with the vectors of a model, of whatever version."""
        with self._turn:
            if (user_id, model) in self._kept:
                self._kept.move_to_end((user_id, model))
            return self._kept.get((user_id, model))

    def put(self, user_id: UUID, model: UUID, arrays: Arrays) -> None:
        """Keep a user's arrays; those of users who have not asked for long go."""
        with self._turn:
            self._kept[user_id, model] = arrays
            self._kept.move_to_end((user_id, model))
            while len(self._kept) > 1 and sum(one.nbytes for one in self._kept.values()) > self._most:
                self._kept.popitem(last=False)
