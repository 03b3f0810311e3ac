"""Remains: whether anything of what was erased still stands somewhere, asked in the user's own scope."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from memstore.store import erasures, removals
from memstore.store.database import Transaction
from memstore.store.statements import statements

SQL = statements("remains")
TABLES = 14  # in which ids of messages, facts and conversations may stand
TABLES_OF_USER = len(removals.OF_USER) + len(erasures.OF_OPERATOR)


async def ids(scope: Transaction, ids: Sequence[UUID]) -> dict[str, int]:
    """Give how many rows name these messages, facts or conversations, by table."""
    return dict(await scope.tuples(SQL["ids_left"], ids=list(ids), texts=[str(id) for id in ids]))


async def messages_of(scope: Transaction, conversations: Sequence[UUID]) -> list[UUID]:
    """Give the ids of all messages of these conversations."""
    return [id for (id,) in await scope.tuples(SQL["messages_of"], conversations=list(conversations))]


async def of_user(scope: Transaction) -> dict[str, int]:
    """Give how many rows the user has, by table, where there are any; those too that are the operator's."""
    found = dict(await scope.tuples(SQL["rows_of_user"])) | await erasures.rows_of_operator(scope)
    return {place: rows for place, rows in found.items() if rows}
