"""The base of importers: their class, the items that they yield, options, times and ids.

To add a format, write a subclass of `Importer`, which describes the declarations. `recognizes` says whether a JSON
value is of the format, and `convert` makes records of JSON values. List the class in `memstore.ingest.importers`;
docs/reference/importing.md has an example. Errors of the usual kinds that `convert` raises are reported as an
`ImportProblem`; an `OptionMissing` ends the import. A format that is not JSON overrides `read_file`, as one does
that is a single huge object (`files.nested_values`); one that must be sorted first overrides `read`.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, tzinfo
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar, Literal, TypeAlias, TypeVar, cast, get_args
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from memstore.errors import InvalidInput
from memstore.ingest.validation import check_choice, check_text
from memstore.text import INVALID_CHARS

from . import files
from .files import ImportProblem, OpenFile, printable

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MAX_PROBLEMS = 10_000
ERASED = "erased before"
# In the metadata: the time is that of the message before, of the conversation or of its session; or nobody knows it.
INHERITED = {"occurred_at": "inherited"}
IMPORTED = {"occurred_at": "imported"}

DateOrder = Literal["dmy", "mdy", "ymd"]


class OptionMissing(InvalidInput):
    """An option that a file cannot be read without is not given, or does not fit the file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportOptions:
    """Options for what a file does not say itself; each format uses some of them.

    `me` is the importing person's name in a chat between people; `timezone` is that of times without a zone;
    `date_order` is how days are written.
    """

    me: str | None = None
    timezone: tzinfo | None = None
    date_order: DateOrder | None = None


