"""A chat that WhatsApp exported: `_chat.txt` of an iPhone, "WhatsApp Chat with ….txt" of Android, or the zip with it.

    [12.03.24, 18:05:11] Ann: On Friday then          12/03/24, 6:05 pm - Ann: On Friday then

- The times are those of a clock, without a zone: `timezone` must be given. Summer time is observed; of the hour that
  comes twice in autumn, the order of the messages tells which is meant, where it can.
- Days are written in the order of the phone's country: it is found from all dates of the file, else `date_order` must
  be given.
- Everybody is a user with a name, but for `me`, which must be given: those messages have no name, and are the user's
  own.
- A line that begins with no time goes on with the message before it. What WhatsApp itself says (somebody joined, calls
  are encrypted) and deleted messages are ignored and counted. A picture that is not in the text is "[image]", a file
  "[name]".
- Messages bring no ids: they follow from who said what when, as the clock showed it.

A chat is named after its file, or, where that is `_chat.txt`, after its zip, its first line, or its folder.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, tzinfo
from functools import partial
from pathlib import Path, PurePosixPath

from memstore.errors import InvalidInput

from .base import (
    DEFAULTS,
    DateOrder,
    Found,
    Ignored,
    Importer,
    ImportOptions,
    Record,
    Skipped,
    make_storable,
    printable,
)
from .external_sort import Occurrences, derive_id
from .files import READ_ERRORS, Part, check_file, first_head, is_zip, read_parts
from .json_stream import LONGEST_LINE, numbered_lines

AGAIN = "export the chat again, without media"
MOST_NAMES = 1000

_MEMBER = re.compile(r"(?:.*/)?(?:_chat|[^/]*WhatsApp[^/]*)\.txt", re.IGNORECASE)
_MARKS = "\u200e\u200f\u202a\u202c\ufeff"  # what tells writing to go left or right, and is not seen
_TIME = (
    r"(?P<date>\d{1,4}[./-]\s?\d{1,2}[./-]\s?\d{1,4})\.?,?[\s\u202f](?:klo |um |at )?"
    r"(?P<hour>\d{1,2})[:.](?P<minute>\d{2})(?:[:.](?P<second>\d{2}))?"
    r"(?:[\s\u202f]?(?P<half>[AaPp])\.?[\s\u202f]?[Mm]\.?)?"
)
_IPHONE = re.compile(rf"[{_MARKS}]*\[{_TIME}\] (?P<rest>.*)", re.DOTALL)
_ANDROID = re.compile(rf"[{_MARKS}]*{_TIME} [-–] (?P<rest>.*)", re.DOTALL)
# No quotes: Ann changed the subject from “A: b” to “C: d”.
_SPOKEN = re.compile(r"(?P<name>[^:“”\"\n]{1,100}):(?: (?P<text>.*)|\s*)", re.DOTALL)
_OMITTED = re.compile(rf"[{_MARKS}]*(?:<[^<>\n]{{3,40}}>|(?P<kind>[\w ]{{3,30}}) omitted)")
# Looked for where a line begins, or by a fixed word: a long text is not tried again at every character.
_ATTACHED = re.compile(
    r"<attached: (?P<name>[^<>\n]+)>"
    rf"|(?m:^)[{_MARKS}]*(?P<file>[^\n<>]{{1,200}}\.\w{{2,5}}) \(file attached\)"
)
_DELETED = re.compile(rf"[{_MARKS}]*(?:This message was deleted|You deleted this message)\.?[{_MARKS}]*")
_EDITED = re.compile(rf"<This message was edited>[{_MARKS}]*$")
_COPY = re.compile(r" ?\([0-9]+\)$")  # what a browser adds to the name of a second download


def sniff(path: Path) -> float:
    """Return 0.8 for a text whose first lines begin with times and speakers."""
    lines = first_head(path, _MEMBER).decode(errors="replace").splitlines()[:20]
    return 0.8 if any(_header(line) for line in lines) else 0.0


def read(path: Path, options: ImportOptions = DEFAULTS) -> Iterator[Found]:
    """Yield what was said in each chat; it is read twice, for how it is written shows in the whole of it only."""
    check_file(path)
    surveyed = read_parts(path, _MEMBER, DEFAULTS, lambda part: [_survey(part, path)], AGAIN)
    chats = {chat.part: chat for chat in surveyed if isinstance(chat, _Chat)}  # the second reading says what is wrong
    for chat in chats.values():
        chat.settle(options)
    yield from read_parts(path, _MEMBER, options, partial(_read_chat, chats=chats, options=options), AGAIN)


@dataclass(slots=True)
class _Chat:
    """What is known of a chat before its messages are read."""

    part: str
    name: str
    orders: DateOrders
    speakers: dict[str, None] = field(default_factory=dict)
    order: DateOrder = "dmy"

    def settle(self, options: ImportOptions) -> None:
        """Decide how dates are written; raise `InvalidInput` where only the importing person knows what is meant."""
        if not self.speakers:
            return
        self.order = options.date_order or self.orders.find()
        if options.timezone is None:
            raise InvalidInput("WhatsApp writes no time zone; say where its phone was, with --timezone Europe/Berlin")
        if options.me not in self.speakers:
            some = ", ".join(printable(name) for name in list(self.speakers)[:20])
            why = "say who of them you are" if options.me is None else f"nobody in it is called {printable(options.me)}"
            raise InvalidInput(f"{why}; --me takes one of: {some}")


def _header(line: str) -> re.Match[str] | None:
    return _IPHONE.match(line) or _ANDROID.match(line)


def _survey(part: Part, path: Path) -> _Chat:
    """Read a chat for its dates and its speakers."""
    chat = _Chat(part.name, _file_name(path, part.name), DateOrders())
    try:
        for number, line in numbered_lines(part.stream):
            header = _header((line or b"").decode(errors="replace").rstrip("\r\n"))
            if header is None:
                continue
            chat.orders.add(_numbers(header), points="." in header["date"])
            spoken = _SPOKEN.fullmatch(header["rest"])
            if spoken is None:
                continue
            if _is_notice(spoken):
                # The first thing that an iPhone's WhatsApp says, it says in the name of the chat.
                chat.name = chat.name or (_speaker(spoken) if number == 1 else "")
            elif len(chat.speakers) < MOST_NAMES:
                chat.speakers[_speaker(spoken)] = None
    except READ_ERRORS:
        pass  # the second reading says so
    chat.name = chat.name or make_storable(path.absolute().parent.name)[0] or "whatsapp"
    return chat


def _file_name(path: Path, part: str) -> str:
    """Return what a chat's file is called, else its zip; nothing where both say nothing."""
    for name in (PurePosixPath(part).stem, path.stem if is_zip(path) else ""):
        name = make_storable(_COPY.sub("", name))[0].strip()
        if name and name.lower() != "_chat":
            return name
    return ""


