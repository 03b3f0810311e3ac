"""Brings a database to the newest schema, one process at a time; tells when it is too old or too new.

A revision is a file `NNNN_name.sql`; the table `memstore_schema` has the number of the last one that was run.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any, LiteralString

import psycopg
from psycopg.sql import SQL as Composable, Composed, Identifier

from memstore.errors import DatabaseError, SchemaOutdated, SchemaTooNew
from memstore.store import roles
from memstore.store.connections import options_of
from memstore.store.errors import describe_url, translate_errors
from memstore.store.sql import parse_statements, statements

SERVER_VERSION = 150000
SQL = statements("database")


def revisions() -> dict[str, Path]:
    """Return the files of revisions by number: in a wheel those of `_schema`, in a checkout those of `schema`."""
    packaged = Path(str(files("memstore"))) / "_schema"
    folder = packaged if packaged.is_dir() else packaged.parents[1] / "schema"
    return {path.name[:4]: path for path in sorted(folder.glob("versions/*.sql"))}


NEWEST_REVISION = max(revisions())


@dataclass(frozen=True, slots=True)
class Status:
    """The revision of a database's tables (None: there are none) and the one that this memstore wants."""

    revision: str | None
    head: str = field(default_factory=lambda: NEWEST_REVISION)

    @property
    def current(self) -> bool:
        return self.revision == self.head


def status(url: str) -> Status:
    """Return the state of a database's tables. Raises `DatabaseError` where the server is too old for them."""
    with translate_errors(url), psycopg.connect(**options_of(url)) as connection:
        if connection.info.server_version < SERVER_VERSION:
            raise DatabaseError(
                f"{describe_url(url)} is PostgreSQL {connection.info.server_version // 10000}; memstore needs 15 or "
                "newer. Give another URL, or leave it out for the embedded Postgres."
            )
        made, foreign_tables = connection.execute(SQL["schema_exists"]).fetchone() or (False, False)
        if not made and foreign_tables:
            raise DatabaseError(
                f"{describe_url(url)} has a table 'messages' that is not memstore's. Give memstore a database "
                "of its own, or a schema: postgresql://…?options=-csearch_path%3Dmemstore"
            )
        return Status(_read_revision(connection) if made else None)


def _read_revision(connection: psycopg.Connection[Any]) -> str | None:
    row = connection.execute(SQL["schema_revision"]).fetchone()
    return row[0] if row else None


def prepare(url: str, *, upgrade_old: bool) -> None:
    """Make the tables of a new database; upgrade those of an old one only where that was asked for."""
    schema = status(url)
    if schema.current:
        return
    if schema.revision is not None and schema.revision > NEWEST_REVISION:
        raise SchemaTooNew(
            f"{describe_url(url)} has schema {schema.revision}; this memstore knows up to {NEWEST_REVISION}. "
            "Upgrade memstore: pip install -U memstore-llm"
        )
    if schema.revision is not None and schema.revision not in revisions():
        raise SchemaOutdated(
            f"{describe_url(url)} has schema {schema.revision}, which this memstore cannot upgrade: it is of a version "
            "before the first release. Export with that version (memstore export), and import into another database."
        )
    if schema.revision is not None and not upgrade_old:
        raise SchemaOutdated(
            f"{describe_url(url)} has schema {schema.revision}, older than {NEWEST_REVISION}. Run: memstore db upgrade"
        )
    upgrade(url)


def upgrade(url: str) -> None:
    """Bring the tables to the newest revision, in one transaction under an advisory lock."""
    with translate_errors(url), psycopg.connect(**options_of(url), prepare_threshold=None) as connection:
        connection.execute(SQL["migration_lock"])
        connection.execute(SQL["schema_table"])
        for statement in _statements_after(_read_revision(connection)):
            connection.execute(statement)


def _statements_after(revision: str | None) -> list[LiteralString | Composed]:
    """Return the statements of the revisions after one, of all for None, and those that give the roles their rights.

    One by one: a Citus sends its nodes the whole message that a change of a table is in.
    """
    later = {number: path for number, path in revisions().items() if number > (revision or "")}
    texts = [path.read_text(encoding="utf-8") for path in later.values()]
    changes = [statement for text in texts for statement in parse_statements(text).values()]
    noted = [Composable(SQL["note_revision"]).format(revision=number) for number in [*later][-1:]]
    return [*changes, *noted, roles.rights()]


def vacuum(url: str) -> list[str]:
    """Write every table of this login in the store's schema anew, without dead rows; return their names."""
    with translate_errors(url), psycopg.connect(**options_of(url), autocommit=True) as connection:
        tables = [name for (name,) in connection.execute(SQL["own_tables"]).fetchall()]
        for name in tables:
            connection.execute(Composable(SQL["vacuum"]).format(table=Identifier(name)))
    return tables


def sql() -> str:
    """Return the statements that make the tables from nothing, for administrators who run them by hand."""
    changes = [
        str(statement) if isinstance(statement, str) else statement.as_string() for statement in _statements_after(None)
    ]
    return ";\n\n".join(["BEGIN", SQL["schema_table"], *changes, "COMMIT;\n"])