def parse_options(*, me: str | None, timezone: str | None, date_order: str | None) -> ImportOptions:
    if me is not None:
        check_text(me, "me")
    check_choice("date_order", date_order, get_args(DateOrder))
    try:
        zone = None if timezone is None else ZoneInfo(timezone)
    except (ValueError, TypeError, OSError, ZoneInfoNotFoundError):
        raise InvalidInput(f"timezone={timezone!r}: give a name such as Europe/Berlin or UTC.") from None
    return ImportOptions(me=me, timezone=zone, date_order=cast(DateOrder | None, date_order))


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One message of a history, with the keys of memstore-jsonl, and its place in the file.

    `message` has `role` and `content`, and of the other keys those that are known; `occurred_at` is in UTC. `user` is
    None where the file names none; `title` is the conversation's, `channel` the program in which it was, such as
    "slack", `scope` the project to which it belongs.
    """

    user: str | None = None
    conversation: str
    message: dict[str, Any]
    title: str | None = None
    channel: str | None = None
    scope: str | None = None
    where: str


@dataclass(frozen=True, slots=True)
class IgnoredContent:
    """Something in a file that is no part of the history, such as "thoughts of the model"."""

    what: str
    count: int = 1


ImportItem: TypeAlias = Record | ImportProblem | IgnoredContent
Message: TypeAlias = dict[str, Any]
T = TypeVar("T")


class Importer:
    """A format, and the reading of one file, zip or folder of it.

    A class declares the `name` for --format, the `option_names` that it takes, fields of `ImportOptions`, and which
    `files` of a zip or folder hold the history: patterns for the end of a path, in small letters, or for all of it
    with a / before. A file without any JSON is of the format by its name alone. `unit` is what a report calls an
    element of a list, and `advice` what to do about a damaged file.
    """

    name: ClassVar[str]
    option_names: ClassVar[tuple[str, ...]] = ()
    files: ClassVar[tuple[str, ...]] = ()
    unit: ClassVar[str] = "item"
    advice: ClassVar[str]

    def __init__(self, path: Path, options: ImportOptions | None = None) -> None:
        self.path, self.options = path, options or ImportOptions()
        self.equal_counts: Counter[bytes] = Counter()

    @classmethod
    def sniff(cls, path: Path) -> bool:
        """Return whether a file, or one in a zip or folder, is of this format: by its name if it holds no JSON."""
        by_name = not files.is_single(path) or files.has_name(path.name, cls.files)
        for file in files.open_files(path, cls.files):
            values = files.first_values(file)
            if any(map(cls.recognizes, values)) or (by_name and not values):
                return True
        return False

    @staticmethod
    def recognizes(value: Any) -> bool:
        """Return whether a JSON value is of this format; a format that is not JSON overrides `sniff` instead."""
        raise NotImplementedError

    def read(self) -> Iterator[ImportItem]:
        """Yield what the file holds, in order.

        Raises `InvalidInput` only for a file that cannot be opened, `OptionMissing` where an option is needed.
        """
        read = self.read_file if files.is_single(self.path) else self._read_if_recognized
        return files.read_files(self.path, self.files, read, self.advice)

    def _read_if_recognized(self, file: OpenFile) -> Iterator[ImportItem]:
        values = files.first_values(file)
        if values and not any(map(self.recognizes, values)):
            yield ImportProblem(file.where, f"it is not of the format {self.name}, and was skipped")
        else:
            yield from self.read_file(file)

    def read_file(self, file: OpenFile) -> Iterator[ImportItem]:
        return self.read_values(file, self.convert)

    def convert(self, value: Any, where: str) -> Iterator[ImportItem]:
        """Yield what a JSON value holds; a format that is not JSON overrides `read_file` instead."""
        raise NotImplementedError

    def read_values(self, file: OpenFile, convert: Callable[[Any, str], Iterator[ImportItem]]) -> Iterator[ImportItem]:
        """Yield the items that `convert` makes of each JSON value and its place; report unreadable ones."""
        for entry in files.numbered_values(file, self.unit, self.advice):
            if isinstance(entry, ImportProblem):
                yield entry
            else:
                yield from self.report_damage(convert(entry[1], entry[0]), entry[0])

    def records(
        self,
        messages: Iterator[Message | IgnoredContent],
        where: str,
        conversation: str,
        known_time: datetime | None = None,
        inherited_time: datetime | None = None,
        **of_conversation: str | None,
    ) -> Iterator[ImportItem]:
        """Yield records of messages of the same time: `known_time`, or one inherited from the message before them.

        Metadata mark inherited times. Damage is reported.
        """
        for item in self.report_damage(messages, where):
            if isinstance(item, dict):
                metadata = item["metadata"] | ({} if known_time else INHERITED if inherited_time else IMPORTED)
                time = {"occurred_at": known_time or inherited_time} if known_time or inherited_time else {}
                message = item | time | {"metadata": metadata}
                yield Record(conversation=conversation, message=message, where=where, **of_conversation)
            else:
                yield item

    def report_damage(self, items: Iterator[T], where: str) -> Iterator[T | ImportProblem]:
        """Yield the items; if reading them fails, add why, and what to do about it."""
        try:
            yield from items
        except OptionMissing:
            raise
        except InvalidInput as error:
            yield ImportProblem(where, str(error))
        except (AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
            reason = f"it is not as expected ({type(error).__name__}: {printable(str(error))}); {self.advice}"
            yield ImportProblem(where, reason)

    def unknown_me(self, names: Iterable[str]) -> OptionMissing:
        """Return the error that says which of these names the option `me` may be."""
        me, choices = self.options.me, ", ".join(map(printable, islice(names, 20)))
        why = "say who of them you are" if me is None else f"nobody in it is called {printable(me)}"
        return OptionMissing(f"{why}; --me takes one of: {choices}")


@dataclass(slots=True)
class ImportReport:
    """The result of an import.

    `skipped` is how many messages could not be taken; `problems` says of the first 10,000 why. `ignored` counts what is
    no part of the history, by what it is, `restored` what else came new from an export of memstore's, and `masked` the
    new and known messages in which secrets were masked.
    """

    format: str = ""
    new: int = 0
    known: int = 0
    skipped: int = 0
    problems: list[ImportProblem] = field(default_factory=list)
    ignored: Counter[str] = field(default_factory=Counter)
    restored: Counter[str] = field(default_factory=Counter)
    masked: int = 0

    def add_problem(self, problem: ImportProblem) -> None:
        self.skipped += 1
        if len(self.problems) < MAX_PROBLEMS:
            self.problems.append(problem)


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
        hint = "is out of range: milliseconds must be divided by 1000"
        if isinstance(value, str):
            hint = "is not ISO 8601, such as 2024-05-01T09:30:00+02:00"
        raise InvalidInput(f"the time {printable(str(value))} {hint}") from None
    raise InvalidInput(f"the time {printable(str(value))} has no zone: add Z for UTC, or an offset such as +02:00")


def time_or_none(value: object) -> datetime | None:
    """Return a time, or None for anything else: a message without its time is still stored."""
    try:
        return parse_time(value)
    except InvalidInput:
        return None


# --- ids of what has none


def derive_id(user: object, conversation: str, message: Mapping[str, Any], equal_counts: Counter[bytes]) -> str:
    """Return an id that follows from the message and from how many equal ones came before it."""
    said = [message.get(key) for key in ("role", "name", "content", "tool_calls", "tool_call_id", "occurred_at")]
    place = json.dumps([conversation, said], sort_keys=True, default=str)
    # The user counts but is no part of the id: a file has the same ids whether it or the caller names the user.
    count = count_equal(json.dumps([user, place]), equal_counts)
    return "line:" + sha256(json.dumps([place, count]).encode()).hexdigest()


def derive_name(messages: object, kind: str, equal_counts: Counter[bytes]) -> str:
    """Return a name that follows from a conversation's messages, and from how many equal ones came before it."""
    name = digest(messages)
    count = count_equal(name, equal_counts)
    return f"{kind}-{name}" + (f"-{count}" if count > 1 else "")


def count_equal(key: str, equal_counts: Counter[bytes]) -> int:
    """Return how often this came until now, this time included; a digest is kept, for there may be millions."""
    place = sha256(key.encode("utf-8", "surrogatepass")).digest()[:16]
    equal_counts[place] += 1
    return equal_counts[place]


def digest(value: object) -> str:
    return sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:20]


# --- texts


def placeholder(kind: object) -> str:
    """Return what stands for content that is no text, by its kind: "[image]" for an "image_url"."""
    media = ("image", "audio", "video", "file", "document")
    medium = next((word for word in str(kind).split("_") if word in media), kind)
    return "[file]" if medium == "document" else f"[{medium}]"


def make_storable(text: str) -> tuple[str, dict[str, Any]]:
    """Return a text with U+FFFD for characters that Postgres cannot store, and metadata that count them."""
    text, replaced = INVALID_CHARS.subn("\ufffd", text)
    return text, {"replaced": replaced} if replaced else {}
