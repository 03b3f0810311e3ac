"""Checks of what callers give; each error says what to give instead."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from enum import StrEnum
from numbers import Real
from pathlib import Path
from uuid import UUID

from memstore.errors import ConfigurationError, InvalidInput
from memstore.ingest.validation import check_json, check_name, check_text
from memstore.models import Context, Fact, FactChange, Json, Message, Receipt
from memstore.settings import load
from memstore.store.embedded import default_folder
from memstore.store.errors import check_readable

MOST_ROWS = 1_000_000
MOST_OFFSET = 2**31 - 1
EMBEDDED = "embedded"
SCHEMES = ("postgresql://", "postgres://")


def check_names(**names: str | None) -> None:
    """Raise `InvalidInput` for a name that cannot be one; None is not given."""
    for kind, name in names.items():
        if name is not None:
            check_name(name, kind)


def check_query(query: str, min_score: object = None) -> None:
    """Raise `InvalidInput` for a query that is no text, or blank, and for a least score that is no number."""
    check_text(query, "the query")
    if not query.strip():
        raise InvalidInput(f"query={query!r:.60} asks for nothing; give a question, or some words of what was said.")
    if min_score is not None and (not isinstance(min_score, Real) or math.isnan(min_score)):
        raise InvalidInput(f"min_score={min_score!r:.60}: give a number, or None for any score.")


def check_number(value: int, name: str, least: int = 1, most: int = MOST_ROWS) -> None:
    """Raise `InvalidInput` unless this is a whole number from `least` to `most`."""
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise InvalidInput(f"{name}={value!r:.60}: give a whole number from {least} to {most:,}.")


def check_object(value: Json | None, name: str) -> None:
    """Raise `InvalidInput` for what is no JSON object; None is allowed."""
    if value is not None and not isinstance(value, dict):
        raise InvalidInput(f"{name}={value!r:.60}: give a dict.")
    check_json(value, name)


def to_list(values: Sequence[str] | None, name: str, known: type[StrEnum] | None = None) -> list[str] | None:
    """Return a list of strings, each of them one of `known`; None stays None."""
    if values is None:
        return None
    if not isinstance(values, list | tuple | set | frozenset):
        raise InvalidInput(f"{name}={values!r}: give a list.")
    for value in values:
        check_text(value, f"one of {name}")
    if known is not None and set(values) - set(known):
        raise InvalidInput(f"{name}={values!r}: give some of {', '.join(known)}.")
    return [str(value) for value in values]


def to_utc(moment: datetime | None, name: str) -> datetime | None:
    """Return the moment in UTC; it must have a time zone. None stays None."""
    if moment is None:
        return None
    if not isinstance(moment, datetime):
        raise InvalidInput(f"{name}={moment!r} is no datetime; give one with its time zone.")
    if moment.tzinfo is None:
        raise InvalidInput(f"{name}={moment} has no time zone; give one, such as {moment}+00:00.")
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        raise InvalidInput(f"{name}={moment} is outside of the years 1 to 9999 in UTC.") from None


def to_uuid(item: Fact | FactChange | Message | Context | Receipt | UUID | str) -> UUID:
    """Return the id of what is given itself or by its id."""
    item = item.receipt if isinstance(item, Context) else item
    value = item.id if isinstance(item, Fact | FactChange | Message | Receipt) else item
    if value is None:
        raise InvalidInput(
            "This receipt was not kept: no message yet, or receipt_retention_days is 0."
            if isinstance(item, Receipt)
            else "What was only added or said again cannot be undone; retract the fact instead."
        )
    try:
        return value if isinstance(value, UUID) else UUID(value)
    except (ValueError, TypeError, AttributeError):
        raise InvalidInput(f"{value!r:.60} is no id; give a UUID, as memstore gave it.") from None


def to_uuids(items: Sequence[Fact | Message | UUID], name: str) -> list[UUID]:
    """Return the ids of a list."""
    if not isinstance(items, list | tuple | set | frozenset):
        raise InvalidInput(f"{name}={items!r}: give a list.")
    return [to_uuid(item) for item in items]


def parse_id_prefix(prefix: str) -> tuple[UUID, UUID]:
    """Return the least and the greatest id that begin with these hexadecimal digits; dashes do not count."""
    digits = prefix.replace("-", "") if isinstance(prefix, str) else ""
    if not re.fullmatch(r"[0-9a-fA-F]{4,32}", digits):
        raise InvalidInput(f"{prefix!r:.60} is not how an id begins; give 4 hexadecimal digits or more.")
    return UUID(digits.ljust(32, "0")), UUID(digits.ljust(32, "f"))


def database_url(url: str | None) -> str:
    """Return this URL, else that of the settings."""
    return url or load({}).database_url


def is_embedded(url: str) -> bool:
    """Whether this is an embedded database, and no URL."""
    return url == EMBEDDED or url.startswith(f"{EMBEDDED}:")


def embedded_folder(url: str) -> Path:
    """Return the folder of an embedded database: what follows "embedded:", or the user's data folder."""
    _, _, folder = url.partition(":")
    return Path(folder).expanduser() if folder else default_folder()


def normalize_dsn(url: str) -> str:
    """Return the URL as the driver takes it. Raises `ConfigurationError` if it is none of Postgres."""
    if not url.startswith(SCHEMES):
        scheme, slashes, _ = url.partition("//")  # what is no URL may hold a password anywhere
        raise ConfigurationError(
            f"{repr(scheme) if slashes else 'What was given'} is no database that memstore knows. Give embedded, "
            "embedded:FOLDER or postgresql://user@host/database (MEMSTORE_DATABASE_URL)."
        )
    dsn = url.replace("postgres://", "postgresql://", 1)
    check_readable(dsn)  # before the driver sees it, which logs what it takes for the host
    return dsn
