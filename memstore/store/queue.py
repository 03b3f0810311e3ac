"""The queue of jobs: each says *look at this conversation*, and no more. Watermarks stay the truth of what is done.

So a job that is lost, doubled or late harms nothing. The tables and functions are procrastinate's; no other module
knows them, and `ingest/worker.py` alone knows its workers. Whoever adds messages adds a job in the same transaction,
through a function that belongs to the owner; the app role has no right on the queue, and everything else asks as the
login, which must own the tables.
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
# Priorities: what was just said, what a sweep found, what a backfill is to derive; and one higher the facts that come
# next in line, which would else take one step in each round of the queue.
NEW, FOUND, BACKFILL = 10, 5, 0
OPEN, FAILED = ("todo", "doing"), ("failed",)


def enqueued(conversation: UUID, first_seq: int) -> tuple[Any, Sequence[dict[str, Any]]]:
    """Give the statement, for `Transaction.run_together`, that adds a job for messages from this number on.

    To be run after the watermarks were raised: that locks them.
    """
    return SQL["enqueue"], [{"conversation_id": conversation, "before": first_seq - 1}]


async def defer(
    database: Database, places: Sequence[Place], priority: int, *, scheduled_at: datetime | None = None
) -> None:
    """Add a job for each conversation, to be done from a moment on."""
    async with database.login() as connection:
        await _deferred(connection, places, priority, scheduled_at)


async def statuses(database: Database, conversations: Iterable[UUID]) -> dict[UUID, bool]:
    """Give for those of these conversations that have jobs whether one of them waits or runs; else they have failed."""
    async with database.login() as connection:
        cursor = await connection.execute(SQL["statuses"], {"conversations": [str(one) for one in conversations]})
        return dict(await cursor.fetchall())


async def another(database: Database, job: int, conversation: str) -> bool:
    """Whether a conversation has a job beside this one: it waits, or was given up."""
    async with database.login() as connection:
        row = await (await connection.execute(SQL["another"], {"id": job, "conversation": conversation})).fetchone()
    return bool(row and row[0])


async def state(database: Database) -> State:
    """Give whether there is a queue, and of which version: no thread is left waiting for it, as `prepare` may."""
    async with database.login() as connection:
        row = await (await connection.execute(SQL["state"])).fetchone()
    assert row is not None
    return State(*row)


async def counts(database: Database) -> JobCounts:
    """Give how many jobs there are."""
    async with (
        database.login() as connection,
        connection.cursor(row_factory=kwargs_row(JobCounts)) as cursor,
    ):
        found = await (await cursor.execute(SQL["counts"])).fetchone()
    assert found is not None
    return found


async def jobs(database: Database, *, failed: bool = False, limit: int = 1000) -> list[Job]:
    """Give the jobs that wait or run, or those that have failed, by their number."""
    async with (
        database.login() as connection,
        connection.cursor(row_factory=kwargs_row(Job)) as cursor,
    ):
        await cursor.execute(SQL["jobs"], {"statuses": list(FAILED if failed else OPEN), "limit": limit})
        return await cursor.fetchall()


async def forget(database: Database, user: UUID, conversation: UUID | None = None) -> int:
    """Take the jobs of a user, or of one conversation, out of the queue; give how many. What runs ends by itself."""
    async with database.login() as connection:
        values = {"user": str(user), "conversation": None if conversation is None else str(conversation)}
        return (await connection.execute(SQL["forget"], values)).rowcount


async def retry(database: Database, ids: Sequence[int] | None = None) -> int:
    """Put failed jobs, these or all, back into the queue as new ones; give how many that were."""
    async with database.login() as connection:
        cursor = await connection.execute(SQL["take_failed"], {"ids": None if ids is None else list(ids)})
        places = [Place(*row) for row in await cursor.fetchall()]
        await _deferred(connection, places, FOUND, None)
    return len(places)


async def _deferred(
    connection: AsyncConnection[Any], places: Sequence[Place], priority: int, scheduled_at: datetime | None
) -> None:
    if places:
        users, conversations = [list(ids) for ids in zip(*places, strict=True)]
        values = {"priority": priority, "scheduled_at": scheduled_at}
        await connection.execute(SQL["defer"], {"users": users, "conversations": conversations, **values})


@asynccontextmanager
async def sweeping(database: Database) -> AsyncIterator[bool]:
    """Keep other processes from sweeping; give whether none does so already."""
    async with database.login() as connection:
        row = await (await connection.execute(SQL["sweeping"])).fetchone()
        yield bool(row and row[0])


class Life:
    """What shows the other workers that one lives: a lock, of a transaction as long as the process."""

    def __init__(self, connection: AsyncConnection[Any]) -> None:
        self._connection = connection

    async def show(self, worker: int) -> None:
        """Show it of the worker of this number; again and again, as a connection may be lost unseen, which this tells.

        Raises the driver's errors.
        """
        await self._connection.execute(SQL["live"], {"worker": worker})


@asynccontextmanager
async def living(database: Database) -> AsyncIterator[Life]:
    """Give what shows that a worker of this process lives, until it is left or the process ends, however it ends."""
    async with database.login() as connection:
        yield Life(connection)


async def ended(database: Database, workers: Iterable[int]) -> set[int]:
    """Give those of these workers whose processes have ended, or that the server has lost."""
    async with database.login() as connection:
        cursor = await connection.execute(SQL["ended"], {"workers": list(workers)})
        return {row[0] for row in await cursor.fetchall()}


def is_of_backfill(priority: int) -> bool:
    """Whether a job of this priority is there for a backfill."""
    return priority <= BACKFILL + 1


def hurried(priority: int) -> int:
    """Give the priority of what comes next in line after a job of this one."""
    return priority if priority in {NEW + 1, FOUND + 1, BACKFILL + 1} else priority + 1
