"""A user's chunks as arrays, held in the process for those who asked last: a question costs no scan of the database.

They are always of the version that the database has when the question is asked: every transaction that adds chunks or
vectors, or removes some, changes the user's row in `users`, which then has another `xmin`. Only later chunks are read
then, and used if number and digest of all chunks agree with the database's; else all are read anew. No text is kept,
but vectors and keyed hashes of words are, until others need the room or the store is closed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from itertools import compress
from typing import Any, cast
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from memstore.models import Chunk, Role, Tier
from memstore.models.messages import SESSION_GAP
from memstore.providers import Vectors
from memstore.store.tokenize import terms

Rows = NDArray[np.intp]
Numbers = NDArray[np.int64]
Flags = NDArray[np.bool_]

NEIGHBOURS_PER_SIDE = 2
NEIGHBOUR_WEIGHTS = np.array([0.2, 0.4, 1.0, 0.4, 0.2])
ROWS_AT_ONCE = 4096
# A transaction records the time at which it began, and is seen when it has ended.
OVERLAP = timedelta(minutes=2)
POSTGRES_EPOCH = datetime(2000, 1, 1, tzinfo=UTC)
TIERS, ROLES = tuple(Tier), tuple(Role)
MESSAGES, FACTS = TIERS.index(Tier.MESSAGES) + 1, TIERS.index(Tier.FACTS) + 1
USER, ASSISTANT = ROLES.index(Role.USER) + 1, ROLES.index(Role.ASSISTANT) + 1
# A chunk as the statement `arrays` sends it. Of tiers and roles, 1 is the first of TIERS or ROLES, 0 is none.
SENT = np.dtype(
    [
        *(("item", "V16"), ("chunk_index", ">i4"), ("conversation", "V16")),
        *((name, ">i8") for name in ("seq", "start", "stop", "length", "at", "digest")),
        *(("tier", ">i2"), ("role", ">i2"), ("terms", ">i4"), ("embedded", ">i4"), ("recorded", ">i8")),
    ]
)
# With `name`, which is item and chunk once more: a string that sorts as they do.
RECORD: np.dtype[np.void] = np.dtype(cast(Any, dict(SENT.fields or {}, name=("S20", 0))))


@dataclass(frozen=True)
class UserIndex:
    """Chunks in the order in which they came, each a row.

    `terms` and their `frequencies` are those of all chunks, one after the other. `vectors` are blocks of shape (some,
    dimensions), together a row for each chunk that is embedded.
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
        """The XOR of the chunks' digests: it differs if any chunk differs."""
        return int(np.bitwise_xor.reduce(self.records["digest"].astype(np.int64)))

    @cached_property
    def lengths(self) -> NDArray[np.float64]:
        """The number of terms of each chunk, repeated ones counted again."""
        return self.records["length"].astype(np.float64)

    @cached_property
    def times(self) -> NDArray[np.int64]:
        """When each was said, in microseconds since 2000."""
        return self.records["at"].astype(np.int64)

    @cached_property
    def postings_rows(self) -> Rows:
        return np.repeat(np.arange(len(self)), self.records["terms"])

    @cached_property
    def sorted_terms(self) -> tuple[Numbers, NDArray[np.int32]]:
        """The first of `terms`, or all of them, sorted, and the place of each."""
        places = np.argsort(self.terms, kind="stable").astype(np.int32)
        return self.terms[places], places

    def rows_with_term(self, term: int) -> tuple[Rows, NDArray[np.float64]]:
        """Return the chunks that have a term, and how often each has it."""
        terms, places = self.sorted_terms
        entries = places[terms.searchsorted(term) : terms.searchsorted(term, "right")]
        if len(terms) < len(self.terms):
            entries = np.append(entries, np.flatnonzero(self.terms[len(terms) :] == term) + len(terms))
        return self.postings_rows[entries], self.frequencies[entries].astype(np.float64)

    @cached_property
    def characters(self) -> NDArray[np.float64]:
        return np.asarray(self.records["stop"] - self.records["start"], dtype=np.float64)

    @cached_property
    def tiers(self) -> NDArray[np.int16]:
        return self.records["tier"].astype(np.int16)

    @cached_property
    def by_person(self) -> NDArray[np.float64]:
        """1 for what a person said and for facts and summaries, which are made of it; else 0."""
        return np.asarray((self.tiers != MESSAGES) | (self.records["role"] == USER), dtype=np.float64)

    @cached_property
    def neighbours(self) -> Numbers:
        """Each row with its neighbours in its session, in order: (5, rows); the number of rows where there is none.

        They were said just before and after, by the same role: next to a short question, a long answer would be all of
        the neighbourhood.
        """
        count, (order, sessions) = len(self), self._sessions
        groups = sessions * (len(ROLES) + 1) + self.records["role"][order]
        within = np.argsort(groups, kind="stable")
        order, groups = order[within], groups[within]
        neighbours = np.full((2 * NEIGHBOURS_PER_SIDE + 1, count), count)
        neighbours[NEIGHBOURS_PER_SIDE] = np.arange(count)
        for steps in range(1, NEIGHBOURS_PER_SIDE + 1):
            together = groups[steps:] == groups[:-steps]
            earlier, later = order[:-steps][together], order[steps:][together]
            neighbours[NEIGHBOURS_PER_SIDE - steps, later] = earlier
            neighbours[NEIGHBOURS_PER_SIDE + steps, earlier] = later
        return neighbours

    @property
    def _in_order(self) -> tuple[Rows, Flags]:
        """The rows of messages in the order of their conversations, and where another conversation begins."""
        said = np.flatnonzero((self.tiers == MESSAGES) & (self.seqs >= 0))
        halves = np.frombuffer(self.records["conversation"][said].tobytes(), ">i8").astype(np.int64)
        conversations = halves.reshape(-1, 2)
        first, second = conversations.T
        order = np.lexsort((self.records["chunk_index"][said], self.seqs[said], second, first))
        begins = np.ones(len(order), dtype=np.bool_)
        begins[1:] = (np.diff(conversations[order], axis=0) != 0).any(axis=1)
        return said[order], begins

    @property
    def _sessions(self) -> tuple[Rows, Numbers]:
        """The rows of messages in the order of their conversations, and the number of the session of each."""
        order, begins = self._in_order
        begins[1:] |= np.abs(np.diff(self.times[order])) > SESSION_GAP // timedelta(microseconds=1)
        return order, np.cumsum(begins)

    @cached_property
    def sessions(self) -> Numbers:
        """The number of the session of each row, 0 for what is no message."""
        order, sessions = self._sessions
        numbers = np.zeros(len(self), dtype=np.int64)
        numbers[order] = sessions
        return numbers

    @cached_property
    def messages_and_answered(self) -> tuple[Numbers, Numbers]:
        """A number for the message of each row, and that of the person's message last said before it, which it answers.

        The latter is -1 for what no assistant said, and where no person spoke before in the conversation, or a message
        between is missing.
        """
        order, fresh = self._in_order
        roles, steps = self.records["role"][order], np.diff(self.seqs[order])
        fresh[1:] |= steps > 1
        begins = fresh.copy()
        begins[1:] |= steps != 0
        numbers = np.cumsum(begins) - 1
        asked = np.maximum.accumulate(np.where(roles == USER, numbers, -1))
        start = np.maximum.accumulate(np.where(fresh, numbers, 0))
        both = np.full((2, len(self)), -1)
        both[:, order] = numbers, np.where((roles == ASSISTANT) & (asked >= start), asked, -1)
        return both[0], both[1]

    @cached_property
    def lengths_with_neighbours(self) -> NDArray[np.float64]:
        """The mean length of each chunk and its neighbours, in terms."""
        lengths = np.append(self.lengths, 0.0)[self.neighbours].sum(axis=0)
        return np.asarray(lengths / (self.neighbours < len(self)).sum(axis=0))

    @cached_property
    def neighbour_kernel(self) -> NDArray[np.float64]:
        """What each of `neighbours` counts, (5, rows): dot products weighed by it add up to cosines with the mean."""
        weights = NEIGHBOUR_WEIGHTS[:, None] * (self.neighbours < len(self))
        return np.asarray(weights / np.maximum(self.neighbourhood_norm, 1e-9))

    @cached_property
    def neighbourhood_norm(self) -> NDArray[np.float64]:
        """The length of the sum of a chunk's and its neighbours' vectors, weighed by nearness; 0 without vectors."""
        return self._neighbourhood_norms(np.arange(len(self)))

    def _neighbourhood_norms(self, rows: Rows) -> NDArray[np.float64]:
        lengths = np.zeros(len(rows))
        if self.vectors:
            for start in range(0, len(rows), ROWS_AT_ONCE):
                batch = rows[start : start + ROWS_AT_ONCE]
                total = np.zeros((len(batch), self.vectors[0].shape[1]), dtype=np.float32)
                for weight, beside in zip(NEIGHBOUR_WEIGHTS.tolist(), self.neighbours[:, batch], strict=True):
                    there, vectors = self.vectors_at(beside)
                    total[there] += np.float32(weight) * vectors
                lengths[start : start + ROWS_AT_ONCE] = np.sqrt(np.vecdot(total, total))
        return lengths

    @cached_property
    def speaker_names(self) -> list[str]:
        """The names of speakers, each once; roles are none."""
        return sorted({speaker for speaker in self.speakers if speaker} - {*Role})

    @cached_property
    def speaker_terms(self) -> frozenset[str]:
        return frozenset(term for name in self.speaker_names for term in terms(name))

    @cached_property
    def speakers_of_messages(self) -> frozenset[str]:
        """The names of those who said anything; facts may name others."""
        said = compress(self.speakers, (self.tiers == MESSAGES).tolist())
        return frozenset(speaker for speaker in said if speaker) - {*Role}

    @cached_property
    def seqs(self) -> NDArray[np.int64]:
        """The number of each chunk's message in its conversation; -1 for facts."""
        return self.records["seq"].astype(np.int64)

    @cached_property
    def speaker_ids(self) -> NDArray[np.int64]:
        """The place of each chunk's speaker in `speaker_names`, -1 where it has no name."""
        places: dict[str | None, int] = {name: place for place, name in enumerate(self.speaker_names)}
        return np.array([places.get(speaker, -1) for speaker in self.speakers], dtype=np.int64)

    @cached_property
    def embedded(self) -> Rows:
        return np.flatnonzero(self.records["embedded"])

    @cached_property
    def pair_cosines(self) -> tuple[float, float, int]:
        """The mean and the standard deviation of cosines of chunks with each other, and of how many pairs they are.

        The chunks are 200 at most, evenly from all that are embedded.
        """
        step = max(1, -(-len(self.embedded) // 200))
        if len(rows := self.embedded[::step]) < 2:
            return 0.0, 0.0, 0
        chosen = self.vectors_at(rows)[1].astype(np.float64)
        chosen /= np.maximum(np.linalg.norm(chosen, axis=1, keepdims=True), 1e-30)
        pairs = (chosen @ chosen.T)[np.triu_indices(len(chosen), 1)]
        return float(pairs.mean()), float(pairs.std()), len(pairs)

    @cached_property
    def order(self) -> Rows:
        return np.argsort(self.records["name"], kind="stable")

    @cached_property
    def rank(self) -> Rows:
        rank = np.empty_like(self.order)
        rank[self.order] = np.arange(len(self))
        return rank

    @property
    def nbytes(self) -> int:
        """The memory that they take, about: the largest ones and what is made of them; and of each array its frame."""
        return 4000 + 3 * self.records.nbytes + 5 * self.terms.nbytes + sum(block.nbytes for block in self.vectors)

    def rows_of(self, items: Sequence[UUID]) -> Rows:
        """Return the rows of all chunks of these items, in their order."""
        wanted = {item.bytes for item in items}
        return np.flatnonzero([item in wanted for item in self.records["item"].tolist()])

    def vectors_at(self, rows: Rows) -> tuple[Flags, Vectors]:
        """Return which of the rows are embedded, and their vectors; some chunk must be."""
        places = np.searchsorted(self.embedded, rows)
        there = places < len(self.embedded)
        there[there] = self.embedded[places[there]] == rows[there]
        places = places[there]
        if len(self.vectors) == 1:
            return there, self.vectors[0][places]
        vectors = np.empty((len(places), self.vectors[0].shape[1]), dtype=np.float32)
        start = 0
        for block in self.vectors:
            inside = (places >= start) & (places < start + len(block))
            vectors[inside] = block[places[inside] - start]
            start += len(block)
        return there, vectors

    def chunks(self, rows: Rows) -> list[Chunk]:
        """Return chunks as the database would."""
        records = self.records[rows]
        names = ("item", "chunk_index", "tier", "conversation", "seq", "role", "start", "stop", "at")
        columns = zip(rows.tolist(), *(records[name].tolist() for name in names), strict=True)
        conversations = {place: UUID(bytes=place) for place in set(records["conversation"].tolist())} | {
            bytes(16): None
        }
        return [
            Chunk(
                UUID(bytes=item),
                index,
                TIERS[tier - 1],
                conversations[place],
                seq if seq >= 0 else None,
                ROLES[role - 1] if role else None,
                self.speakers[row],
                start,
                stop,
                POSTGRES_EPOCH + timedelta(microseconds=at),
            )
            for row, item, index, tier, place, seq, role, start, stop, at in columns
        ]

    def extend(self, later: UserIndex) -> UserIndex:
        """Return these chunks and those of a later reading that are not among them, or were made anew."""
        fresh = later.select(~np.isin(later.records["digest"], self.records["digest"]))
        kept = self.select(~np.isin(self.records["name"], fresh.records["name"]))
        grown = UserIndex(
            later.version,
            later.newest,
            np.frombuffer(kept.records.tobytes() + fresh.records.tobytes(), RECORD),  # not laid out anew
            [*kept.speakers, *fresh.speakers],
            np.concatenate([kept.terms, fresh.terms]),
            np.concatenate([kept.frequencies, fresh.frequencies]),
            _merge_blocks([*kept.vectors, *fresh.vectors]),
        )
        if kept is self:
            vars(grown).update(self._carry_over(grown))
        return grown

    def _carry_over(self, grown: UserIndex) -> dict[str, object]:
        properties: dict[str, object] = {}
        # Up to a tenth of the terms they are scanned (< 1 ms); sorting all takes 100 ms.
        if "sorted_terms" in vars(self) and len(self.sorted_terms[0]) >= 0.9 * len(grown.terms):
            properties["sorted_terms"] = self.sorted_terms
        if "neighbourhood_norm" in vars(self):
            beside = grown.neighbours[:, : len(self)]
            before = np.where(self.neighbours < len(self), self.neighbours, len(grown))
            spread = np.append(self.neighbourhood_norm, np.zeros(len(grown) - len(self)))
            rows = np.append(np.flatnonzero((beside != before).any(axis=0)), np.arange(len(self), len(grown)))
            spread[rows] = grown._neighbourhood_norms(rows)
            properties["neighbourhood_norm"] = spread
        return properties

    def select(self, rows: NDArray[np.bool_]) -> UserIndex:
        if rows.all():
            return self
        terms, vectors = rows[self.postings_rows], rows[self.embedded]
        starts = np.cumsum([0, *map(len, self.vectors)])[:-1]
        blocks = [block[vectors[start : start + len(block)]] for start, block in zip(starts, self.vectors, strict=True)]
        return UserIndex(
            self.version,
            self.newest,
            self.records[rows],
            list(compress(self.speakers, rows)),
            self.terms[terms],
            self.frequencies[terms],
            tuple(block for block in blocks if len(block)),
        )

    def as_of(self, moment: datetime) -> UserIndex:
        return self.select(self.records["recorded"] <= _microseconds(moment))

    def filter(
        self,
        tiers: Sequence[str],
        conversation_id: UUID | None = None,
        roles: Sequence[str] | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        hidden_conversations: Sequence[UUID] = (),
        hidden_facts: Sequence[UUID] = (),
    ) -> Rows:
        """Return the rows that a filter lets through, as the statements of `chunks` do."""
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
        if hidden_conversations or hidden_facts:
            facts = self.tiers == FACTS
            seen &= ~np.where(
                facts, _has(records["item"], hidden_facts), _has(records["conversation"], hidden_conversations)
            )
        return np.flatnonzero(seen)


def _has(ids: NDArray[np.void], wanted: Sequence[UUID]) -> Flags:
    places = {id.bytes for id in wanted}
    return np.array([id in places for id in ids.tolist()], dtype=np.bool_)


def _microseconds(moment: datetime) -> int:
    return (moment - POSTGRES_EPOCH) // timedelta(microseconds=1)


def _merge_blocks(blocks: Sequence[Vectors]) -> tuple[Vectors, ...]:
    merged: list[Vectors] = []
    for block in blocks:
        merged.append(block)
        while len(merged) > 1 and len(merged[-2]) < 2 * len(merged[-1]):
            last = merged.pop()
            merged[-1] = np.concatenate([merged[-1], last])
    return tuple(merged)
