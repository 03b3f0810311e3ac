"""A conversation's turn: the next batch of each deriver that is behind in it, and no more.

So a long history gives way to whoever is talking, a pause takes effect, and a worker is never busy for long. Facts of
a user are settled with each other: they are taken one conversation after the other, by their ids, as `derive` does.
Async only, as the workers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from memstore.errors import ModelUnavailable
from memstore.ingest.facts.deriver import Facts
from memstore.ingest.steps import UNIVERSAL, Deriver, Run, fail, recipe_of, step
from memstore.store import backfills, derivations
from memstore.store.database import Database
from memstore.store.derivations import Place
from memstore.store.watermarks import Behind

DeriversOf = Callable[[UUID | None], Mapping[str, Deriver[Any, Any]]]


@dataclass(frozen=True, slots=True)
class Turn:
    """What a turn came to, beside what its run says: whether more is to be done at once.

    `following` is the conversation whose facts come next, where this one's are done or failed.
    """

    left: bool
    following: Place | None


async def take_turn(
    database: Database,
    derivers_of: DeriversOf,
    user: UUID,
    conversation: UUID,
    run: Run,
    *,
    of_backfill: bool = False,
) -> Turn:
    """Let each deriver that is behind in a conversation make one step; what a paused backfill holds is left alone.

    `derivers_of` gives the derivers of a backfill, or of None, by name; `run` is told what they make, and which of them
    fail or wait for a model. In a turn `of_backfill` only what a running one has is done: units that were asked for
    alone are not to wait for everything else that their conversation lacks.
    """
    async with database.operator() as scope:
        behind = await derivations.behind(scope, user, conversation)
        for backfill in {one.backfill for one in behind if one.backfill and one.timed}:
            if await backfills.out_of_time(scope, backfill):
                behind = [one for one in behind if one.backfill != backfill]
    work = [one for one in behind if one.in_line and one.state != backfills.PAUSED]
    work = [one for one in work if one.state == backfills.RUNNING or not of_backfill]
    # At once: one computes while another writes. They know nothing of each other's rows.
    steps = [_stepped(database, derivers_of(one.backfill)[one.deriver], one, run) for one in work]
    made = await asyncio.gather(*steps, return_exceptions=True)
    for error in made:
        if isinstance(error, BaseException):
            raise error
    left = {one.deriver for one, more in zip(work, made, strict=True) if more}
    following = await _following(
        database, [one for one in work if one.deriver == Facts.name and Facts.name not in left]
    )
    return Turn(bool(left), following)


async def _following(database: Database, facts: Sequence[Behind]) -> Place | None:
    """Give whose facts come next: the same history gives the same facts, however many workers there are."""
    for work in facts:
        async with database.operator() as scope:
            found = await derivations.next_in_line(scope, work)
        return found if found and found.conversation_id != work.conversation_id else None
    return None


async def _stepped(database: Database, deriver: Deriver[Any, Any], work: Behind, run: Run) -> bool:
    """Make a step; give whether there is another to make. What was added meanwhile is such, or has a job of its own."""
    try:
        taken = await step(database, deriver, [work], run)
    except ModelUnavailable as error:
        run.waiting.append(f"{deriver.name}: {error}")
        return False
    except UNIVERSAL:
        raise
    except Exception as error:  # whatever a conversation does to a deriver, the others get their step
        await fail(database, work, await recipe_of(deriver), error, run)
        return False
    return not taken or taken[0].done_seq < taken[0].last_seq
