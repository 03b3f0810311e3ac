"""The queue of jobs: each says *look at this conversation*, and no more. Watermarks say what is done.

So a job that is lost, doubled or late does no harm. The scheduler adds them; the login must own the tables.

The tables and functions are procrastinate's, and only this module knows them. They are made when a worker or a backfill
first needs them, and not by a revision: they have sequences and triggers, and belong to no user. They hold ids of users
and conversations, never text.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, LiteralString, NamedTuple
from uuid import UUID

import psycopg
from psycopg import AsyncConnection
from psycopg.sql import SQL as Composable, Literal

from memstore.errors import DatabaseError, SchemaTooNew
from memstore.models import Job, JobCounts
from memstore.store.connections import options_of
from memstore.store.database import SQL as DATABASE, Database
from memstore.store.errors import describe_url, translate_errors
from memstore.store.sql import statements
from memstore.store.watermarks import ConversationKey

SQL = statements("queue")
# As the statements say.
QUEUE, TASK = "derive", "memstore.derive"
# Priorities of the scheduler's jobs and of a backfill's. Facts that come next in line have one more: they would
# else make one step in each round of the queue.
PRIORITY_SWEPT, PRIORITY_BACKFILL = 5, 0


async def defer(database: Database, places: Sequence[ConversationKey], priority: int) -> None:
    async with database.owner_transaction() as connection:
        await _insert(connection, places, priority)


async def statuses(database: Database, conversations: Iterable[UUID]) -> dict[UUID, bool]:
    """Return for each of these conversations with jobs whether one waits or runs; if not, they have failed."""
    return dict(
        await _fetch(database, SQL["statuses"], conversations=[str(conversation) for conversation in conversations])
    )


async def has_other_job(database: Database, job: int, conversation: str) -> bool:
    """Return whether a conversation has another job than this one: it waits, or was given up."""
    return bool(await _fetch(database, SQL["other_jobs"], id=job, conversation=conversation))


async def state(database: Database) -> QueueState:
    """Return whether there is a queue, and its version, without waiting for a lock as `prepare` may."""
    return QueueState(*(await _fetch(database, SQL["state"]))[0])


async def counts(database: Database) -> JobCounts:
    return JobCounts(*(await _fetch(database, SQL["counts"]))[0])


async def jobs(database: Database, *, failed: bool = False, limit: int = 1000) -> list[Job]:
    """Return the jobs that wait or run, or those that have failed, by their number, with what went wrong."""
    statuses = ["failed"] if failed else ["todo", "doing"]
    rows = await _fetch(database, SQL["jobs"], statuses=statuses, limit=limit)
    users, conversations = [row[1] for row in rows], [row[2] for row in rows]
    errors = await _fetch(database, SQL["errors"], users=users, conversations=conversations) if rows else []
    by_place = {(user, conversation): error for user, conversation, error in errors}
    return [Job(*(*row, by_place.get(row[1:3]))) for row in rows]


async def forget(database: Database, user: UUID, conversation: UUID | None = None) -> int:
    """Remove the waiting jobs of a user, or of one conversation; return how many. What runs ends by itself."""
    values = {"user": str(user), "conversation": None if conversation is None else str(conversation)}
    return len(await _fetch(database, SQL["forget"], **values))


async def enqueue_events(database: Database) -> None:
    """Move the events for webhooks into the queue: a job for each webhook that wants an event."""
    await _fetch(database, SQL["enqueue_events"])


async def clear_deliveries(
    database: Database, *, webhook: UUID | None = None, user: UUID | None = None, facts: Sequence[UUID] | None = None
) -> None:
    """Clear the deliveries to a webhook, or those about a user's facts, these or all: such a job does nothing."""
    texts = None if facts is None else [str(fact) for fact in facts]
    values = {"webhook": webhook and str(webhook), "user": user and str(user), "facts": texts}
    await _fetch(database, SQL["clear_deliveries"], **values)


async def _fetch(database: Database, statement: LiteralString, **values: Any) -> list[Any]:
    async with database.owner_transaction() as connection:
        return await (await connection.execute(statement, values)).fetchall()


