"""The queue's tables, procrastinate's own, brought into the store's schema and kept at the library's version.

They are made when a worker, a backfill or the setting `queue_on_add` first needs them, and not by Alembic: they are
somebody else's, have sequences and triggers, and belong to no user. They hold ids of users and conversations, no text.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, LiteralString, NamedTuple

import psycopg
from psycopg.sql import SQL as Composable
from psycopg.sql import Identifier, Literal

from memstore.errors import DatabaseError, SchemaTooNew
from memstore.store.database import SQL as DATABASE
from memstore.store.faults import explained, masked
from memstore.store.roles import SQL as ROLES
from memstore.store.statements import statements

SQL = statements("queue")
MARK = "memstore: procrastinate "
VERSION = len("03.04.00_50")  # of the names of the library's scripts


class State(NamedTuple):
    """The schema, whether the queue's tables are in it, and what is noted of their version."""

    schema: str
    made: bool
    mark: str | None

    @property
    def version(self) -> str:
        """The last of the library's scripts that was run."""
        return (self.mark or "").removeprefix(MARK)


def prepare(url: str) -> None:
    """Make the queue's tables, or bring them to the library's version; what is current is left alone.

    Raises `SchemaTooNew` where a newer memstore made them, `DatabaseError` where somebody else did or this login may
    not.
    """
    with explained(url), psycopg.connect(url, connect_timeout=10) as connection:
        if not is_current(_state(connection), url):
            connection.execute(DATABASE["migration_lock"])
            state = _state(connection)
            if not is_current(state, url):  # no other process was quicker
                _bring(connection, state)


def is_made(url: str) -> bool:
    """Whether there is a queue."""
    with explained(url), psycopg.connect(url, connect_timeout=10) as connection:
        return _state(connection).made


def _state(connection: psycopg.Connection[Any]) -> State:
    row = connection.execute(SQL["state"]).fetchone()
    assert row is not None
    return State(*row)


def is_current(state: State, url: str) -> bool:
    """Whether the queue's tables are there and of the library's version. Raises as `prepare` does."""
    if state.made and not (state.mark or "").startswith(MARK):
        raise DatabaseError(
            f"{masked(url)} has tables of procrastinate that are not memstore's. Give memstore a schema of its own: "
            "postgresql://…?options=-csearch_path%3Dmemstore"
        )
    if state.made and state.version > _newest():
        raise SchemaTooNew(
            f"{masked(url)} has a queue of procrastinate {state.version}; the installed one knows up to {_newest()}. "
            "Upgrade it: pip install -U memstore procrastinate"
        )
    return state.made and state.version == _newest()


def _bring(connection: psycopg.Connection[Any], state: State) -> None:
    for script in _scripts(state.version) if state.made else [_whole()]:
        connection.execute(script)
    connection.execute(Composable(SQL["allow_enqueue"]).format(schema=Identifier(state.schema)))
    connection.execute(ROLES["rights"])  # the loader may add jobs too
    connection.execute(Composable(SQL["note_version"]).format(version=Literal(MARK + _newest())))


def _whole() -> LiteralString:
    from procrastinate.schema import SchemaManager  # noqa: PLC0415  (a tenth of a second, for those that need it)

    return SchemaManager.get_schema()


def _scripts(after: str) -> Iterator[LiteralString]:
    """Give the library's scripts of later versions, in their order."""
    for path in _migrations():
        if path.name[:VERSION] > after:
            yield path.read_text(encoding="utf-8")


def _newest() -> str:
    return _migrations()[-1].name[:VERSION]


def _migrations() -> list[Path]:
    from procrastinate.schema import SchemaManager  # noqa: PLC0415

    return sorted(Path(SchemaManager.get_migrations_path()).glob("*.sql"))
