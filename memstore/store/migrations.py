"""Brings a database to the newest schema, one process at a time; tells when it is too old or too new.

Alembic, with SQLAlchemy, is imported only when there is something to do: a store that opens asks one short question.
"""

from __future__ import annotations

import io
import threading
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
from psycopg.sql import SQL as Composable, Identifier

from memstore.errors import DatabaseError, SchemaOutdated, SchemaTooNew
from memstore.store.connections import options_of
from memstore.store.errors import describe_url, translate_errors
from memstore.store.sql import statements

if TYPE_CHECKING:
    from alembic.config import Config

SERVER_VERSION = 150000
# Alembic has one context in a process: of two threads, one would send its statements to the other's database.
ALEMBIC = threading.Lock()
SQL = statements("database")


def scripts() -> Path:
    """Return the folder of revisions: `_schema` in a wheel, in a checkout the folder `schema` next to the package."""
    packaged = Path(str(files("memstore"))) / "_schema"
    return packaged if packaged.is_dir() else packaged.parents[1] / "schema"


NEWEST_REVISION = max(path.name[:4] for path in (scripts() / "versions").glob("*.py"))


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
        row = connection.execute(SQL["schema_revision"]).fetchone() if made else None
    return Status(row[0] if row else None)


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
    if schema.revision is not None and not any((scripts() / "versions").glob(f"{schema.revision}_*.py")):
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
    from alembic import command  # noqa: PLC0415  (costs half a second, and most stores that open need it not)
    from sqlalchemy import create_engine, pool, text  # noqa: PLC0415
    from sqlalchemy.exc import DBAPIError  # noqa: PLC0415

    # The driver reads the URL: SQLAlchemy knows no host that is a folder, and no several hosts.
    engine = create_engine(
        "postgresql+psycopg://",
        creator=lambda: psycopg.connect(**options_of(url), prepare_threshold=None),
        poolclass=pool.NullPool,
    )
    try:
        with translate_errors(url), engine.begin() as connection:
            connection.execute(text(SQL["migration_lock"]))
            config = _configuration()
            config.attributes["connection"] = connection
            with ALEMBIC:
                command.upgrade(config, "head")
    except DBAPIError as error:
        with translate_errors(url):
            raise error.orig or error from None
    finally:
        engine.dispose()


def vacuum(url: str) -> list[str]:
    """Write every table of this login in the store's schema anew, without dead rows; return their names."""
    with translate_errors(url), psycopg.connect(**options_of(url), autocommit=True) as connection:
        tables = [name for (name,) in connection.execute(SQL["own_tables"]).fetchall()]
        for name in tables:
            connection.execute(Composable(SQL["vacuum"]).format(table=Identifier(name)))
    return tables


def sql() -> str:
    """Return the statements that make the tables from nothing, for administrators who run them by hand."""
    from alembic import command  # noqa: PLC0415

    config, printed = _configuration(), io.StringIO()
    config.output_buffer = printed
    with ALEMBIC:
        command.upgrade(config, "head", sql=True)
    return printed.getvalue()


def _configuration() -> Config:
    from alembic.config import Config  # noqa: PLC0415

    config = Config()
    config.set_main_option("script_location", str(scripts()).replace("%", "%%"))
    return config
