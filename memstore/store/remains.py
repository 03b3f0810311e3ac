"""Remains: whether anything of what was erased still stands somewhere, asked in the user's own scope.

What is left beyond rows, in pages that no row uses and in the log of the server, `searching` looks for.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple
from uuid import UUID

from memstore.store import erasures, removals
from memstore.store.database import Transaction
from memstore.store.statements import statements

SQL = statements("remains")
TABLES = 14  # in which ids of messages, facts and conversations may stand, or their words
TABLES_OF_USER = len(removals.OF_USER) + len(erasures.OF_OPERATOR)


class Row(NamedTuple):
    """A row in which words of an erased text stand, and its table."""

    place: str
    id: UUID


async def words(scope: Transaction, words: Sequence[str]) -> list[Row]:
    """Give where words stand that no message says: in messages themselves is not looked."""
    left = [word for (word,) in await scope.tuples(SQL["words_left"], words=list(words))] if words else []
    unsaid = [word for (word,) in await scope.tuples(SQL["words_unsaid"], words=left)] if left else []
    return [Row(*row) for row in await scope.tuples(SQL["rows_left"], words=unsaid)] if unsaid else []


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