async def retry(database: Database, ids: Sequence[int] | None) -> int:
    """Enqueue failed jobs again, these or all, as new ones; return how many."""
    async with database.owner_transaction() as connection:
        cursor = await connection.execute(SQL["take_failed"], {"ids": None if ids is None else list(ids)})
        places = [ConversationKey(*row) for row in await cursor.fetchall()]
        await _insert(connection, places, PRIORITY_SWEPT)
    return len(places)


async def _insert(connection: AsyncConnection[Any], places: Sequence[ConversationKey], priority: int) -> None:
    if places:
        users, conversations = [list(ids) for ids in zip(*places, strict=True)]
        values = {"users": users, "conversations": conversations, "priority": priority}
        await connection.execute(SQL["defer"], values)


@asynccontextmanager
async def scheduler_lock(database: Database) -> AsyncIterator[bool]:
    """Hold the lock of the scheduler; yield whether this process got it."""
    async with database.owner_transaction() as connection:
        [[is_taken]] = await (await connection.execute(SQL["scheduler_lock"])).fetchall()
        yield is_taken


def is_of_backfill(priority: int) -> bool:
    return priority <= PRIORITY_BACKFILL + 1


def next_in_line_priority(priority: int) -> int:
    """Return the priority of the facts that come next in line after a job of `priority`: one higher, once."""
    is_raised = priority in {PRIORITY_SWEPT + 1, PRIORITY_BACKFILL + 1}
    return priority if is_raised else priority + 1


MARK = "memstore: procrastinate "
VERSION_LENGTH = len("03.04.00_50")


class QueueState(NamedTuple):
    """The schema, whether the queue's tables are in it, and what is noted of their version."""

    schema: str
    made: bool
    mark: str | None

    @property
    def version(self) -> str:
        """The last of the library's scripts that was run."""
        return (self.mark or "").removeprefix(MARK)


def prepare_queue(url: str) -> None:
    """Make the queue's tables, or bring them to the library's version; current ones are left alone.

    Raises `SchemaTooNew` where a newer memstore made them, `DatabaseError` where somebody else did or this login may
    not.
    """
    with translate_errors(url), psycopg.connect(**options_of(url)) as connection:
        if not is_current(_state(connection), url):
            connection.execute(DATABASE["migration_lock"])
            state = _state(connection)
            if not is_current(state, url):  # no other process was quicker
                _bring(connection, state)


def _state(connection: psycopg.Connection[Any]) -> QueueState:
    return QueueState(*connection.execute(SQL["state"]).fetchall()[0])


def is_current(state: QueueState, url: str) -> bool:
    """Return whether the queue's tables are there and of the library's version. Raises as `prepare` does."""
    if state.made and not (state.mark or "").startswith(MARK):
        raise DatabaseError(
            f"{describe_url(url)} has tables of procrastinate that are not memstore's. Give memstore a schema of "
            "its own: postgresql://…?options=-csearch_path%3Dmemstore"
        )
    if state.made and state.version > _newest():
        raise SchemaTooNew(
            f"{describe_url(url)} has a queue of procrastinate {state.version}; the installed one knows up to "
            f"{_newest()}. Upgrade it: pip install -U memstore-llm procrastinate"
        )
    return state.made and state.version == _newest()


def _bring(connection: psycopg.Connection[Any], state: QueueState) -> None:
    from procrastinate.schema import SchemaManager  # noqa: PLC0415  (a tenth of a second, for those that need it)

    later = [path.read_text(encoding="utf-8") for path in _migrations() if path.name[:VERSION_LENGTH] > state.version]
    for script in later if state.made else [SchemaManager.get_schema()]:
        connection.execute(script)
    connection.execute(Composable(SQL["note_version"]).format(version=Literal(MARK + _newest())))


def _newest() -> str:
    return _migrations()[-1].name[:VERSION_LENGTH]


def _migrations() -> list[Path]:
    from procrastinate.schema import SchemaManager  # noqa: PLC0415

    return sorted(Path(SchemaManager.get_migrations_path()).glob("*.sql"))
