"""What a server is, and what the login may become there."""

from __future__ import annotations

from dataclasses import dataclass

import psycopg
from psycopg.rows import kwargs_row

from memstore.errors import DatabaseError, ExtensionMissing
from memstore.store.errors import describe_url, translate_errors
from memstore.store.sql import statements

SERVER_VERSION = 150000
# What a login is granted, and then becomes in each transaction: the first of these that it may.
ROLES = ("memstore_app", "memstore_loader", "memstore_reader", "memstore_admin")
READING = ("memstore_reader", "memstore_admin")
SQL = statements("database")


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What the server is, and whether this login must and may become one of memstore's roles.

    `schema` is where memstore's tables are, `vectors` where pgvector is. `pooled`: between here and the server is a
    pooler, which may give each transaction another session.
    """

    server_version: int
    pgvector: str | None
    pgvector_available: str | None
    ignores_policies: bool
    role: str | None
    schema: str
    vectors: str
    pooled: bool

    @property
    def confinement(self) -> dict[str, str]:
        """What a transaction is confined with, beside its user."""
        return {"role": self.role or "", "schema": self.schema, "vectors": self.vectors}

    @property
    def writes(self) -> bool:
        """Return whether anything can be stored."""
        return self.role not in READING


UNKNOWN = Capabilities(0, None, None, False, None, "public", "public", False)


def capabilities(url: str) -> Capabilities:
    """Ask the server what it is; raise `DatabaseUnreachable` or `ExtensionMissing` where it will not do."""
    with translate_errors(url), psycopg.connect(url, connect_timeout=10) as connection:  # noqa: SIM117
        with connection.cursor(row_factory=kwargs_row(Capabilities)) as cursor:
            asked = {"roles": list(ROLES), "process": connection.info.backend_pid}
            found = cursor.execute(SQL["capabilities"], asked).fetchone()
    assert found is not None
    if found.server_version < SERVER_VERSION:
        raise DatabaseError(
            f"{describe_url(url)} is PostgreSQL {found.server_version // 10000}; memstore needs 15 or newer. "
            "Give another URL, or leave it out for the embedded Postgres."
        )
    _check_pgvector(found, url)
    return found


def _check_pgvector(found: Capabilities, url: str) -> None:
    version = found.pgvector or found.pgvector_available
    if version is None:
        raise ExtensionMissing(
            f"{describe_url(url)} has no pgvector. Install it on the server (Debian: postgresql-NN-pgvector), then "
            "try again."
        )
    if tuple(int(part) for part in version.split(".")[:2]) < (0, 8):
        raise ExtensionMissing(
            f"{describe_url(url)} has pgvector {version}; memstore needs 0.8 or newer. "
            "Install it, then ALTER EXTENSION vector UPDATE."
        )
