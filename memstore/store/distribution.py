"""One schema on many machines: Citus keeps the rows of a user together on one of them.

Tables with rows of users are distributed by `user_id`, all colocated, so that every statement of a scope, foreign keys
and transactions are of one node. Those of nobody (tokens, backfills, keys, the schema's revision) are copied to each.
The queue stays on the coordinator, where workers ask. What Citus refuses the schema does not have: tests hold it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, LiteralString, NamedTuple, TypeVar

import psycopg
from psycopg.rows import kwargs_row
from psycopg.sql import SQL as Composable, Identifier

from memstore.errors import DatabaseError
from memstore.store import migrations
from memstore.store.errors import describe_url, translate_errors
from memstore.store.sql import statements

T = TypeVar("T")

DATABASE = statements("database")
SQL = statements("distribution")
ROOT = "users"
ALONE = "none"  # else the root joins whatever was distributed by a uuid before


@dataclass(frozen=True, slots=True)
class Distributed:
    """What was done, in Citus' terms: tables distributed by user, and reference tables, which each node has."""

    distributed: tuple[str, ...]
    reference: tuple[str, ...]


class Table(NamedTuple):
    """A table; `by_user` where its rows are of users."""

    name: str
    by_user: bool
    forced: bool


class ForeignKey(NamedTuple):
    """A foreign key, and its definition as SQL."""

    table: str
    name: str
    definition: str


def distribute(url: str, progress: Callable[[str], None] = lambda _: None) -> Distributed:
    """Turn memstore's tables into Citus' in one transaction, rows included; what is distributed already stays so.

    Run it on the coordinator with the URL of the tables' owner, after `CREATE EXTENSION citus` and `citus_add_node`.
    Nobody can write meanwhile. `progress(table)` is called before each. Raises `DatabaseError` where there is no Citus,
    or no newest schema.
    """
    with translate_errors(url), psycopg.connect(url, connect_timeout=10) as connection:
        connection.execute(DATABASE["migration_lock"])
        tables = _check(connection, url)
        if tables:
            _distribute_all(connection, tables, progress)
    distributed = tuple(table.name for table in tables if table.by_user)
    return Distributed(distributed, tuple(table.name for table in tables if not table.by_user))


def _distribute_all(
    connection: psycopg.Connection[Any], tables: Sequence[Table], progress: Callable[[str], None]
) -> None:
    keys = _every(connection, ForeignKey, SQL["foreign_keys"])
    connection.execute(SQL["in_turn"])
    for key in keys:
        connection.execute(Composable(SQL["drop_key"]).format(**_named(key)))
    for table in tables:
        progress(table.name)
        _distribute(connection, table)
    for key in keys:
        definition = Composable(key.definition)  # the server's own words
        connection.execute(Composable(SQL["add_key"]).format(**_named(key), definition=definition))
    connection.execute(Composable(SQL["propagate"]).format(database=Identifier(connection.info.dbname)))


def _check(connection: psycopg.Connection[Any], url: str) -> list[Table]:
    row = connection.execute(SQL["citus"]).fetchone()
    assert row is not None
    installed, managed = row
    if not installed:
        raise DatabaseError(
            f"{describe_url(url)} has no Citus. On the coordinator: CREATE EXTENSION citus, then citus_add_node for "
            "each "
            "worker (docs/how-to/many-machines.md)."
        )
    status = migrations.status(url)
    if not status.current:
        raise DatabaseError(
            f"{describe_url(url)} has schema {status.revision}, not {status.head}. Run: memstore db upgrade"
        )
    done = {name for (name,) in connection.execute(SQL["distributed"])} if managed else set()
    return [table for table in _every(connection, Table, SQL["tables"]) if table.name not in done]


def _distribute(connection: psycopg.Connection[Any], table: Table) -> None:
    name = Identifier(table.name)
    if table.forced:
        connection.execute(Composable(SQL["unforced"]).format(table=name))
    if table.by_user:
        together = ALONE if table.name == ROOT else ROOT
        connection.execute(SQL["distribute"], {"table": table.name, "with": together})
    else:
        connection.execute(SQL["refer"], {"table": table.name})
    if table.forced:
        connection.execute(Composable(SQL["forced"]).format(table=name))


def _named(key: ForeignKey) -> dict[str, Identifier]:
    return {"table": Identifier(key.table), "name": Identifier(key.name)}


def _every(connection: psycopg.Connection[Any], build: Callable[..., T], statement: LiteralString) -> list[T]:
    with connection.cursor(row_factory=kwargs_row(build)) as cursor:
        return cursor.execute(statement).fetchall()
