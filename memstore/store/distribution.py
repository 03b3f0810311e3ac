"""One schema on many machines: Citus keeps the rows of a user together on one of them.

Tables with rows of users are distributed by `user_id`, all colocated, so that every statement of a scope, foreign keys
and transactions are of one node. The key of tombstones is copied to each. The operator's tables (tokens, backfills, the
schema's revision) stay on the coordinator, as does the queue: workers ask there. Tests check that neither the schema
nor a statement has anything that Citus refuses.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg.sql import SQL as Composable, Identifier

from memstore.errors import DatabaseError
from memstore.store import migrations
from memstore.store.connections import options_of
from memstore.store.errors import describe_url, translate_errors
from memstore.store.sql import statements

SQL = statements("distribution")


@dataclass(frozen=True, slots=True)
class DistributedTables:
    """The result, in Citus' terms: tables distributed by user, and reference tables, which each node has."""

    distributed: tuple[str, ...]
    reference: tuple[str, ...]


def distribute(url: str, progress: Callable[[str], None] = lambda _: None) -> DistributedTables:
    """Turn memstore's tables into Citus' in one transaction, rows included; distributed tables stay as they are.

    Run it on the coordinator with the URL of the tables' owner, after `CREATE EXTENSION citus` and `citus_add_node`.
    Nobody can write meanwhile. `progress(table)` is called before each. Raises `DatabaseError` where there is no Citus,
    or no newest schema.
    """
    with translate_errors(url), psycopg.connect(**options_of(url)) as connection:
        connection.execute(migrations.SQL["migration_lock"])
        tables = _check(connection, url)
        if tables:
            _distribute(connection, tables, progress)
    distributed = tuple(name for name, by_user in tables.items() if by_user)
    return DistributedTables(distributed, tuple(name for name, by_user in tables.items() if not by_user))


def is_distributed(url: str) -> bool:
    with translate_errors(url), psycopg.connect(**options_of(url)) as connection:
        return "users" in (_distributed(connection) or ())


def _distributed(connection: psycopg.Connection[Any]) -> set[str] | None:
    """Return which tables are distributed, or copied to each node; None where there is no Citus."""
    [(has_citus,)] = connection.execute(SQL["citus"]).fetchall()
    return {name for (name,) in connection.execute(SQL["distributed"])} if has_citus else None


def _distribute(connection: psycopg.Connection[Any], tables: dict[str, bool], progress: Callable[[str], None]) -> None:
    keys = [
        # The definition is in the server's own words.
        ({"table": Identifier(table), "name": Identifier(name)}, Composable(definition))
        for table, name, definition in connection.execute(SQL["foreign_keys"]).fetchall()
        if table in tables
    ]
    connection.execute(SQL["in_turn"])
    connection.execute(SQL["nested"])
    for names, _ in keys:
        connection.execute(Composable(SQL["drop_key"]).format(**names))
    for name, by_user in tables.items():
        progress(name)
        table = Identifier(name)
        connection.execute(Composable(SQL["unforced"]).format(table=table))
        if by_user:
            # The root of the foreign keys is alone: else it joins whatever was distributed by a uuid before.
            beside = "none" if name == "users" else "users"
            connection.execute(SQL["distribute"], {"table": name, "with": beside})
        else:
            connection.execute(SQL["refer"], {"table": name})
        connection.execute(Composable(SQL["forced"]).format(table=table))
    for names, definition in keys:
        connection.execute(Composable(SQL["add_key"]).format(**names, definition=definition))
    connection.execute(Composable(SQL["propagate"]).format(database=Identifier(connection.info.dbname)))


def _check(connection: psycopg.Connection[Any], url: str) -> dict[str, bool]:
    """Return the tables to be distributed, and whether their rows are of users."""
    done = _distributed(connection)
    if done is None:
        raise DatabaseError(
            f"{describe_url(url)} has no Citus. On the coordinator: CREATE EXTENSION citus, then citus_add_node for "
            "each worker (docs/how-to/many-machines.md)."
        )
    status = migrations.status(url)
    if not status.current:
        raise DatabaseError(
            f"{describe_url(url)} has schema {status.revision}, not {status.head}. Run: memstore db upgrade"
        )
    return {name: by_user for name, by_user in connection.execute(SQL["tables"]) if name not in done}
