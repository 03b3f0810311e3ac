"""A user's units as arrays in this process, so that a question costs no scan of the database.

They are always those of the version that the database has when the question is asked: every transaction that adds units
or vectors, or removes some, changes the user's row in `users`, which then has another `xmin`. What came since is read
alone, and serves only where number and digest of all units then agree with the database's; else all is read anew.

No text is kept, but vectors and keyed hashes of words are, until others need the room or the store is closed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from itertools import compress
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from memstore.models import Role, Tier, Unit
from memstore.providers import Vectors
from memstore.store.neighbours import KERNEL, REACH, Numbers, last_asked, neighbours
from memstore.store.term_index import TermIndex
from memstore.store.terms import terms

Rows = NDArray[np.intp]

FRAMES = 4000  # bytes that even a user with three units takes beside them, measured
ROWS_AT_ONCE = 4096
OVERLAP = timedelta(minutes=2)  # a transaction records the time at which it began, and is seen when it has ended
EPOCH = datetime(2000, 1, 1, tzinfo=UTC)  # from which Postgres counts its microseconds
TIERS, ROLES = tuple(Tier), tuple(Role)
MESSAGES, USER, ASSISTANT = TIERS.index(Tier.MESSAGES) + 1, ROLES.index(Role.USER) + 1, ROLES.index(Role.ASSISTANT) + 1
# A unit as the statement `arrays` sends it; `name` is item and chunk once more, a string that sorts as they do.
LAYOUT = {
    "name": ("S20", 0),
    "item": ("V16", 0),
    "chunk": (">i4", 16),
    "conversation": ("V16", 20),
    "seq": (">i8", 36),
    "start": (">i8", 44),
    "stop": (">i8", 52),
    "length": (">i8", 60),
    "at": (">i8", 68),
    "digest": (">i8", 76),
    "tier": (">i2", 84),  # 1 for the first of TIERS
    "role": (">i2", 86),  # 1 for the first of ROLES, 0 for none
    "terms": (">i4", 88),
    "embedded": (">i4", 92),
    "recorded": (">i8", 96),
}
FORMATS, OFFSETS = zip(*LAYOUT.values(), strict=True)
RECORD = np.dtype({"names": list(LAYOUT), "formats": FORMATS, "offsets": OFFSETS, "itemsize": 104})
NOWHERE = bytes(16)


@dataclass(frozen=True)
class Arrays:
    """Units in the order in which they came, each a row.

    `terms` and their `frequencies` are those of all units, one unit after the other. `vectors` are blocks of shape
    (some, dimensions), together a row for each unit that is embedded.
    """

    version: str
    newest: datetime
    records: NDArray[np.void]
    speakers: list[str | None]
    terms: NDArray[np.int64]
    frequencies: NDArray[np.int64]
    vectors: tuple[Vectors, ...]

    def __len__(self) -> int:
        return len(self.records)

    @cached_property
    def digest(self) -> int:
        """A number that other units would not have."""
        return int(np.bitwise_xor.reduce(self.records["digest"].astype(np.int64)))

    @cached_property
    def lengths(self) -> NDArray[np.float64]:
        """The number of terms of each unit, repeated ones counted again."""
        return self.records["length"].astype(np.float64)

    @cached_property
    def times(self) -> NDArray[np.int64]:
        """When each was said, in microseconds since 2000."""
        return self.records["at"].astype(np.int64)

    @cached_property
    def holders(self) -> Rows:
        """The unit of each of the terms."""
        return np.repeat(np.arange(len(self)), self.records["terms"])

    @cached_property
    def index(self) -> TermIndex:
        """Where each term stands among `terms`."""
        return TermIndex.of(self.terms)

    def having(self, term: int) -> tuple[Rows, NDArray[np.float64]]:
        """Give the units that have a term, and how often each has it."""
        entries = self.index.find(term, self.terms)
        return self.holders[entries], self.frequencies[entries].astype(np.float64)

    @cached_property
    def characters(self) -> NDArray[np.float64]:
        """The number of characters of each unit."""
        return np.asarray(self.records["stop"] - self.records["start"], dtype=np.float64)

    @cached_property
    def tiers(self) -> NDArray[np.int16]:
        """The tier of each unit, 1 for the first of TIERS."""
        return self.records["tier"].astype(np.int16)

    @cached_property
    def by_person(self) -> NDArray[np.float64]:
        """1 for what a person said and for facts and summaries, which are made of it; else 0."""
        return np.asarray((self.tiers != MESSAGES) | (self.records["role"] == USER), dtype=np.float64)

    @cached_property
    def around(self) -> Numbers:
        """Each row with its neighbours in its session, in order: (5, rows); the number of rows where there is none."""
        said, conversations = self._said
        some = self.records[said]
        places = (some["seq"].astype(np.int64), some["chunk"].astype(np.int64))
        beside = neighbours(conversations, places, some["role"].astype(np.int64), self.times[said])
        around = np.full((2 * REACH + 1, len(self)), len(self))
        around[REACH] = np.arange(len(self))
        around[np.arange(2 * REACH + 1) != REACH, said[:, None]] = np.append(said, len(self))[beside].T
        return around

    @property
    def _said(self) -> tuple[Rows, Numbers]:
        """The rows of messages, and the conversation of each as two halves of its id, (rows, 2)."""
        said = np.flatnonzero((self.tiers == MESSAGES) & (self.seqs >= 0))
        ids = np.frombuffer(self.records["conversation"][said].tobytes(), ">i8")
        return said, ids.reshape(-1, 2).astype(np.int64)

    @cached_property
    def answered(self) -> tuple[Numbers, Numbers]:
        """A number for the message of each row, and that of a person's message which it answers; -1 for none."""
        said, conversations = self._said
        roles, both = self.records["role"][said], np.full((2, len(self)), -1)
        both[:, said] = last_asked(conversations, self.seqs[said], roles == USER, roles == ASSISTANT)
        return both[0], both[1]

    @cached_property
    def lengths_around(self) -> NDArray[np.float64]:
        """The mean length of each unit and its neighbours, in terms."""
        lengths = np.append(self.lengths, 0.0)[self.around].sum(axis=0)
        return np.asarray(lengths / (self.around < len(self)).sum(axis=0))

    @cached_property
    def nearness(self) -> NDArray[np.float64]:
        """What each of `around` counts in the mean direction of a unit and its neighbours, (5, rows).

        Dot products with vectors, weighed by it, add up to the cosine with the mean of the vectors.
        """
        weights = KERNEL[:, None] * (self.around < len(self))
        return np.asarray(weights / np.maximum(self.spread, 1e-9))

    @cached_property
    def spread(self) -> NDArray[np.float64]:
        """The length of the sum of the vectors of a unit and its neighbours, weighed by nearness; 0 without vectors."""
        return self._spread_of(np.arange(len(self)))

    def _spread_of(self, rows: Rows) -> NDArray[np.float64]:
        lengths = np.zeros(len(rows))
        if self.vectors:
            for start in range(0, len(rows), ROWS_AT_ONCE):
                some = rows[start : start + ROWS_AT_ONCE]
                total = np.zeros((len(some), self.vectors[0].shape[1]), dtype=np.float32)
                for weight, beside in zip(KERNEL.tolist(), self.around[:, some], strict=True):
                    there, vectors = self._vectors_at(beside)
                    total[there] += np.float32(weight) * vectors
                lengths[start : start + ROWS_AT_ONCE] = np.sqrt(np.vecdot(total, total))
        return lengths

    @cached_property
    def named(self) -> list[str]:
        """The names of speakers, each once; roles are none."""
        return sorted({speaker for speaker in self.speakers if speaker} - {*Role})

    @cached_property
    def terms_of_names(self) -> frozenset[str]:
        """The terms of all these names."""
        return frozenset(term for name in self.named for term in terms(name))

    @cached_property
    def tellers(self) -> frozenset[str]:
        """The names of those who said anything; others are only told of by facts."""
        said = compress(self.speakers, (self.tiers == MESSAGES).tolist())
        return frozenset(speaker for speaker in said if speaker) - {*Role}

    @cached_property
    def seqs(self) -> NDArray[np.int64]:
        """The number of each unit's message in its conversation; -1 for facts."""
        return self.records["seq"].astype(np.int64)

    @cached_property
    def voices(self) -> NDArray[np.int64]:
        """The place of each unit's speaker in `named`, -1 where it has no name."""
        places: dict[str | None, int] = {name: place for place, name in enumerate(self.named)}
        return np.array([places.get(speaker, -1) for speaker in self.speakers], dtype=np.int64)

    @cached_property
    def embedded(self) -> Rows:
        """The unit of each vector."""
        return np.flatnonzero(self.records["embedded"])

    @cached_property
    def order(self) -> Rows:
        """The rows by name."""
        return np.argsort(self.records["name"], kind="stable")

    @cached_property
    def rank(self) -> Rows:
        """The place of each row in `order`."""
        rank = np.empty_like(self.order)
        rank[self.order] = np.arange(len(self))
        return rank

    @cached_property
    def parted(self) -> NDArray[np.bool_]:
        """Whether each row is one of several chunks of its item."""
        chunks = self.records["chunk"][self.order]
        return ((chunks > 0) | (np.append(chunks[1:], 0) > 0))[self.rank]

    @property
    def nbytes(self) -> int:
        """The memory that they take, about: the largest ones and what is made of them; and of each array its frame."""
        return FRAMES + 3 * self.records.nbytes + 5 * self.terms.nbytes + sum(block.nbytes for block in self.vectors)

    def first_rows(self, items: Sequence[UUID]) -> Rows:
        """Give the rows of the first chunks of items, where they are there."""
        if not len(self):
            return np.empty(0, dtype=np.intp)
        names = np.array([item.bytes for item in items], dtype="S20")
        places = np.searchsorted(self.records["name"], names, sorter=self.order)
        rows = self.order[np.minimum(places, len(self) - 1)]
        found: Rows = rows[self.records["name"][rows] == names]
        return found

    def whole_items(self, rows: Rows) -> Rows:
        """Give these rows and those of the other chunks of their items, in the order of rows."""
        chunks, found = self.records["chunk"], rows.tolist()
        for row in rows[self.parted[rows]]:
            place = self.rank[row] - int(chunks[row])
            found.append(self.order[place])
            while place + 1 < len(self) and chunks[self.order[place + 1]] > 0:
                place += 1
                found.append(self.order[place])
        return np.unique(np.array(found, dtype=np.intp))

    def vectors_of(self, rows: Rows) -> tuple[Rows, Vectors]:
        """Give those of the rows that are embedded, and their vectors; there must be some."""
        there, vectors = self._vectors_at(rows)
        return rows[there], vectors

    def _vectors_at(self, rows: Rows) -> tuple[NDArray[np.bool_], Vectors]:
        """Give which of the rows are embedded, and their vectors; a number that is no row is none."""
        places = np.searchsorted(self.embedded, rows)
        there = places < len(self.embedded)
        there[there] = self.embedded[places[there]] == rows[there]
        places = places[there]
        found = np.empty((len(places), self.vectors[0].shape[1]), dtype=np.float32)
        start = 0
        for block in self.vectors:
            inside = (places >= start) & (places < start + len(block))
            found[inside] = block[places[inside] - start]
            start += len(block)
        return there, found

    def units(self, rows: Rows) -> list[Unit]:
        """Give units as the database would."""
        some = self.records[rows]
        items, places = _cut(some["item"].tobytes()), _cut(some["conversation"].tobytes())
        conversations = {NOWHERE: None} | {place: UUID(bytes=place) for place in set(places) - {NOWHERE}}
        numbers = [some[name].tolist() for name in ("chunk", "tier", "role", "seq", "start", "stop", "at")]
        return [
            Unit(
                item_id=UUID(bytes=item),
                chunk=chunk,
                tier=TIERS[tier - 1],
                conversation_id=conversations[place],
                seq=seq if seq >= 0 else None,
                role=ROLES[role - 1] if role else None,
                speaker=self.speakers[row],
                start=start,
                stop=stop,
                occurred_at=EPOCH + timedelta(microseconds=at),
            )
            for row, item, place, chunk, tier, role, seq, start, stop, at in zip(
                rows.tolist(), items, places, *numbers, strict=True
            )
        ]

    def followed_by(self, later: Arrays) -> Arrays:
        """Give these units and those of a later reading that are not among them, or were made anew."""
        fresh = later.only(~np.isin(later.records["digest"], self.records["digest"]))
        kept = self.only(~np.isin(self.records["name"], fresh.records["name"]))
        grown = Arrays(
            later.version,
            later.newest,
            np.frombuffer(
                kept.records.tobytes() + fresh.records.tobytes(), RECORD
            ),  # `concatenate` would lay it out anew
            [*kept.speakers, *fresh.speakers],
            np.concatenate([kept.terms, fresh.terms]),
            np.concatenate([kept.frequencies, fresh.frequencies]),
            _merged([*kept.vectors, *fresh.vectors]),
        )
        if kept is self:
            vars(grown).update(self._known_of(grown))
        return grown

    def _known_of(self, grown: Arrays) -> dict[str, object]:
        """Give those cached properties of grown arrays for which little has to be computed anew."""
        known: dict[str, object] = {}
        if "index" in vars(self) and self.index.serves(grown.terms):
            known["index"] = self.index
        if "spread" in vars(self):
            beside = grown.around[:, : len(self)]
            before = np.where(self.around < len(self), self.around, len(grown))
            spread = np.append(self.spread, np.zeros(len(grown) - len(self)))
            others = np.append(np.flatnonzero((beside != before).any(axis=0)), np.arange(len(self), len(grown)))
            spread[others] = grown._spread_of(others)
            known["spread"] = spread
        return known

    def only(self, rows: NDArray[np.bool_]) -> Arrays:
        """Give some of the units."""
        if rows.all():
            return self
        terms, vectors = rows[self.holders], rows[self.embedded]
        starts = np.cumsum([0, *map(len, self.vectors)])[:-1]
        blocks = [block[vectors[start : start + len(block)]] for start, block in zip(starts, self.vectors, strict=True)]
        return Arrays(
            self.version,
            self.newest,
            self.records[rows],
            list(compress(self.speakers, rows)),
            self.terms[terms],
            self.frequencies[terms],
            tuple(block for block in blocks if len(block)),
        )

    def known_at(self, moment: datetime) -> Arrays:
        """Give the units that there were at a moment."""
        return self.only(self.records["recorded"] <= _microseconds(moment))

    def seen_through(
        self,
        tiers: Sequence[str],
        conversation_id: UUID | None = None,
        roles: Sequence[str] | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
    ) -> Rows:
        """Give the rows that a filter lets through, as the statements of `items` have it."""
        records = self.records
        seen = np.isin(records["tier"], [TIERS.index(Tier(tier)) + 1 for tier in tiers])
        if conversation_id is not None:
            seen &= records["conversation"] == np.void(conversation_id.bytes)
        if roles is not None:
            seen &= np.isin(records["role"], [ROLES.index(Role(role)) + 1 for role in roles])
        if since is not None:
            seen &= self.times >= _microseconds(since)
        if until is not None:
            seen &= self.times < _microseconds(until)
        return np.flatnonzero(seen)


