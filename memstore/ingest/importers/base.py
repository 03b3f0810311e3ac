"""What importers are made of: the importer itself, what it yields, its options, and what several formats need.

An importer is a name and two functions. Add one in a module of its own, and list it in `memstore.ingest.importers`:

    def sniff(path: Path) -> float:
        return 0.9 if first_head(path, ONE_FILE).startswith(b'{"my_format"') else 0.0

    def read(path: Path, options: ImportOptions = DEFAULTS) -> Iterator[Found]:
        return read_parts(path, ONE_FILE, options, _messages, "export it again")

    MY_FORMAT = Importer("my-format", sniff, read)

`_messages` yields from an open file (`Part`) a `Record` for each message, `Skipped` for what cannot be read, with what
to do about it, and `Ignored` for what is no part of the history. A format is read as its exports are written; what is
written otherwise raises something of `UNEXPECTED`, which `report_damage` makes `Skipped`.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, tzinfo
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal, TypeAlias, TypeVar, cast, get_args
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from memstore.errors import InvalidInput
from memstore.ingest.validation import check_choice, check_text
from memstore.text import INVALID_CHARS, REPLACEMENT

T = TypeVar("T")

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MOST_NAMED = 10_000  # skipped ones and conversations that a report names: a file may be nothing but nonsense
ERASED = "erased before"  # what is left out as it was erased
# In the metadata: the time is that of the message before, of the conversation or of its session; or nobody knows it.
INHERITED = {"occurred_at": "inherited"}
IMPORTED = {"occurred_at": "imported"}

# What a reader raises where an export is not as its format has it.
UNEXPECTED = (AttributeError, LookupError, RecursionError, TypeError, ValueError)

DateOrder = Literal["dmy", "mdy", "ymd"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportOptions:
    """What a file does not say itself, and a callback for progress; each format uses what it needs.

    `me` is the importing person's name in a chat between people; `timezone` is that of times without a zone;
    `date_order` is how days are written; `all_branches` includes what was edited or tried again. `on_read` is called
    with the number of bytes that were read since, as they lie on disk.
    """

    me: str | None = None
    timezone: tzinfo | None = None
    date_order: DateOrder | None = None
    all_branches: bool = False
    on_read: Callable[[int], None] = lambda _: None


DEFAULTS = ImportOptions()


def parse_options(*, me: str | None, timezone: str | None, date_order: str | None, all_branches: bool) -> ImportOptions:
    """Return options; raise `InvalidInput` for an unknown zone or order, and for a name that cannot be stored."""
    if me is not None:
        check_text(me, "me")
    check_choice("date_order", date_order, get_args(DateOrder))
    try:
        zone = None if timezone is None else ZoneInfo(timezone)
    except (ValueError, TypeError, OSError, ZoneInfoNotFoundError):
        raise InvalidInput(f"timezone={timezone!r}: give a name such as Europe/Berlin or UTC.") from None
    order = cast(DateOrder | None, date_order)
    return ImportOptions(me=me, timezone=zone, date_order=order, all_branches=all_branches)


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One message of a history, with the keys of memstore-jsonl, and where it stood.

    `message` has `role` and `content`, and of the other keys those that are known; `occurred_at` is in UTC. `user` is
    None where the file names none; `title` and `channel` are of the conversation.
    """

    user: str | None = None
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
class Ignored:
    """Something that was read and is no part of the history, such as "thoughts of the model"."""

    what: str
    count: int = 1


Found: TypeAlias = Record | Skipped | Ignored


def report_damage(found: Iterator[T], where: str, again: str) -> Iterator[T | Skipped]:
    """Yield what is found; where that breaks off, say why, and what to do `again`."""
    try:
        yield from found
    except InvalidInput as error:
        yield Skipped(where, f"{error}; {again}")
    except UNEXPECTED as error:
        yield Skipped(where, f"it is not as expected ({type(error).__name__}: {printable(str(error))}); {again}")


