"""How long a backfill will take here: some of what is pending is derived for a few seconds, and nothing of it kept.

The sample is of the pending texts themselves, drawn by chance, at the same concurrency, with the same encoder, and
written too, in transactions that are rolled back. Chat models are not asked: how long they take is not told by this.
Async only.

What a deriver takes goes by the size of what it read, for a history has long messages and short ones; and of the time
that several derivers take at once each has the share that it was at work. Measured is twice: how far the two are apart
tells how sure the forecast is.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import cycle
from typing import Any
from uuid import UUID

from memstore.ingest.derive import derivers_of
from memstore.ingest.resources import Resources, coalesced
from memstore.ingest.steps import Deriver, read_batch
from memstore.ingest.summaries.deriver import Summarize
from memstore.store import derivations, erasures, messages
from memstore.store.database import Database
from memstore.store.watermarks import LostRace, Pending
from memstore.waiting import in_thread

SECONDS = 8.0
TIMES = 2  # so often it is measured, for as long as they take together
SAMPLE = 2000  # conversations to draw from: pages of ids, which are random
# Of a conversation at a time; as many for each deriver, as in a turn: who has less to do is done, and the others have
# the processors to themselves. What is said after the last silence of a piece is in no summary yet: in short ones much.
MOST, TOKENS = 256, 8192
STARTING = 1.0  # seconds until a worker has its first jobs: about one, and up to 2.9 where two cores had nine others
FIRST = 8  # of each at the first try, which loads the encoder and the rules of languages, once in a process
Pieces = tuple[Deriver[Any, Any], Sequence[Pending]]  # a deriver and what it is tried on


@dataclass(frozen=True, slots=True)
class Forecast:
    """Seconds with a worker's start, and the least and the most that a measurement by itself would have told."""

    seconds: float
    least: float
    most: float


@dataclass(slots=True)
class _Tried:
    """What derivers were tried on: its size for each, seconds that each was at work, and the turns of all of them."""

    sizes: Counter[str] = field(default_factory=Counter)
    worked: dict[str, float] = field(default_factory=dict)
    turns: float = 0.0
    concurrency: int = 1

    def add(self, other: _Tried) -> None:
        for name, spent in other.worked.items():
            self.worked[name] = self.worked.get(name, 0.0) + spent
        self.sizes.update(other.sizes)
        self.turns += other.turns

    def seconds(self, sizes: Mapping[str, int]) -> float:
        """Give how long so much of each deriver takes, so many turns going on at once."""
        each = self.turns / self.concurrency / max(sum(self.worked.values()), 1e-9)
        return sum(each * spent * sizes[name] / max(self.sizes[name], 1) for name, spent in self.worked.items())


class _Dropped(Exception):
    """Rolls a sample's rows back."""


async def forecast(
    database: Database,
    resources: Resources,
    sizes: Mapping[str, int],
    *,
    concurrency: int,
    user: UUID | None = None,
    seconds: float = SECONDS,
    seed: int = 0,
) -> Forecast:
    """Give how long so much of each deriver takes, as in a turn: all that are behind at work at once.

    A size is that of messages, tokens and one for each. Those that ask a chat model are left out.
    """
    behind: list[Pieces] = []
    for deriver in derivers_of(coalesced(resources)):
        wanted = sizes.get(deriver.name) and not deriver.method.asks
        if wanted and (sample := await _sample(database, deriver.name, user)):
            behind.append((deriver, sample))
    if not behind:
        return Forecast(0.0, 0.0, 0.0)
    # Of a conversation one turn is taken at a time.
    concurrency = min(concurrency, max(len(sample) for _, sample in behind))
    first = [
        size
        for deriver, sample in behind
        for size, _ in await asyncio.gather(*(_tried(database, deriver, one, FIRST) for one in sample[-concurrency:]))
    ]
    most = min(MOST, max(FIRST, TOKENS * FIRST * len(first) // max(sum(first), 1)))
    # The second time goes on where the first was.
    endless = [(deriver, cycle(_pieces(deriver.name, sample, most, seed))) for deriver, sample in behind]
    whole, found = _Tried(concurrency=concurrency), list[float]()
    for _ in range(TIMES):
        once = await _measured(database, endless, most, concurrency, seconds / TIMES)
        found.append(once.seconds(sizes))
        whole.add(once)
    return Forecast(*(STARTING + one for one in (whole.seconds(sizes), min(found), max(found))))


async def _sample(database: Database, deriver: str, user: UUID | None) -> list[Pending]:
    async with database.operator() as scope:
        return await derivations.pending(scope, deriver, only=user, limit=SAMPLE)


def _pieces(deriver: str, sample: Sequence[Pending], most: int, seed: int) -> list[Pending]:
    """Give pieces of so many messages of conversations, in an order by chance, whole ones of those that are shorter."""
    pieces = []
    for work in sample:
        whole = (work.last_seq - work.done_seq) // most
        # Summaries are read from the last one on, which is not kept here.
        count = max(1, whole) if deriver != Summarize.name else 1
        pieces += [replace(work, done_seq=work.done_seq + number * most) for number in range(count)]
    random.Random(seed).shuffle(pieces)
    return pieces


async def _measured(
    database: Database,
    endless: Sequence[tuple[Deriver[Any, Any], Iterator[Pending]]],
    most: int,
    concurrency: int,
    seconds: float,
) -> _Tried:
    """Let several conversations take their turns at once for so long, each at least one; give what they came to."""
    found = _Tried(concurrency=concurrency)
    ending = time.monotonic() + seconds

    async def work() -> None:
        while True:
            began = time.monotonic()
            tried = [(deriver.name, _tried(database, deriver, next(pieces), most)) for deriver, pieces in endless]
            made = await asyncio.gather(*(one for _, one in tried))
            for (name, _), (size, spent) in zip(tried, made, strict=True):
                found.sizes[name] += size
                found.worked[name] = found.worked.get(name, 0.0) + spent
            # Its own time, and not that of the whole: whoever ends first does not work for the rest of it.
            found.turns += time.monotonic() - began
            if time.monotonic() > ending:
                return

    await asyncio.gather(*(work() for _ in range(concurrency)))
    return found


async def _tried(database: Database, deriver: Deriver[Any, Any], work: Pending, most: int) -> tuple[int, float]:
    """Derive a piece of a conversation and drop it; give the size of its messages, and the seconds."""
    began = time.monotonic()
    own, batch, epoch = await read_batch(database, deriver, work, most)
    (made,) = await in_thread(own.think, [batch])
    try:
        async with erasures.unless_erased(database, work.user_id, epoch) as scope:
            await own.write(scope, made)
            raise _Dropped
    except (_Dropped, LostRace):
        pass
    spent = time.monotonic() - began
    async with database.scope(work.user_id) as scope:
        tokens = await messages.tokens(scope, work.conversation_id, work.done_seq + 1, int(made.to_seq))
    return tokens + int(made.to_seq) - work.done_seq, spent
