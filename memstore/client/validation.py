"""Checks of what callers give; each error says what to give instead."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import UTC, datetime
from enum import StrEnum
from numbers import Real
from pathlib import Path
from uuid import UUID

from memstore.errors import ConfigurationError, InvalidInput, NotFound
from memstore.ids import MIN_PREFIX_LENGTH, is_id_prefix, prefix_range
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


def check_query(query: str) -> None:
    """Raise `InvalidInput` for a query that is no text, or blank: nothing is similar to that."""
    check_text(query, "the query")
    if not query.strip():
        raise InvalidInput(f"query={query!r:.60} asks for nothing; give a question, or some words of what was said.")


def check_score(score: object) -> None:
    """Raise `InvalidInput` for a least score that is no number; None is any score."""
    if score is not None and not (isinstance(score, Real) and not math.isnan(score)):
        raise InvalidInput(f"min_score={score!r:.60}: give a number, or None for any score.")


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


def to_uuid(item: Fact | FactChange | Message | UUID | str) -> UUID:
    """Return the id of a fact, a change or a message that is given itself or by its id."""
    value = item.id if isinstance(item, Fact | FactChange | Message) else item
    if value is None:
        raise InvalidInput("What was only added or said again cannot be undone; retract the fact instead.")
    return _parse_uuid(value, "as memstore gave it")


def to_uuids(items: Sequence[Fact | Message | UUID], name: str) -> list[UUID]:
    """Return the ids of a list."""
    if not isinstance(items, list | tuple | set | frozenset):
        raise InvalidInput(f"{name}={items!r}: give a list.")
    return [to_uuid(item) for item in items]


def receipt_id(receipt: Context | Receipt | UUID | str) -> UUID:
    """Return the id of a receipt that is given itself, by its context or by its id."""
    if isinstance(receipt, Context):
        receipt = receipt.receipt
    value = receipt.id if isinstance(receipt, Receipt) else receipt
    if value is None:
        raise InvalidInput("This receipt was not kept: no message yet, or receipt_retention_days is 0.")
    return _parse_uuid(value, "as context.receipt.id has it")


def parse_id_prefix(prefix: str) -> tuple[UUID, UUID]:
    """Return the least and the greatest id that begin like this."""
    if not isinstance(prefix, str) or not is_id_prefix(prefix):
        raise InvalidInput(
            f"{prefix!r:.60} is not how an id begins; give {MIN_PREFIX_LENGTH} hexadecimal digits or more."
        )
    return prefix_range(prefix)


def exactly_one(matches: Sequence[UUID], prefix: str, kind: str) -> UUID:
    """Return the only id with a prefix. Raises `NotFound` for none, `InvalidInput` for several."""
    if not matches:
        raise NotFound(f"This user has no {kind} whose id begins with {prefix!r}.")
    if len(matches) > 1:
        raise InvalidInput(f"More than one {kind} has an id that begins with {prefix!r}: {matches[0]}, {matches[1]}…")
    return matches[0]


def _parse_uuid(value: UUID | str, where: str) -> UUID:
    try:
        return value if isinstance(value, UUID) else UUID(value)
    except (ValueError, TypeError, AttributeError):
        raise InvalidInput(f"{value!r:.60} is no id; give a UUID, {where}.") from None


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
