"""Erasures: who may write while one goes on, and the certificates that are kept.

An erasure locks in this order: the user's row against derivers, then the conversations against whoever adds messages,
then the user's row against everybody. Each of the others holds one of these and waits for no other, or for a moment;
for what is left of deadlocks the erasure gives way and begins again, for it is the one that can wait.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

import psycopg

from memstore.errors import DatabaseError
from memstore.models import Certificate, Json
from memstore.store.database import Database, Transaction, columns
from memstore.store.statements import statements
from memstore.store.watermarks import LostRace

SQL = statements("erasures")
OF_OPERATOR = {"backfills": SQL["remove_backfills"], "api_tokens": SQL["take_back_tokens"]}
TRIES = 100  # of 0.4 seconds


class Epoch(NamedTuple):
    """Since when there is a user, and how often something of the user was erased: whoever has read before that and
    writes after it would bring it back."""

    created_at: datetime
    erasures: int


class Locked(NamedTuple):
    """How many units of recall a locked user has, and up to which number they are in postings."""

    units: int
    posted: int


async def epoch(scope: Transaction) -> Epoch | None:
    """Give the user's epoch; None where there is no such user."""
    return await scope.one(SQL["epoch"], Epoch)


async def hold(scope: Transaction) -> Epoch | None:
    """Give the epoch and let nobody erase, and nobody else derive, until the transaction ends."""
    return await scope.one(SQL["hold"], Epoch)


async def share(scope: Transaction) -> Epoch | None:
    """Give the epoch and let nobody erase until the transaction ends."""
    return await scope.one(SQL["share"], Epoch)


@asynccontextmanager
async def unless_erased(database: Database, user: UUID, began: Epoch | None) -> AsyncIterator[Transaction]:
    """Open a transaction that writes what was made of what was read at an epoch.

    Raises `LostRace` where something of the user was erased since. Costs no round trip of its own.
    """
    async with database.scope(user, first=hold) as scope:
        if await hold(scope) != began:
            raise LostRace
        yield scope


async def lock(scope: Transaction, conversations: Sequence[UUID] | None) -> Locked | None:
    """Let nobody write anything of the user until the transaction ends; None where there is no such user.

    `conversations` are those of which something is erased, None for all.
    """
    if await hold(scope) is None:
        return None
    await scope.run(SQL["impatiently"])
    ids = None if conversations is None else list(conversations)
    await scope.tuples(SQL["lock_conversations"], ids=ids)
    locked = await scope.one(SQL["lock_user"], Locked)
    await scope.tuples(SQL["lock_conversations"], ids=ids)  # one that was new meanwhile
    return locked


async def count(scope: Transaction) -> None:
    """Begin another epoch: whoever has read before is not to write."""
    await scope.run(SQL["count_erasure"])


def is_in_the_way(error: DatabaseError) -> bool:
    """Whether an erasure failed since others hold what it waits for: it is to begin again."""
    return isinstance(error.__cause__, psycopg.errors.LockNotAvailable | psycopg.errors.DeadlockDetected)


async def keep(scope: Transaction, certificate: Certificate) -> datetime:
    """Keep a certificate, which has an id; give when that was."""
    body = {key: value for key, value in certificate.as_dict().items() if key not in ("id", "recorded_at")}
    row = await scope.one(SQL["add_erasure"], columns, id=certificate.id, scope=str(certificate.scope), body=body)
    assert row is not None
    recorded_at: datetime = row["recorded_at"]
    return recorded_at


async def certificates(scope: Transaction, *, id: UUID | None = None, limit: int = 1000) -> list[Certificate]:
    """Give a user's certificates, the latest first, or the one of an id."""
    return await scope.all(SQL["erasures"], _certificate, id=id, limit=limit)


async def latest(scope: Transaction, conversation: UUID | None = None) -> datetime | None:
    """Give when everything of the user, or of this conversation, was erased last; None where it never was."""
    row = await scope.one(SQL["latest"], columns, conversation_id=None if conversation is None else str(conversation))
    at: datetime | None = row["recorded_at"] if row else None
    return at


def _certificate(id: UUID, body: Json, recorded_at: datetime) -> Certificate:
    return Certificate.from_dict(body | {"id": id, "recorded_at": recorded_at})


async def remove_of_operator(scope: Transaction) -> dict[str, int]:
    """Remove the operator's rows that are of this user alone, and take back the user's tokens; give how many, by table.

    The rows of tokens stay, without a name: where none was ever made, a server on this machine asks for none.
    """
    await scope.run(SQL["as_operator"])
    return {table: await scope.run(statement, user=scope.user_id) for table, statement in OF_OPERATOR.items()}


async def rows_of_operator(scope: Transaction) -> dict[str, int]:
    """Give how many of the operator's rows are of this user alone, by table."""
    await scope.run(SQL["as_operator"])
    return dict(await scope.tuples(SQL["rows_of_operator"], user=scope.user_id))
