"""The driver's errors, in memstore's words; and URLs, without their passwords."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from psycopg_pool import PoolClosed, PoolTimeout

from memstore.errors import ConfigurationError, DatabaseError, DatabaseUnreachable

DRIVER_ERRORS = (psycopg.Error, PoolTimeout)
NAME = re.compile(r"[\w./-]{1,60}")


class NoAnswer(psycopg.OperationalError):
    """The server was silent for so long that the connection was closed."""


class ConcurrentUpdate(Exception):
    """Another worker changed the row first; the result of this one is dropped."""


def describe_url(url: str) -> str:
    """Return the URL without its password, for messages."""
    try:
        options = psycopg.conninfo.conninfo_to_dict(url)
    except psycopg.ProgrammingError:
        return "the database URL"
    place = f"{options.get('host', 'localhost')}:{options.get('port', 5432)}"
    return f"the database {options.get('dbname', '')!r} at {place}"


@contextmanager
def translate_errors(url: str) -> Iterator[None]:
    """Turn the driver's errors into memstore's while connecting to a URL."""
    try:
        yield
    except DRIVER_ERRORS as error:
        # The driver's own words quote the URL, and with it the password.
        check_readable(url)
        raise translate(error, url) from error


def translate(error: Exception, url: str) -> DatabaseError:
    """Return what an error of the driver is called in memstore."""
    place, reason = describe_url(url), str(error).strip().partition("\n")[0] or type(error).__name__
    state = error.sqlstate if isinstance(error, psycopg.Error) else None
    if isinstance(error, PoolClosed):
        return DatabaseError("This store is closed; open it again.")
    if isinstance(error, NoAnswer):
        return DatabaseUnreachable(
            f"{place} gave {reason} to a statement, which may wait for somebody's lock (pg_stat_activity shows whose). "
            "Its connection was closed and nothing of this call was stored, unless it was just committing: repeat it."
        )
    if isinstance(error, psycopg.errors.IdleInTransactionSessionTimeout):
        return DatabaseUnreachable(
            f"{place} ended a transaction in which this process had asked for nothing for minutes, as one does that "
            "was suspended. Nothing of this call was stored: repeat it."
        )
    if isinstance(error, psycopg.errors.DiskFull):
        return DatabaseError(
            f"The disk of {place} is full. Nothing of this call was stored: free some space, then repeat it."
        )
    if isinstance(error, psycopg.OperationalError) and "password" in reason:
        return DatabaseUnreachable(
            f"{place} refused the login: {reason.rpartition('FATAL: ')[2].strip()}. Correct the user or the password "
            "in the URL (MEMSTORE_DATABASE_URL)."
        )
    if isinstance(error, psycopg.OperationalError | PoolTimeout) and (
        state is None or state.startswith(("08", "28", "3D", "53", "57P"))
    ):
        return DatabaseUnreachable(
            f"{place} does not answer: {reason}. Start it or correct the URL (MEMSTORE_DATABASE_URL); memstore never "
            "falls back to another database."
        )
    if isinstance(error, psycopg.errors.ReadOnlySqlTransaction):
        return DatabaseError(
            f"{place} only reads, as a standby does: nothing of this call was stored. Give the primary's URL, or both "
            "hosts with ?target_session_attrs=read-write."
        )
    hint = (isinstance(error, psycopg.Error) and error.diag.message_hint) or ""
    if isinstance(error, psycopg.errors.InsufficientPrivilege) and str(error).startswith("permission denied"):
        hint = hint or (
            "This login was granted less: memstore db grant LOGIN --role app (or loader, reader, admin), by the owner."
        )
    return DatabaseError(f"{place} refused: {reason}. {hint}".rstrip())


def check_readable(url: str) -> None:
    """Raise `ConfigurationError`, alone, where the parts of a URL are not what they seem."""
    option, is_readable = None, False
    try:
        options = psycopg.conninfo.conninfo_to_dict(url)
    except psycopg.ProgrammingError as error:
        option = re.search(r'query parameter: "(\w{1,40})"', str(error))
    else:
        names = f"{options.get('host', '')}".removeprefix("@") + f"{options.get('dbname', '')}"
        port = f"{options.get('port', '')}".replace(",", "")
        is_readable = "@" not in names and (port.isdecimal() or not port)
    # It may be a part of a password with a ? in it.
    if option and "@" not in url.partition("?")[2]:
        raise ConfigurationError(
            f"The database URL has the option {option[1]!r}, which Postgres does not know: take it out "
            "(MEMSTORE_DATABASE_URL). Behind pgbouncer memstore needs no option."
        ) from None
    if not is_readable:
        raise ConfigurationError(
            "The database URL cannot be read. Write postgresql://user:password@host:port/database, and for "
            "characters other than letters and digits in a password their codes, such as %40 for @."
        ) from None


def normalize_dsn(url: str) -> str:
    """Return the URL as the driver takes it. Raises `ConfigurationError` if it is none of Postgres."""
    if not url.startswith(("postgresql://", "postgres://")):
        # What is no URL and no name may hold a password anywhere.
        scheme, slashes, _ = url.partition("//")
        name = url if NAME.fullmatch(url) or not url else ""
        subject = repr(scheme) if slashes else repr(name) if name == url else "What was given"
        raise ConfigurationError(
            f"{subject} is no database that memstore knows. Give embedded, "
            "embedded:FOLDER or postgresql://user@host/database (MEMSTORE_DATABASE_URL)."
        )
    dsn = url.replace("postgres://", "postgresql://", 1)
    # Before the driver sees it, which logs what it takes for the host.
    check_readable(dsn)
    return dsn
