"""A sweep: what is pending and has no job gets one; a backfill with nothing left to do is done.

The queue is kept short, as looking for the next job takes longer the more there are: of a backfill over a million
conversations a window waits in the queue, the rest in the watermarks.
"""

from __future__ import annotations

from collections.abc import Collection
from uuid import UUID

from memstore.store import backfills, derivations, queue
from memstore.store.database import Database

WINDOW = 1000  # jobs of a kind that wait
PAGE = 500


async def sweep(database: Database, *, only: UUID | None = None) -> int:
    """Give jobs to what is pending and has none, or to what a backfill has of it; give how many.

    What a paused or cancelled backfill holds gets none.
    """
    async with queue.sweeping(database) as alone:
        return await _swept(database, only) if alone else 0


async def _swept(database: Database, only: UUID | None) -> int:
    async with database.operator() as scope:
        states = await backfills.states(scope)
    counts = await queue.counts(database)
    added = 0
    if only is None:
        room = WINDOW - (counts.waiting - counts.backfilling)
        added, _ = await _enqueued(database, None, states, room, queue.FOUND)
    room = WINDOW - counts.backfilling
    running = [one for one, state in states.items() if state == backfills.RUNNING]
    for backfill in running if only is None else {only}.intersection(running):
        new, finished = await _enqueued(database, backfill, (), room, queue.BACKFILL)
        added, room = added + new, room - new
        if finished:
            async with database.operator() as scope:
                await backfills.halt(scope, backfill, backfills.DONE)
    return added


async def _enqueued(
    database: Database, backfill: UUID | None, unlike: Collection[UUID], room: int, priority: int
) -> tuple[int, bool]:
    """Enqueue conversations as long as there is room; give how many, and whether none is left but those that failed."""
    added, finished, after = 0, True, derivations.BEGINNING
    while added < room:
        async with database.operator() as scope:
            page = await derivations.unfinished(scope, backfill, unlike=unlike, after=after, limit=PAGE)
        if not page:
            return added, finished
        after = page[-1]
        known = await queue.statuses(database, [place.conversation_id for place in page])
        places = [place for place in page if place.conversation_id not in known][: room - added]
        finished = finished and not places and not any(known.values())
        # By their own ids, which are as good as drawn by chance: those of one user would wait for each other to write.
        await queue.defer(database, sorted(places, key=lambda place: place.conversation_id), priority)
        added += len(places)
    return added, False
