"""The stores that the resident encoder was asked about, open for the next question about one of them."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager

from memstore import MemoryStore

MOST_STORES = 4


class OpenStores:
    """Stores by a key. Safe to share by threads, none of which waits for another's database."""

    def __init__(self) -> None:
        self._places: OrderedDict[str, _Place] = OrderedDict()
        self._changing = threading.Lock()

    def __len__(self) -> int:
        return len(self._places)

    @contextmanager
    def asked(self, key: str, open_it: Callable[[], MemoryStore]) -> Iterator[MemoryStore]:
        """Give the store of this key, which is open or opened: once for all who ask, who get the same error too.

        Of more than four, those that were asked longest ago are closed when nobody asks them.
        """
        with self._changing:
            place = self._places.setdefault(key, _Place())
            self._places.move_to_end(key)
            place.asking += 1
            first, place.is_begun = not place.is_begun, True
        try:
            if first:
                self._open(key, place, open_it)
            yield place.store.result()
        finally:
            with self._changing:
                place.asking -= 1
                surplus = self._surplus()
            for old in surplus:
                old.close()

    def _open(self, key: str, place: _Place, open_it: Callable[[], MemoryStore]) -> None:
        try:
            place.store.set_result(open_it())
        except BaseException as error:  # whatever it is, those who wait for the store are told
            with self._changing:
                self._places.pop(key, None)  # whoever asks next tries again
            place.store.set_exception(error)

    def _surplus(self) -> list[MemoryStore]:
        idle = [key for key, place in self._places.items() if not place.asking]
        return [self._places.pop(key).store.result() for key in idle[: max(0, len(self._places) - MOST_STORES)]]

    def close(self) -> None:
        """Close the stores; the last to leave an embedded Postgres stops it. One that is being opened is left."""
        with self._changing:
            places = list(self._places.values())
            self._places.clear()
        for place in places:
            if place.store.done():
                place.store.result().close()


class _Place:
    def __init__(self) -> None:
        self.store: Future[MemoryStore] = Future()
        self.asking = 0
        self.is_begun = False