def _numbers(header: re.Match[str]) -> Numbers:
    first, second, third = re.split(r"[./-]\s?", header["date"])
    return first, second, third


def _speaker(spoken: re.Match[str]) -> str:
    return make_storable(spoken["name"].strip(f"{_MARKS} ~\u202f\u00a0"))[0] or "?"


def _is_notice(spoken: re.Match[str]) -> bool:
    """Return whether a line with a name before it is what WhatsApp itself says: an iPhone marks it."""
    text = spoken["text"] or ""
    marked = text.startswith("\u200e") and not (_OMITTED.fullmatch(text) or _ATTACHED.search(text))
    return marked and not _DELETED.fullmatch(text)


@dataclass(slots=True)
class _Message:
    """A message whose last line may be still to come."""

    spoken: re.Match[str]
    shown: datetime  # as the clock showed it
    where: str
    lines: list[str]
    size: int = 0


def _read_chat(part: Part, chats: dict[str, _Chat], options: ImportOptions) -> Iterator[Found]:
    """Yield a chat's messages, each when the next begins."""
    chat = chats.get(part.name)
    if chat is None or not chat.speakers:
        yield Skipped(part.where, f"no line of it says who said something, and when; {AGAIN}")
        return
    clock = Clock(options.timezone or UTC)  # settled before: it is given
    with Occurrences() as seen:
        for one in _messages(part, chat.order):
            yield _record(one, chat.name, clock, options.me, seen) if isinstance(one, _Message) else one


def _messages(part: Part, order: DateOrder) -> Iterator[_Message | Skipped | Ignored]:
    pending: _Message | None = None
    number = 0
    try:
        for number, line in numbered_lines(part.stream):
            where = f"{part.where}, line {number}"
            if line is None:
                yield Skipped(where, f"the line is longer than {LONGEST_LINE:,} bytes; {AGAIN}")
                continue
            text = line.decode("utf-8", "surrogateescape").rstrip("\r\n")
            if header := _header(text):
                if pending is not None:
                    yield pending
                begun = _begin(header, order, where)
                pending = begun if isinstance(begun, _Message) else None
                if not isinstance(begun, _Message):
                    yield begun
            elif pending is None:
                if text.strip(f"{_MARKS} \t"):
                    yield Skipped(where, f"it belongs to no message: none begins before it; {AGAIN}")
            else:
                pending.size += len(text) + 1
                if pending.size <= LONGEST_LINE:
                    pending.lines.append(text)
                else:
                    reason = f"the message it goes on with is longer than {LONGEST_LINE:,} characters already"
                    yield Skipped(where, reason)
    except READ_ERRORS as error:
        reason = f"the file is cut off or damaged ({printable(str(error), 200)})"
        yield Skipped(f"{part.where}, after line {number}", reason)
    if pending is not None:
        yield pending


