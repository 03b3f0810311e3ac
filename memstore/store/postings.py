"""Search by words for users with very many chunks: which chunks have a term, without reading the chunks.

Postings are rows of `term_postings`, one for a term in a run of up to `CHUNKS_PER_RUN` chunks, made by the derivers
behind what they add. Later chunks are read themselves: recall never waits for postings, and misses nothing without
them. An ordinary table with an ordinary key, because row-level security keeps a GIN index over `terms` from ever being
used: `&&` is not leakproof. 500,000 chunks of 16 words have 95 MB of postings, and ingest pays nothing for them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import chain
from typing import Any, NamedTuple
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from memstore._compat import to_thread
from memstore.store.database import Transaction
from memstore.store.errors import ConcurrentUpdate
from memstore.store.sql import statements

SQL = statements("postings")
# A run takes 30 MB while it is made.
CHUNKS_PER_RUN = 65_536
# To read so many chunks costs 10 ms.
MIN_RUN_CHUNKS = 4_096
# 2 MB for one question: terms that would exceed it only score what others found.
MAX_POSTINGS_READ = 250_000
POSTING = np.dtype([("number", "<u4"), ("count", "<u2"), ("length", "<u2")])


@dataclass(frozen=True, slots=True)
class Postings:
    """The chunks that have a term: their numbers, how often they have it, and their lengths in terms."""

    numbers: NDArray[np.int64]
    counts: NDArray[np.float64]
    lengths: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.numbers)


@dataclass(frozen=True, slots=True)
class Matches:
    """What is known of a question's terms: how many chunks have each, and who they are, but of the commonest ones."""

    holding: dict[int, int]
    postings: dict[int, Postings]


async def matches(tx: Transaction, terms: Sequence[int], posted: int, as_of: datetime | None) -> Matches:
    """Return who has these terms, of all chunks or of those that there were at a moment.

    Chunks up to number `posted` are looked up in postings, which know no moments: with one, all chunks are read. The
    rarest terms are read first; others that would exceed `MAX_POSTINGS_READ` postings are left out, but never all.
    """
    once = list(dict.fromkeys(terms))
    parts = {term: [_unpack(())] for term in once}
    holding = dict.fromkeys(once, 0)
    if not once:
        return Matches({}, {})
    after = posted if as_of is None else 0
    if after:
        holding |= dict(await tx.tuples(SQL["holding"], terms=once))
        once = _select_rarest(holding, MAX_POSTINGS_READ)
        for term, chunks in await tx.binary(SQL["postings"], terms=once):
            parts[term].append(_unpack(np.frombuffer(chunks, POSTING)))
    late = await tx.tuples(SQL["matching"], terms=list(holding), after=after, as_of=as_of)
    for term, postings in _by_term(list(holding), late).items():
        holding[term] += len(postings)
        parts[term].append(postings)
    return Matches(holding, {term: _join(parts[term]) for term in once})


def _select_rarest(holding: dict[int, int], most: int) -> list[int]:
    rarest = sorted(holding, key=lambda term: (holding[term], term))
    read = np.cumsum([holding[term] for term in rarest])
    return rarest[: max(1, int(np.searchsorted(read, most, side="right")))]


def _unpack(chunks: Any) -> Postings:
    if not len(chunks):
        chunks = np.empty(0, POSTING)
    return Postings(*(chunks[name].astype(kind) for name, kind in (("number", "q"), ("count", "d"), ("length", "d"))))


def _by_term(terms: Sequence[int], rows: Sequence[tuple[int, int, list[int]]]) -> dict[int, Postings]:
    numbers = np.array([number for number, _, _ in rows], dtype=np.int64)
    lengths = np.array([length for _, length, _ in rows], dtype=np.float64)
    counts = np.array([counts for _, _, counts in rows], dtype=np.float64).reshape(len(rows), len(terms))
    by_term = {}
    for term, frequencies in zip(terms, counts.T, strict=True):
        having = np.flatnonzero(frequencies)
        by_term[term] = Postings(numbers[having], frequencies[having], lengths[having])
    return by_term


def _join(parts: Sequence[Postings]) -> Postings:
    return Postings(*(np.concatenate([getattr(part, name) for part in parts]) for name in Postings.__slots__))


class PostingReach(NamedTuple):
    """How many chunks a user has, the highest number of one, and how far postings reach."""

    chunks: int
    last_chunk: int
    posted: int


async def reach(tx: Transaction) -> PostingReach:
    return await tx.one(SQL["reach"], PostingReach) or PostingReach(0, 0, 0)


class PostingBacklog(NamedTuple):
    """A user with very many chunks, and how many of them no postings tell of."""

    id: UUID
    name: str
    chunks: int
    unposted: int


async def large(tx: Transaction, most: int) -> list[PostingBacklog]:
    """Return the users with more than `most` chunks; needs the operator's scope."""
    return await tx.all(SQL["large"], PostingBacklog, most=most)


class IndexedChunk(NamedTuple):
    """What postings tell of a chunk: its number, its length, its terms and how often it has each."""

    number: int
    length: int
    terms: list[int]
    frequencies: list[int]


async def next_run(tx: Transaction, after: int) -> list[IndexedChunk]:
    """Return the next chunks that no postings tell of: at most `CHUNKS_PER_RUN`."""
    return [IndexedChunk(*row) for row in await tx.binary(SQL["unposted"], after=after, limit=CHUNKS_PER_RUN)]


def pack(run: Sequence[IndexedChunk], after: int) -> list[dict[str, object]]:
    """Return the postings of a run behind a number, ready to be stored. Half a second for a run of 14-word chunks."""
    counts = [len(chunk.terms) for chunk in run]
    terms = _flatten(chunk.terms for chunk in run)
    postings = np.empty(len(terms), POSTING)
    postings["number"] = np.repeat([chunk.number for chunk in run], counts)
    postings["length"] = np.repeat([min(chunk.length, 2**16 - 1) for chunk in run], counts)
    postings["count"] = _flatten(chunk.frequencies for chunk in run)
    order = np.argsort(terms, kind="stable")
    terms, postings = terms[order], postings[order]
    begins = np.ones(len(terms), dtype=np.bool_)
    begins[1:] = terms[1:] != terms[:-1]
    starts = np.flatnonzero(begins)
    ends = np.append(starts, len(terms))[1:]
    return [
        {"term": term, "first": after + 1, "holding": end - start, "chunks": postings[start:end].tobytes()}
        for term, start, end in zip(terms[starts].tolist(), starts.tolist(), ends.tolist(), strict=True)
    ]


def _flatten(lists: Iterable[list[int]]) -> NDArray[np.int64]:
    return np.fromiter(chain.from_iterable(lists), np.int64)


async def post(tx: Transaction, run: Sequence[IndexedChunk], after: int) -> None:
    """Store the postings of a run behind a number. Raises `ConcurrentUpdate` where another process has."""
    rows = await to_thread(pack, run, after)
    if await tx.run_many(SQL["add_posting"], rows) != len(rows):
        raise ConcurrentUpdate
    if not await tx.run(SQL["posted"], after=after, last=run[-1].number):
        raise ConcurrentUpdate


async def forget(tx: Transaction) -> int:
    """Remove a user's postings, and give how many: recall reads the chunks themselves again."""
    extent = await reach(tx)
    rows = await tx.run(SQL["forget_postings"])
    if not await tx.run(SQL["posted"], after=extent.posted, last=0):
        raise ConcurrentUpdate
    return rows