def _microseconds(moment: datetime) -> int:
    return (moment - EPOCH) // timedelta(microseconds=1)


def _cut(ids: bytes) -> list[bytes]:
    return [ids[place : place + 16] for place in range(0, len(ids), 16)]


def _merged(blocks: Sequence[Vectors]) -> tuple[Vectors, ...]:
    """Give the same rows in blocks that halve: few of them, and a row is copied rarely."""
    merged: list[Vectors] = []
    for block in blocks:
        merged.append(block)
        while len(merged) > 1 and len(merged[-2]) < 2 * len(merged[-1]):
            last = merged.pop()
            merged[-1] = np.concatenate([merged[-1], last])
    return tuple(merged)


def unpacked(
    version: str,
    newest: datetime,
    records: bytes,
    speakers: Sequence[str | None],
    terms: bytes,
    frequencies: bytes,
    vectors: bytes,
) -> Arrays:
    """Give arrays for what Postgres sends in its binary format."""
    units = np.frombuffer(records, RECORD)
    counts = units["terms"].astype(np.int64)
    once: dict[str | None, str | None] = {}
    return Arrays(
        version,
        newest,
        units,
        [once.setdefault(speaker, speaker) for speaker in speakers],
        _elements(terms, counts, ">i8"),
        _elements(frequencies, counts, ">i2"),
        (_vectors(vectors, int(np.count_nonzero(units["embedded"]))),) if vectors else (),
    )


def _elements(sent: bytes, counts: NDArray[np.int64], kind: str) -> NDArray[np.int64]:
    """Give the elements of arrays of smallint or bigint, one array after the other.

    `array_send` writes 12 bytes, for each dimension (an empty array has none) 8, for each element its size in 4 bytes
    and itself. All is even: seen as numbers of 2 bytes, an element's come at a known place.
    """
    words, size = np.frombuffer(sent, ">u2"), np.dtype(kind).itemsize // 2
    heads = np.where(counts > 0, 10, 6)
    ends = np.cumsum(heads + counts * (2 + size))
    within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    first = np.repeat(ends - counts * (2 + size), counts) + within * (2 + size) + 2
    elements: NDArray[np.int64] = words[first[:, None] + np.arange(size)].copy().view(kind).ravel().astype(np.int64)
    return elements


def _vectors(sent: bytes, count: int) -> Vectors:
    """Give the rows of vectors: each is sent as its dimensions and a zero, in 2 bytes each, and its components."""
    return np.ascontiguousarray(np.frombuffer(sent, ">f4").reshape(count, -1)[:, 1:], dtype=np.float32)
