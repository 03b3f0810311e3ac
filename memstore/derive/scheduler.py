"""Enqueues a job for each conversation that has pending messages and no job, and ends backfills that are done.

The queue is kept short, since fetching the next job takes longer the more there are: of a backfill over a million
conversations a window is in the queue, the rest in the watermarks.
"""

from __future__ import annotations

from collections.abc import Collection
from uuid import UUID

from memstore.store import backfills, queue, watermarks
from memstore.store.database import Database

QUEUE_WINDOW = 1000  # jobs of a kind that wait
PAGE = 500


async def enqueue_pending(database: Database, *, only: UUID | None = None) -> int:
    """Enqueue what is pending and has no job, or with `only` what a backfill has of it; return how many jobs.

    What a paused or cancelled backfill holds gets none. Does nothing while another process does the same.
    """
    async with queue.scheduler_lock(database) as is_mine:
        return await _enqueue_all(database, only) if is_mine else 0


async def _enqueue_all(database: Database, only: UUID | None) -> int:
    async with database.admin_transaction() as scope:
        states = await backfills.states(scope)
    counts = await queue.counts(database)
    total = 0
    if only is None:
        room = QUEUE_WINDOW - (counts.waiting - counts.backfilling)
        total, _ = await _enqueue(database, None, states, room, queue.PRIORITY_SWEPT)
    room = QUEUE_WINDOW - counts.backfilling
    running = [id for id, state in states.items() if state == backfills.RUNNING]
    for backfill in running if only is None else {only}.intersection(running):
        added, finished = await _enqueue(database, backfill, (), room, queue.PRIORITY_BACKFILL)
        total, room = total + added, room - added
        if finished:
            async with database.admin_transaction() as scope:
                await backfills.halt(scope, backfill, backfills.DONE)
    return total


async def _enqueue(
    database: Database, backfill: UUID | None, unlike: Collection[UUID], room: int, priority: int
) -> tuple[int, bool]:
    """Enqueue conversations while there is room; return how many, and whether only failed ones are left."""
    added, finished, after = 0, True, watermarks.BEGINNING
    while added < room:
        async with database.admin_transaction() as scope:
            page = await watermarks.unfinished(scope, backfill, unlike=unlike, after=after, limit=PAGE)
        if not page:
            return added, finished
        after = page[-1]
        open_jobs = await queue.statuses(database, [place.conversation_id for place in page])
        places = [place for place in page if place.conversation_id not in open_jobs][: room - added]
        finished = finished and not places and not any(open_jobs.values())
        # In the order of conversation ids, which mixes users: conversations of one user wait for each other to write.
        await queue.defer(database, sorted(places, key=lambda place: place.conversation_id), priority)
        added += len(places)
    return added, False
