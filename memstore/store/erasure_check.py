"""Whether anything of what was erased is left: in the user's own tables, and in every table of the store.

The latter is read as the login itself, beyond any user's scope, for the operator. Tombstones and certificates are left
out, which are there to stay and hold hashes, ids and counts.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple
from unicodedata import normalize
from uuid import UUID

from psycopg import AsyncConnection
from psycopg.rows import kwargs_row
from psycopg.sql import SQL as Composable, Identifier

from memstore.store import erasure, messages
from memstore.store.database import Database, Transaction
from memstore.store.sql import statements

SQL = statements("erasure_check")
TABLES = 14  # in which ids of messages, facts and conversations may stand
TABLES_OF_USER = len(erasure.OF_USER) + len(erasure.OF_OPERATOR)


async def count_references(scope: Transaction, ids: Sequence[UUID]) -> dict[str, int]:
    """Return how many rows name these messages, facts or conversations, by table."""
    return dict(await scope.tuples(SQL["ids_left"], ids=list(ids), texts=[str(id) for id in ids]))


async def messages_of(scope: Transaction, conversations: Sequence[UUID]) -> list[UUID]:
    """Return the ids of all messages of these conversations."""
    return await scope.column(SQL["messages_of"], conversations=list(conversations))


async def count_user_rows(scope: Transaction) -> dict[str, int]:
    """Return how many rows the user has, by table, where there are any; those too that are the operator's."""
    found = dict(await scope.tuples(SQL["rows_of_user"])) | await erasure.count_operator_rows(scope)
    return {place: rows for place, rows in found.items() if rows}


STAYING = ["tombstones", "erasures"]


class Searched(NamedTuple):
    """A table, and its columns that may hold a text or an id."""

    name: str
    columns: list[str]


async def scan_tables(database: Database, texts: Sequence[str]) -> tuple[int, dict[str, int]]:
    """Return how many tables there are, and how many of their rows have one of these texts, by table."""
    found: Counter[str] = Counter()
    everything = database.capabilities.ignores_policies
    users = [""] if everything else [str(user) async for user, _ in messages.everybody(database)]
    async with database.owner_transaction() as connection:
        tables = await _tables(connection)
        for user in users:
            await connection.execute(SQL["as_user"], {"user": user})
            for table in tables:
                for text in texts:
                    found[table.name] += await _count(connection, table, text)
    return len(tables), {name: count for name, count in found.items() if count}


async def _tables(connection: AsyncConnection[Any]) -> list[Searched]:
    async with connection.cursor(row_factory=kwargs_row(Searched)) as cursor:
        return await (await cursor.execute(SQL["searched"], {"without": STAYING})).fetchall()


async def _count(connection: AsyncConnection[Any], table: Searched, text: str) -> int:
    columns = Composable(", ").join([Identifier(column) for column in table.columns])
    statement = Composable(SQL["rows_with"]).format(table=Identifier(table.name), columns=columns)
    row = await (await connection.execute(statement, {"forms": _forms(text)})).fetchone()
    return int(row[0]) if row else 0


def _forms(text: str) -> list[str]:
    """Return a text as it may stand in a column: as it is, within JSON, and within JSON that is a text in JSON.

    Its accents may be characters of their own there, and not in what is looked for, or the other way round.
    """
    texts = [text, normalize("NFC", text), normalize("NFD", text)]
    within = [*texts, *(json.dumps(one, ensure_ascii=ascii)[1:-1] for one in texts for ascii in (False, True))]
    return list(dict.fromkeys([*within, *(json.dumps(one, ensure_ascii=False)[1:-1] for one in within)]))
