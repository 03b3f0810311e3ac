"""The queue of jobs: each says *look at this conversation*, and no more. Watermarks say what is done.

So a job that is lost, doubled or late does no harm. The tables and functions are procrastinate's; only this module
and `queue_schema` know them, and only `ingest/worker.py` knows its workers. Whoever adds messages adds a job in the
same transaction, through a function that belongs to the owner. The app role has no right on the queue; everything else
runs as the login, which must own the tables.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any
from uuid import UUID

from psycopg import AsyncConnection
from psycopg.rows import kwargs_row

from memstore.models import Job, JobCounts
from memstore.store.database import Database
from memstore.store.derivations import Place
from memstore.store.queue_schema import State
from memstore.store.statements import statements

SQL = statements("queue")
QUEUE, TASK = "derive", "memstore.derive"  # as the statements say
# New messages, what the scheduler found, what a backfill has. Facts that come next in line have one more: they would
# else make one step in each round of the queue.
PRIORITY_NEW, PRIORITY_SWEPT, PRIORITY_BACKFILL = 10, 5, 0
OPEN, FAILED = ("todo", "doing"), ("failed",)


def enqueued(conversation: UUID, first_seq: int) -> tuple[Any, Sequence[dict[str, Any]]]:
    """Return the statement, for `Transaction.run_together`, that adds a job for messages from `first_seq` on.

    Run it after the watermarks were raised: that locks them.
    """
    return SQL["enqueue"], [{"conversation_id": conversation, "before": first_seq - 1}]


async def defer(
    database: Database, places: Sequence[Place], priority: int, *, scheduled_at: datetime | None = None
) -> None:
    """Add a job for each conversation, to be done from `scheduled_at` on."""
    async with database.login() as connection:
        await _insert(connection, places, priority, scheduled_at)


async def statuses(database: Database, conversations: Iterable[UUID]) -> dict[UUID, bool]:
    """Return for each of these conversations with jobs whether one waits or runs; if not, they have failed."""
    async with database.login() as connection:
        cursor = await connection.execute(SQL["statuses"], {"conversations": [str(one) for one in conversations]})
        return dict(await cursor.fetchall())


async def has_other_job(database: Database, job: int, conversation: str) -> bool:
    """Return whether a conversation has another job than this one: it waits, or was given up."""
    async with database.login() as connection:
        row = await (
            await connection.execute(SQL["has_other_job"], {"id": job, "conversation": conversation})
        ).fetchone()
    return bool(row and row[0])


async def state(database: Database) -> State:
    """Return whether there is a queue, and its version, without waiting for a lock as `prepare` may."""
    async with database.login() as connection:
        row = await (await connection.execute(SQL["state"])).fetchone()
    assert row is not None
    return State(*row)


async def counts(database: Database) -> JobCounts:
    """Return how many jobs there are."""
    async with (
        database.login() as connection,
        connection.cursor(row_factory=kwargs_row(JobCounts)) as cursor,
    ):
        row = await (await cursor.execute(SQL["counts"])).fetchone()
    assert row is not None
    return row


async def jobs(database: Database, *, failed: bool = False, limit: int = 1000) -> list[Job]:
    """Return the jobs that wait or run, or those that have failed, by their number."""
    async with (
        database.login() as connection,
        connection.cursor(row_factory=kwargs_row(Job)) as cursor,
    ):
        await cursor.execute(SQL["jobs"], {"statuses": list(FAILED if failed else OPEN), "limit": limit})
        return await cursor.fetchall()


async def forget(database: Database, user: UUID, conversation: UUID | None = None) -> int:
    """Remove the waiting jobs of a user, or of one conversation; return how many. What runs ends by itself."""
    async with database.login() as connection:
        values = {"user": str(user), "conversation": None if conversation is None else str(conversation)}
        return (await connection.execute(SQL["forget"], values)).rowcount


async def retry(database: Database, ids: Sequence[int] | None = None) -> int:
    """Enqueue failed jobs again, these or all, as new ones; return how many."""
    async with database.login() as connection:
        cursor = await connection.execute(SQL["take_failed"], {"ids": None if ids is None else list(ids)})
        places = [Place(*row) for row in await cursor.fetchall()]
        await _insert(connection, places, PRIORITY_SWEPT, None)
    return len(places)


async def _insert(
    connection: AsyncConnection[Any], places: Sequence[Place], priority: int, scheduled_at: datetime | None
) -> None:
    if places:
        users, conversations = [list(ids) for ids in zip(*places, strict=True)]
        values = {"priority": priority, "scheduled_at": scheduled_at}
        await connection.execute(SQL["defer"], {"users": users, "conversations": conversations, **values})


@asynccontextmanager
async def scheduler_lock(database: Database) -> AsyncIterator[bool]:
    """Hold the lock of the scheduler; yield whether this process got it."""
    async with database.login() as connection:
        row = await (await connection.execute(SQL["scheduler_lock"])).fetchone()
        yield bool(row and row[0])


def is_of_backfill(priority: int) -> bool:
    """Return whether a job of this priority was enqueued for a backfill."""
    return priority <= PRIORITY_BACKFILL + 1


def next_in_line_priority(priority: int) -> int:
    """Return the priority of the facts that come next in line after a job of `priority`: one higher, once."""
    is_raised = priority in {PRIORITY_NEW + 1, PRIORITY_SWEPT + 1, PRIORITY_BACKFILL + 1}
    return priority if is_raised else priority + 1
