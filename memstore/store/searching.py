"""A search through every table of a store, whoever's.

As the login itself, beyond any user's scope: for the operator who wants to see that nothing is left. Tombstones and
certificates are left out, which are there to stay and hold hashes, ids and counts.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple
from unicodedata import normalize

from psycopg import AsyncConnection
from psycopg.rows import kwargs_row
from psycopg.sql import SQL as Composable
from psycopg.sql import Identifier

from memstore.store import messages
from memstore.store.database import Database
from memstore.store.statements import statements

SQL = statements("searching")
STAYING = ["tombstones", "erasures"]


class Searched(NamedTuple):
    """A table, and its columns that may hold a text or an id."""

    name: str
    columns: list[str]


async def rows(database: Database, texts: Sequence[str]) -> tuple[int, dict[str, int]]:
    """Give how many tables there are, and how many of their rows have one of these texts, by table."""
    found: Counter[str] = Counter()
    everything = database.capabilities.ignores_policies
    users = [""] if everything else [str(user) async for user, _ in messages.everybody(database)]
    async with database.login() as connection:
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
    """Give a text as it may stand in a column: as it is, within JSON, and within JSON that is a text in JSON.

    Its accents may be characters of their own there, and not in what is looked for, or the other way round.
    """
    texts = [text, normalize("NFC", text), normalize("NFD", text)]
    within = [*texts, *(json.dumps(one, ensure_ascii=ascii)[1:-1] for one in texts for ascii in (False, True))]
    return list(dict.fromkeys([*within, *(json.dumps(one, ensure_ascii=False)[1:-1] for one in within)]))
