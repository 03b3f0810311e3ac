"""What every importer gives: messages in the pivot's words, and word of what could not be read."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Protocol

from memstore.errors import InvalidInput
from memstore.ingest.check import UNSTORABLE

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# Deeper than anything written on purpose; far below what json.dumps can write back.
DEEPEST = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One message of a history, in the pivot's words, and where it stood.

    `message` has `role` and `content`, and of the pivot's other keys those that are known; `occurred_at` is in UTC.
    `user` is None where the file names none; `title` and `channel` are of the conversation.
    """

    user: str | None
    conversation: str
    message: dict[str, Any]
    title: str | None = None
    channel: str | None = None
    where: str


@dataclass(frozen=True, slots=True)
class Skipped:
    """Something in a file that could not be read: where it is, what is wrong, and what to do."""

    where: str
    reason: str


@dataclass(slots=True)
class Imported:
    """What an import did: messages that are new, that were known, and what was passed by, with where and why."""

    new: int = 0
    known: int = 0
    skipped: list[Skipped] = field(default_factory=list)
    conversations: set[tuple[str, str]] = field(default_factory=set)

    @property
    def read(self) -> int:
        """How much of the file was seen."""
        return self.new + self.known + len(self.skipped)


class Importer(Protocol):
    """A format that histories come in."""

    @property
    def name(self) -> str:
        """What `--format` calls it."""
        ...

    def sniff(self, path: Path) -> float:
        """Give how surely the file is of this format, from 0 to 1, by its head alone."""
        ...

    def read(self, path: Path) -> Iterator[Record | Skipped]:
        """Give what the file holds, in order; InvalidInput is only for a file that cannot be opened."""
        ...


def moment(value: object) -> datetime:
    """Give the instant, in UTC, that ISO 8601 with a zone or a number of seconds since 1970 means."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise InvalidInput("a time is ISO 8601 with a zone (2024-05-01T09:30:00+02:00), or seconds since 1970")
    try:
        when = datetime.fromisoformat(value) if isinstance(value, str) else EPOCH + timedelta(seconds=value)
        if when.tzinfo is not None:
            return when.astimezone(UTC)
    except (ValueError, OverflowError):
        hint = "is not ISO 8601" if isinstance(value, str) else "is out of range: milliseconds must be divided by 1000"
        raise InvalidInput(f"the time {shown(str(value))} {hint}") from None
    raise InvalidInput(f"the time {shown(str(value))} has no zone: add Z for UTC, or an offset such as +02:00")


def shown(text: str, longest: int = 60) -> str:
    """Give a text as it can be printed anywhere: on one line, not too long, with nothing that a terminal obeys."""
    short = text if len(text) <= longest else text[: longest - 1] + "…"
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in short)


def check_storable(value: object) -> None:
    """Raise InvalidInput where a value read from JSON holds something that no database does."""
    # No recursion: the value may be nested as deep as the parser goes, and that is deeper than Python's own stack.
    pending = [(value, 0)]
    while pending:
        here, depth = pending.pop()
        if depth > DEEPEST:
            raise InvalidInput(f"it is nested deeper than {DEEPEST} levels; make it flatter")
        if isinstance(here, str):
            _check_text(here)
        elif isinstance(here, float) and not math.isfinite(here):
            raise InvalidInput("it holds a number too large for a float; write it as a text")
        elif isinstance(here, dict):
            pending += [(item, depth + 1) for pair in here.items() for item in pair]
        elif isinstance(here, list):
            pending += [(item, depth + 1) for item in here]


def _check_text(text: str) -> None:
    found = UNSTORABLE.search(text)
    if found is None:
        return
    if found[0] == "\0":
        raise InvalidInput("it holds the character NUL (\\u0000), which Postgres cannot keep; remove it")
    raise InvalidInput(f"it holds half a character (\\u{ord(found[0]):04x}, a lone surrogate); remove it")
