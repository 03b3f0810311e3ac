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
from typing import Any
from uuid import UUID

from memstore.ingest.derive import derivers_of
from memstore.ingest.resources import Resources, coalesced
from memstore.ingest.steps import Deriver, read_batch
from memstore.ingest.summaries.deriver import Summarize
from memstore.store import derivations
from memstore.store.database import Database
from memstore.store.embedders import OtherServes
from memstore.store.messages import LAST
from memstore.store.watermarks import Pending
from memstore.waiting import in_thread

SECONDS = 8.0
SAMPLE = 2000  # conversations to draw from: pages of ids, which are random
MESSAGES = 64  # of a conversation at a time, so that many are looked at


class _Dropped(Exception):
    """Rolls a sample's rows back."""


async def seconds_per_message(
    database: Database,
    resources: Resources,
    *,
    concurrency: int,
    user: UUID | None = None,
    seconds: float = SECONDS,
    seed: int = 0,
) -> dict[str, float]:
    """Give for each deriver how many seconds a message takes, all at work at once as in a backfill.

    Those that ask a chat model are left out, and those with nothing pending.
    """
    derivers = {one.name: one for one in derivers_of(coalesced(resources)) if not one.method.asks}
    found = {}
    for name, deriver in derivers.items():
        sample = await _sample(database, name, user, seed)
        if sample:
            share = seconds / len(derivers)
            found[name] = await _measured(database, deriver, sample, concurrency, share)
    return found


async def _sample(database: Database, deriver: str, user: UUID | None, seed: int) -> list[Pending]:
    async with database.operator() as scope:
        found = await derivations.pending(scope, deriver, only=user, limit=SAMPLE)
    step = MESSAGES if deriver != Summarize.name else LAST  # it reads from its last summary on, which is not kept here
    pieces = [replace(work, done_seq=at) for work in found for at in range(work.done_seq, work.last_seq, step)]
    random.Random(seed).shuffle(pieces)
    return pieces


async def _measured(
    database: Database, deriver: Deriver[Any, Any], sample: Sequence[Pending], concurrency: int, seconds: float
) -> float:
    """Give the seconds that a message takes while several conversations are derived at once."""
    await _tried(database, deriver, sample[0])  # the first time loads the encoder
    waiting = iter(sample)
    began = time.monotonic()
    done = 0

    async def work() -> None:
        nonlocal done
        for piece in waiting:
            messages = await _tried(database, deriver, piece)
            done += messages  # not in one line, which would read it before it waits
            if time.monotonic() - began > seconds:
                return

    await asyncio.gather(*(work() for _ in range(concurrency)))
    return (time.monotonic() - began) / max(1, done)


async def _tried(database: Database, deriver: Deriver[Any, Any], work: Pending) -> int:
    """Derive a piece of a conversation and drop it; give how many messages that were."""
    own, batch = await read_batch(database, deriver, work, MESSAGES)
    (made,) = await in_thread(own.think, [batch])
    try:
        async with database.scope(work.user_id) as scope:
            await own.write(scope, made)
            raise _Dropped
    except (_Dropped, OtherServes):
        pass
    return max(1, int(made.to_seq) - work.done_seq)


def forecast(messages: Mapping[str, int], rates: Mapping[str, float]) -> float:
    """Give the seconds that so many messages of each deriver take at these rates."""
    return sum(count * rates.get(name, 0.0) for name, count in messages.items())