@dataclass(frozen=True, slots=True)
class Importer:
    """A format: `sniff` tells how surely a file or folder is of it, from 0 to 1; `read` yields what it holds, in order.

    Reading raises `InvalidInput` only for a file that cannot be opened, or where an option is needed and not given.
    """

    name: str
    sniff: Callable[[Path], float]
    read: Callable[..., Iterator[Found]]  # of the path and of options


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

    `passed_by` is how many messages could not be taken, of which `skipped` names the first 10,000; `left_out` counts
    what is no part of the history, by what it is; `spans` describes the first 10,000 `conversations`. `restored` counts
    what else came new from an export of memstore's. In `masked` of the new and known messages secrets were masked.
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


# --- times


def parse_time(value: object) -> datetime:
    """Return the UTC time of ISO 8601 with a zone, or of seconds since 1970; raise `InvalidInput` for anything else."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise InvalidInput("a time is ISO 8601 with a zone (2024-05-01T09:30:00+02:00), or seconds since 1970")
    try:
        when = datetime.fromisoformat(value) if isinstance(value, str) else EPOCH + timedelta(seconds=value)
        if when.tzinfo is not None:
            return when.astimezone(UTC)
    except (ValueError, OverflowError):
        hint = "is not ISO 8601" if isinstance(value, str) else "is out of range: milliseconds must be divided by 1000"
        raise InvalidInput(f"the time {printable(str(value))} {hint}") from None
    raise InvalidInput(f"the time {printable(str(value))} has no zone: add Z for UTC, or an offset such as +02:00")


def time_or_none(value: object) -> datetime | None:
    """Return a time, or None for what is none: a message is worth more than its time."""
    try:
        return parse_time(value)
    except InvalidInput:
        return None


def with_time(message: dict[str, Any], own: datetime | None, inherited: datetime | None) -> dict[str, Any]:
    """Return a message with its own time, or with an inherited one; its metadata say where the time is not its own."""
    if own is not None:
        return message | {"occurred_at": own}
    metadata = message.get("metadata", {})
    if inherited is not None:
        return message | {"occurred_at": inherited, "metadata": metadata | INHERITED}
    return message | {"metadata": metadata | IMPORTED}


# --- ids of what has none


def derive_id(user: object, conversation: str, message: Mapping[str, Any], seen: Counter[bytes]) -> str:
    """Return an id that follows from the message and from how many equal ones came before it."""
    said = [message.get(key) for key in ("role", "name", "content", "tool_calls", "tool_call_id", "occurred_at")]
    place = json.dumps([conversation, said], sort_keys=True, default=str)
    # The user counts but is no part of the id: a file has the same ids whether it or the caller names the user.
    count = count_seen(json.dumps([user, place]), seen)
    return "line:" + sha256(json.dumps([place, count]).encode()).hexdigest()


def derive_name(messages: object, kind: str, seen: Counter[bytes]) -> str:
    """Return a name that follows from a conversation's messages, and from how many equal ones came before it."""
    name = digest(messages)
    count = count_seen(name, seen)
    return f"{kind}-{name}" + (f"-{count}" if count > 1 else "")


def count_seen(key: str, seen: Counter[bytes]) -> int:
    """Return how often this came until now, this time included; a digest is kept, for there may be millions."""
    place = sha256(key.encode("utf-8", "surrogatepass")).digest()[:16]
    seen[place] += 1
    return seen[place]


def digest(value: object) -> str:
    """Return a short name that follows from JSON: 20 hexadecimal digits."""
    return sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:20]


# --- texts


def printable(text: str, longest: int = 60) -> str:
    """Return a text on one line, not too long, with nothing that a terminal obeys."""
    short = text if len(text) <= longest else text[: longest - 1] + "…"
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in short)


def make_storable(text: str) -> tuple[str, dict[str, Any]]:
    """Return a text with U+FFFD for what no database keeps, and metadata that say how often."""
    text, replaced = INVALID_CHARS.subn(REPLACEMENT, text)
    return text, {"replaced": replaced} if replaced else {}
