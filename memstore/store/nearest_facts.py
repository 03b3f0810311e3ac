"""The facts nearest in meaning to new ones. The user's vectors are read once for all new facts of a transaction.

For each new fact a few candidates are left; the statement `known` measures those exactly.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from memstore._compat import to_thread
from memstore.providers import Vectors
from memstore.store.database import Transaction
from memstore.store.sql import statements

SQL = statements("facts")
NEAREST = 3  # facts in other words that a new one is compared with
FEW = 2  # new facts for which the database measures all distances: to send the vectors takes three times as long
PAGE = 4096  # facts whose vectors are held at a time: 6 MB with 384 dimensions
MOST_COMPARED = 256  # new facts that are compared with a page at a time: 4 MB of cosines
# The database adds up in another order than numpy: of two facts as near as this, either may come first.
ROUNDING = 1e-4
MOST_CANDIDATES = 100  # where many are equally near
RECORD = np.dtype([("id", "V16"), ("subject", ">i4"), ("embedded", ">i4")])  # as the statement `vector_page` sends it
FIRST = UUID(int=0)
NO_DIRECTION = -2.0  # instead of the cosine of a vector of zeros: the database puts it last


class NewVector(NamedTuple):
    """The vector of a new fact, its subject and another name of that."""

    id: UUID
    subject: str
    alias: str
    vector: Vectors | None


class Candidate(NamedTuple):
    """A stored fact and how near it is."""

    cosine: float
    id: UUID


class NearestFacts:
    """The candidates of new facts, by their places."""

    def __init__(self, new: Sequence[NewVector]) -> None:
        self._new = new
        self._vectors = {place: one.vector for place, one in enumerate(new) if one.vector is not None}
        self._groups: defaultdict[frozenset[str], list[int]] = defaultdict(list)  # by names of the subject
        for place in self._vectors:
            self._groups[_names(new[place])].append(place)
        self.subjects = sorted(frozenset().union(*self._groups))
        self._stored: defaultdict[int, list[Candidate]] = defaultdict(list)
        self._added: dict[UUID, int] = {}

    def compare(self, page: NDArray[np.void], vectors: bytes) -> None:
        """Compare all new facts with a page of stored ones, and with the vectors that these have."""
        page = page[page["embedded"] > 0]
        stored = _normalise(np.frombuffer(vectors, ">f4").reshape(len(page), -1)[:, 1:].astype(np.float32))
        ids: list[bytes] = page["id"].tolist()
        for names, places in self._groups.items():
            numbers = [number for number, subject in enumerate(self.subjects, 1) if subject in names]
            rows = np.flatnonzero(np.isin(page["subject"], numbers))
            for start in range(0, len(places) if len(rows) else 0, MOST_COMPARED):
                some = places[start : start + MOST_COMPARED]
                cosines = _cosines(np.stack([self._vectors[place] for place in some]), stored[rows])
                for place, own in zip(some, cosines, strict=True):
                    found = [Candidate(float(own[row]), UUID(bytes=ids[rows[row]])) for row in _find_nearest(own)]
                    self._stored[place] = _choose([*self._stored[place], *found])

    async def ask(self, tx: Transaction, model: UUID) -> None:
        """Let the database find the nearest ones of each new fact."""
        for place, vector in self._vectors.items():
            values = {"query": vector, "model_id": model, "subjects": sorted(_names(self._new[place]))}
            rows = await tx.tuples(SQL["nearest"], **values, limit=NEAREST, no_direction=NO_DIRECTION)
            self._stored[place] = [Candidate(cosine, id) for id, cosine in rows]

    def add(self, place: int) -> None:
        """Let a new fact, which is stored now, be compared with those that come after it."""
        if place in self._vectors:
            self._added[self._new[place].id] = place

    def candidates(self, place: int) -> list[UUID]:
        """Return the stored facts that may be among the `NEAREST` ones of a new fact."""
        if place not in self._vectors:
            return []
        names = _names(self._new[place])
        added = {id: self._vectors[other] for id, other in self._added.items() if self._new[other].subject in names}
        found = [one for one in self._stored[place] if one.id not in added]
        if added:
            (cosines,) = _cosines(self._vectors[place][None], _normalise(np.stack([*added.values()])))
            found += map(Candidate, cosines.tolist(), added)
        return [one.id for one in _choose(found)]


def _names(new: NewVector) -> frozenset[str]:
    return frozenset([new.subject, new.alias] if new.alias else [new.subject])


async def read_nearest(tx: Transaction, new: Sequence[NewVector], model: UUID | None) -> NearestFacts:
    """Return the candidates of new facts among those that are stored."""
    nearest = NearestFacts(new)
    if model is not None and nearest.subjects:
        if len(new) <= FEW:
            await nearest.ask(tx, model)
        else:
            await _read_pages(tx, nearest, model)
    return nearest


async def _read_pages(tx: Transaction, nearest: NearestFacts, model: UUID) -> None:
    """Compare new facts with all stored ones, a page of which is in memory at a time."""
    page, after = np.zeros(PAGE, RECORD), FIRST
    while len(page) == PAGE:
        values = {"subjects": nearest.subjects, "model_id": model, "after": after, "limit": PAGE}
        [(records, vectors)] = await tx.binary(SQL["vector_page"], **values)
        page = np.frombuffer(records or b"", RECORD)
        if vectors is not None:
            await to_thread(nearest.compare, page, vectors)
        after = UUID(bytes=max(page["id"].tolist(), default=FIRST.bytes))


def _normalise(vectors: Vectors) -> Vectors:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.where(lengths > 0, lengths, 1))


def _cosines(new: Vectors, stored: Vectors) -> Vectors:
    """Return the cosines of new vectors with stored ones, which are of length 1 or 0."""
    cosines = _normalise(new) @ stored.T
    cosines[:, ~stored.any(axis=1)] = NO_DIRECTION
    return np.asarray(cosines)


def _find_nearest(cosines: Vectors) -> NDArray[np.intp]:
    """Return the places of the nearest ones, and of those that may be as near."""
    if len(cosines) <= NEAREST:
        return np.arange(len(cosines))
    places = np.flatnonzero(cosines >= np.partition(cosines, -NEAREST)[-NEAREST] - ROUNDING)
    return places[np.argsort(-cosines[places], kind="stable")[:MOST_CANDIDATES]]


def _choose(found: Iterable[Candidate]) -> list[Candidate]:
    """Return the nearest ones, and those that may be as near."""
    ordered = sorted(found, key=lambda one: (-one.cosine, one.id))[:MOST_CANDIDATES]
    least = ordered[NEAREST - 1].cosine - ROUNDING if len(ordered) > NEAREST else NO_DIRECTION
    return [one for one in ordered if one.cosine >= least]