def _begin(header: re.Match[str], order: DateOrder, where: str) -> _Message | Skipped | Ignored:
    """Return the message that a line begins, or what it is instead."""
    spoken = _SPOKEN.fullmatch(header["rest"])
    if spoken is None or _is_notice(spoken):
        return Ignored("notices of WhatsApp")
    if _DELETED.fullmatch(spoken["text"] or ""):
        return Ignored("deleted messages")
    day, hour = parse_day(_numbers(header), order), int(header["hour"])
    if header["half"]:
        hour = hour % 12 + (12 if header["half"] in "Pp" else 0)
    try:
        clock = time(hour, int(header["minute"]), int(header["second"] or 0))
    except ValueError:
        day = None
    if day is None:
        return Skipped(where, f"its time ({printable(header[0][:40])}) is none in the order {order}; see --date-order")
    return _Message(spoken, datetime.combine(day, clock), where, [spoken["text"] or ""])


def _record(one: _Message, chat: str, clock: Clock, me: str | None, seen: Occurrences) -> Record | Ignored:
    text, metadata = make_storable("\n".join(one.lines).strip(f"{_MARKS} \n\t"))
    speaker = _speaker(one.spoken)
    metadata |= {"edited": True} if _EDITED.search(text) else {}
    text = _EDITED.sub("", text).rstrip(f"{_MARKS} ")
    text = _ATTACHED.sub(lambda file: f"[{file['name'] or file['file']}]", text)
    if omitted := _OMITTED.fullmatch(text):
        text = f"[{omitted['kind'] or 'media'}]"
    if not text.strip():
        return Ignored("empty messages")
    message: dict[str, object] = {"role": "user", "content": text, "name": speaker}
    external_id = derive_id(None, chat, message | {"occurred_at": one.shown.isoformat()}, seen)
    if speaker == me:
        del message["name"]
    message |= {"occurred_at": clock.to_utc(one.shown), "external_id": external_id, "metadata": metadata}
    return Record(conversation=chat, message=message, channel="whatsapp", where=one.where)


Numbers = tuple[str, str, str]  # of a date, as they are written


class DateOrders:
    """Finds in which order days, months and years are written, from all dates of a file in turn."""

    def __init__(self) -> None:
        self._possible: dict[DateOrder, bool] = {"dmy": True, "mdy": True, "ymd": True}
        self._sorted = dict(self._possible)
        self._last: dict[DateOrder, date] = {}

    def add(self, numbers: Numbers, *, points: bool) -> None:
        """See a date. With points between its numbers the month is not first; a year that is has four digits."""
        for order in self._possible:
            day = parse_day(numbers, order)
            if day is None or (order == "mdy" and points) or (order == "ymd" and len(numbers[0]) < 4):
                self._possible[order] = False
            else:
                self._sorted[order] &= self._last.get(order, day) <= day
                self._last[order] = day

    def find(self) -> DateOrder:
        """Return the order; raise `InvalidInput` where two remain, or none."""
        possible = [order for order, fits in self._possible.items() if fits]
        if len(possible) > 1:  # a chat is written in the order of its time
            possible = [order for order in possible if self._sorted[order]]
        if len(possible) == 1:
            return possible[0]
        why = "may be read in two ways" if possible else "are written in more than one order"
        raise InvalidInput(f"its dates {why}; say how they are meant with --date-order dmy, mdy or ymd")


def parse_day(numbers: Numbers, order: DateOrder) -> date | None:
    """Return the day that three numbers mean in this order, or None; a year of two digits is of this century."""
    year, month, day = (numbers[order.index(unit)] for unit in "ymd")
    if len(year) not in (2, 4) or len(month) > 2 or len(day) > 2:
        return None
    try:
        return date(int(year) + (2000 if len(year) == 2 else 0), int(month), int(day))
    except ValueError:
        return None


class Clock:
    """Converts a clock's times, in their order, to UTC, through the changes of summer time."""

    def __init__(self, timezone: tzinfo) -> None:
        self._timezone = timezone
        self._last: datetime | None = None

    def to_utc(self, shown: datetime) -> datetime:
        """Return the time in UTC. Of an hour that comes twice, the first one that is not before the last time."""
        first, second = (shown.replace(tzinfo=self._timezone, fold=fold).astimezone(UTC) for fold in (0, 1))
        # In spring the clock skips an hour, and fold then means the two sides of the gap: the first is what was meant.
        late = first < second and self._last is not None and first < self._last <= second
        self._last = second if late else first
        return self._last


WHATSAPP = Importer("whatsapp", sniff, read)
