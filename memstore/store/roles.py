"""The abilities of a server and of logins: four roles, which own nothing, and who is granted which.

| role | may, always in the scope of one user |
|---|---|
| app | everything that an application does: add, derive, recall, erase |
| loader | bring history in, without what was erased; it removes nothing, and sees neither facts nor summaries |
| reader | read: recall, facts, contexts of which no receipt is kept |
| admin | no scope: list users by name, and read nothing of theirs |

A store steps down to its role in each transaction. No superuser is needed: the tables' owner runs this with CREATEROLE,
or without where an administrator has made the roles beforehand.
"""

from __future__ import annotations

from dataclasses import dataclass

import psycopg
from psycopg.errors import InsufficientPrivilege
from psycopg.sql import SQL as Composable, Composed, Identifier

from memstore.errors import DatabaseError, ExtensionMissing, InvalidInput
from memstore.store import connections
from memstore.store.connections import options_of
from memstore.store.errors import describe_url, translate_errors
from memstore.store.sql import statements
from memstore.store.tables import TABLES, tables_of

SQL = statements("roles")
# A login becomes, in each transaction, the first of these roles that it was granted.
ROLES = ("memstore_app", "memstore_loader", "memstore_reader", "memstore_admin")
ROLE_NAMES = tuple(role.removeprefix("memstore_") for role in ROLES)


@dataclass(frozen=True, slots=True)
class RoleGrant:
    """A login that was granted a role; `confined` where it can be no more than that, whatever it runs."""

    login: str
    role: str
    confined: bool


def grant(url: str, login: str, role: str) -> RoleGrant:
    """Grant a role to a login that there is; run with the URL of the tables' owner. To grant it again changes nothing.

    Raises `InvalidInput` for a role that there is not; `DatabaseError` where there are no tables or no such login, or
    where this login may not, with what an administrator is to run.
    """
    if role not in ROLE_NAMES:
        raise InvalidInput(f"role={role!r} is none of {', '.join(ROLE_NAMES)}.")
    name = f"memstore_{role}"
    with translate_errors(url), psycopg.connect(**options_of(url), autocommit=True) as connection:
        [(made, _)] = connection.execute(connections.SQL["schema_exists"]).fetchall()
        if not made:
            raise DatabaseError(f"{describe_url(url)} has no tables yet. Run: memstore db upgrade")
        connection.execute(rights())
        [state] = connection.execute(SQL["login_state"], {"login": login, "role": name}).fetchall()
        login_exists, role_exists, is_granted, ignores_policies, owns_tables = state
        if not login_exists:
            raise _by_hand(url, f"has no login {login!r}", f"CREATE ROLE {_quoted(login)} LOGIN PASSWORD '…'")
        if not role_exists:
            raise _by_hand(url, f"has no role {name}, and this login may not make it", f"CREATE ROLE {name} LOGIN")
        if not is_granted:
            try:
                connection.execute(Composable(SQL["grant"]).format(login=Identifier(login), role=Identifier(name)))
            except InsufficientPrivilege:
                granting = f"GRANT {name} TO {_quoted(login)}"
                raise _by_hand(url, f"does not let this login grant {name}", granting) from None
    return RoleGrant(login, role, not (ignores_policies or owns_tables))


def rights() -> Composed:
    """Return the statement that makes the roles, where this login may, and gives them their rights on the tables."""
    rows = [
        *((table.name, "memstore_app", table.app) for table in TABLES),
        *((table.name, "memstore_loader", table.loader) for table in TABLES if table.loader),
        *((name, "memstore_reader", "SELECT") for name in (*tables_of("user", "kept"), "embedding_models", "grants")),
    ]
    row = Composable("({}, {}, {})")
    return Composable(SQL["rights"]).format(rights=Composable(", ").join(row.format(*values) for values in rows))


def _by_hand(url: str, what: str, statement: str) -> DatabaseError:
    return DatabaseError(f"{describe_url(url)} {what}. As an administrator: {statement}; then try again.")


def _quoted(name: str) -> str:
    return Identifier(name).as_string(None)


@dataclass(frozen=True, slots=True)
class Capabilities:
    """The abilities of a server, and whether this login must and may become one of memstore's roles.

    `schema` is where memstore's tables are, `vectors` where pgvector is. `pooled`: between here and the server is a
    pooler, which may give each transaction another session. `citus`: the database has Citus. `writes`: anything can be
    stored, by this role and on this server, which is no standby.
    """

    server_version: int
    pgvector_available: str | None
    pgvector: str | None
    ignores_policies: bool
    role: str | None
    schema: str
    vectors: str
    pooled: bool
    citus: bool
    writes: bool


def capabilities(url: str) -> Capabilities:
    """Ask the server what it is; raise `DatabaseUnreachable` or `ExtensionMissing` where it will not do."""
    with translate_errors(url), psycopg.connect(**options_of(url)) as connection:
        values = {"roles": list(ROLES), "process": connection.info.backend_pid}
        [row] = connection.execute(SQL["capabilities"], values).fetchall()
    server = Capabilities(*row)
    version = server.pgvector or server.pgvector_available
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
    return server
