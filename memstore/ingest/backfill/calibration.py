"""How long a backfill will take here: some of what is pending is derived for a few seconds, and nothing of it kept.

The sample is of the pending texts themselves, at the same concurrency, with the same encoder, and written too, in
transactions that are rolled back. Chat models are not asked: how long they take is not told by this. Async only.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import cycle
from typing import Any
from uuid import UUID

from memstore.ingest.derive import derivers_of
from memstore.ingest.resources import Resources, coalesced
from memstore.ingest.steps import Deriver, read_batch
from memstore.ingest.summaries.deriver import Summarize
from memstore.store import derivations, erasures
from memstore.store.database import Database
from memstore.store.messages import LAST
from memstore.store.watermarks import LostRace, Pending
from memstore.waiting import in_thread

SECONDS = 8.0
SAMPLE = 2000  # conversations to draw from: pages of ids, which are random
MESSAGES = 64  # of a conversation at a time, so that many are looked at
Pieces = tuple[Deriver[Any, Any], Sequence[Pending]]  # a deriver and what it is tried on


class _Dropped(Exception):
    """Rolls a sample's rows back."""


async def seconds_for(
    database: Database,
    resources: Resources,
    messages: Mapping[str, int],
    *,
    concurrency: int,
    user: UUID | None = None,
    seconds: float = SECONDS,
    seed: int = 0,
) -> float:
    """Give how long so many messages of each deriver take, as in a turn: all that are behind at work at once.

    Those that ask a chat model are left out.
    """
    pieces: dict[str, Pieces] = {}
    for deriver in derivers_of(coalesced(resources)):
        if messages.get(deriver.name) and not deriver.method.asks:
            pieces[deriver.name] = deriver, await _sample(database, deriver.name, user, seed)
    total, done = 0.0, 0
    layers = sorted({messages[name] for name in pieces})  # one, unless some derivers are further than others
    for count in layers:
        behind = [one for name, one in pieces.items() if messages[name] >= count and one[1]]
        if behind:
            total += (count - done) * await _measured(database, behind, concurrency, seconds / len(layers))
        done = count
    return total


async def _sample(database: Database, deriver: str, user: UUID | None, seed: int) -> list[Pending]:
    async with database.operator() as scope:
        found = await derivations.pending(scope, deriver, only=user, limit=SAMPLE)
    step = MESSAGES if deriver != Summarize.name else LAST  # it reads from its last summary on, which is not kept here
    pieces = [replace(work, done_seq=at) for work in found for at in range(work.done_seq, work.last_seq, step)]
    random.Random(seed).shuffle(pieces)
    return pieces


async def _measured(database: Database, behind: Sequence[Pieces], concurrency: int, seconds: float) -> float:
    """Give the seconds that a message takes while several conversations are derived at once."""
    for deriver, sample in behind:
        await _tried(database, deriver, sample[0])  # the first time loads the encoder
    endless = [(deriver, cycle(sample)) for deriver, sample in behind]
    turns = iter(range(max(len(sample) for _, sample in behind)))
    began = time.monotonic()
    done = 0.0

    async def work() -> None:
        nonlocal done
        for _ in turns:
            steps = [_tried(database, deriver, next(sample)) for deriver, sample in endless]
            made = await asyncio.gather(*steps)
            done += sum(made) / len(made)  # not in one line, which would read it before it waits
            if time.monotonic() - began > seconds:
                return

    await asyncio.gather(*(work() for _ in range(concurrency)))
    return (time.monotonic() - began) / max(1.0, done)


async def _tried(database: Database, deriver: Deriver[Any, Any], work: Pending) -> int:
    """Derive a piece of a conversation and drop it; give how many messages that were."""
    own, batch, epoch = await read_batch(database, deriver, work, MESSAGES)
    (made,) = await in_thread(own.think, [batch])
    try:
        async with erasures.unless_erased(database, work.user_id, epoch) as scope:
            await own.write(scope, made)
            raise _Dropped
    except (_Dropped, LostRace):
        pass
    return max(1, int(made.to_seq) - work.done_seq)
