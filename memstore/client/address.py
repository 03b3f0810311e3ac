"""Which database is meant: an embedded one in a folder, or a URL of Postgres."""

from __future__ import annotations

from pathlib import Path

from memstore.errors import ConfigurationError
from memstore.settings import load
from memstore.store.faults import check_readable
from memstore.store.folders import default_folder

EMBEDDED = "embedded"
SCHEMES = ("postgresql://", "postgres://")


def database_url(given: str | None) -> str:
    """Give the database that is meant: the one given, else what the settings say."""
    return given or load({}).database_url


def embedded_folder(url: str) -> Path:
    """Give the folder of an embedded database: what follows "embedded:", or the user's data folder."""
    _, _, folder = url.partition(":")
    return Path(folder).expanduser() if folder else default_folder()


def is_embedded(url: str) -> bool:
    """Whether this is an embedded database, and no URL."""
    return url == EMBEDDED or url.startswith(f"{EMBEDDED}:")


def checked_url(url: str) -> str:
    """Give the URL as the driver takes it; raise `ConfigurationError` where it is none of Postgres."""
    if not url.startswith(SCHEMES):
        scheme, found, _ = url.partition("//")  # what is no URL may hold a password anywhere
        raise ConfigurationError(
            f"{scheme if found else 'That'!r} is no database that memstore knows. Give embedded, embedded:FOLDER or "
            "postgresql://user@host/database (MEMSTORE_DATABASE_URL)."
        )
    given = url.replace("postgres://", "postgresql://", 1)
    check_readable(given)  # before the driver sees it, which logs what it takes for the host
    return given
