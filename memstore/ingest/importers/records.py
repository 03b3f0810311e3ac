"""What every importer gives: messages in the pivot's words, and word of what could not be read or is left out."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Protocol, TypeAlias, TypeGuard

from memstore.errors import InvalidInput
from memstore.text import INVALID_CHARS, REPLACEMENT

from .reading import PLAINLY, Reading

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# Deeper than anything written on purpose; far below what json.dumps can write back.
DEEPEST = 100
MOST_NAMED = 10_000  # skipped ones and conversations that a report names: a file may be nothing but nonsense
ERASED = "erased before"  # what is left out as it was erased
# In the metadata: the time is that of the message before, of the conversation or of its session; or nobody knows it.
INHERITED = {"occurred_at": "inherited"}
IMPORTED = {"occurred_at": "imported"}


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


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Something that was read and is no part of the history, such as "thoughts of the model"; told as a count."""

    what: str
    count: int = 1


Found: TypeAlias = Record | Skipped | LeftOut


@dataclass(slots=True)
class Span:
    """A conversation as an import saw it: how many messages, from when to when."""

    user: str
    conversation: str
    title: str | None
    messages: int = 0
    first: datetime | None = None
    last: datetime | None = None

    def add(self, when: datetime | None) -> None:
        """Count a message that was said then."""
        self.messages += 1
        if when is not None:
            self.first, self.last = min(when, self.first or when), max(when, self.last or when)


@dataclass(slots=True)
class Imported:
    """What an import did, or with `dry_run` would do.

    Messages that are `new` and that were `known`; `passed_by` is how many could not be taken, of which `skipped` names
    the first 10,000 with where and why; `left_out` counts what is no part of the history, by what it is; `spans` tells
    of the first 10,000 `conversations`. `restored` counts what else came new from an export of memstore's: users,
    conversations, summaries, facts. In `masked` of the new and known messages secrets were masked.
    """

    format: str = ""
    new: int = 0
    known: int = 0
    passed_by: int = 0
    conversations: int = 0
    skipped: list[Skipped] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)
    restored: Counter[str] = field(default_factory=Counter)
    spans: list[Span] = field(default_factory=list)
    masked: int = 0

    def skip(self, one: Skipped) -> None:
        """Count one that could not be taken, and name it while there is room."""
        self.passed_by += 1
        if len(self.skipped) < MOST_NAMED:
            self.skipped.append(one)


class Importer(Protocol):
    """A format that histories come in."""

    @property
    def name(self) -> str:
        """What `--format` calls it."""
        ...

    def sniff(self, path: Path) -> float:
        """Give how surely the file or folder is of this format, from 0 to 1, by its head and its names alone."""
        ...

    def read(self, path: Path, reading: Reading = PLAINLY) -> Iterator[Found]:
        """Give what the file holds, in order.

        InvalidInput is only for a file that cannot be opened, or that needs a word of `reading` which is not given.
        """
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


def time_or_none(value: object) -> datetime | None:
    """Give a time, or None for what is none: a message is worth more than its time."""
    try:
        return moment(value)
    except InvalidInput:
        return None


def timed(message: dict[str, Any], own: datetime | None, inherited: datetime | None) -> dict[str, Any]:
    """Give a message with its own time, or with one it inherits, marked; where nobody knows one, that is marked."""
    if own is not None:
        return message | {"occurred_at": own}
    metadata = message.get("metadata", {})
    if inherited is not None:
        return message | {"occurred_at": inherited, "metadata": metadata | INHERITED}
    return message | {"metadata": metadata | IMPORTED}


def shown(text: str, longest: int = 60) -> str:
    """Give a text as it can be printed anywhere: on one line, not too long, with nothing that a terminal obeys."""
    short = text if len(text) <= longest else text[: longest - 1] + "…"
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in short)


def word(value: object) -> str:
    """Give what a value is called, to show it; never the whole of what may be nested a thousand deep."""
    return shown(value) if isinstance(value, str) else type(value).__name__


def is_id(value: object) -> TypeGuard[str]:
    """Whether a value can name something: a text, not blank, that can be stored."""
    return isinstance(value, str) and bool(value.strip()) and not INVALID_CHARS.search(value)


def storable(text: str) -> tuple[str, dict[str, Any]]:
    """Give a text with U+FFFD for what no database keeps, and the metadata that say how often."""
    text, replaced = INVALID_CHARS.subn(REPLACEMENT, text)
    return text, {"replaced": replaced} if replaced else {}


def check_storable(value: object) -> None:
    """Raise InvalidInput where a value read from JSON holds something that no database does."""
    for here in within(value):
        if isinstance(here, str):
            _check_text(here)
        elif isinstance(here, float) and not math.isfinite(here):
            raise InvalidInput("it holds a number too large for a float; write it as a text")


def within(value: object) -> Iterator[object]:
    """Give a value read from JSON and all that it holds; InvalidInput where it is nested too deep."""
    # No recursion: the value may be nested as deep as the parser goes, and that is deeper than Python's own stack.
    pending = [(value, 0)]
    while pending:
        here, depth = pending.pop()
        if depth > DEEPEST:
            raise InvalidInput(f"it is nested deeper than {DEEPEST} levels; make it flatter")
        yield here
        if isinstance(here, dict):
            pending += [(item, depth + 1) for pair in here.items() for item in pair]
        elif isinstance(here, list):
            pending += [(item, depth + 1) for item in here]


def _check_text(text: str) -> None:
    found = INVALID_CHARS.search(text)
    if found is None:
        return
    if found[0] == "\0":
        raise InvalidInput("it holds the character NUL (\\u0000), which Postgres cannot keep; remove it")
    raise InvalidInput(f"it holds half a character (\\u{ord(found[0]):04x}, a lone surrogate); remove it")
