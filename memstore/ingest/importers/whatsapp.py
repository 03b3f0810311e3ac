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
from datetime import UTC, date, datetime, time, tzinfo
from pathlib import Path, PurePosixPath
from typing import get_args

from memstore.errors import InvalidInput

from .base import DateOrder, Found, Ignored, Importer, Message, Record, derive_id, make_storable
from .files import Part, Skipped, is_zip, printable

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


class WhatsApp(Importer):
    """WhatsApp's chats."""

    name = "whatsapp"
    again = "export the chat again, without media"
    files = re.compile(r"(?:.*/)?(?:_chat|[^/]*WhatsApp[^/]*)\.txt", re.IGNORECASE)

    @staticmethod
    def likeness(head: bytes) -> float:
        """Return 0.8 for a text whose first lines begin with times and speakers."""
        lines = head.decode(errors="replace").splitlines()[:20]
        return 0.8 if any(_header(line) for line in lines) else 0.0

    def read_part(self, part: Part) -> Iterator[Found]:
        """Yield what was said in a chat, which is held as a whole: how it is written shows in all of it only."""
        begun: list[
            tuple[int, re.Match[str], list[str]]
        ] = []  # the number and the beginning of a message, and its lines
        lost: list[int] = []
        lines = part.stream.read().decode("utf-8-sig", "surrogateescape").split("\n")
        for number, line in enumerate(lines, 1):
            if header := _header(line.removesuffix("\r")):
                begun.append((number, header, []))
            elif begun:
                begun[-1][2].append(line.removesuffix("\r"))
            elif line.strip(f"{_MARKS} \t\r"):
                lost.append(number)
        spoken = [_SPOKEN.fullmatch(header["rest"]) for _, header, _ in begun]
        speakers = {_speaker(one): None for one in spoken if one and not _is_notice(one)}
        if not speakers:
            yield Skipped(part.where, f"no line of it says who said something, and when; {self.again}")
            return
        for number in lost:
            yield Skipped(
                f"{part.where}, line {number}", f"it belongs to no message: none begins before it; {self.again}"
            )
        order = self.options.date_order or find_order([header["date"] for _, header, _ in begun])
        if self.options.timezone is None:
            raise InvalidInput("WhatsApp writes no time zone; say where its phone was, with --timezone Europe/Berlin")
        if self.options.me not in speakers:
            some = ", ".join(printable(name) for name in list(speakers)[:20])
            why = (
                "say who of them you are"
                if self.options.me is None
                else f"nobody in it is called {printable(self.options.me)}"
            )
            raise InvalidInput(f"{why}; --me takes one of: {some}")
        # The first thing that an iPhone's WhatsApp says, it says in the name of the chat.
        said_first = _speaker(spoken[0]) if spoken[0] and _is_notice(spoken[0]) else ""
        chat = (
            _file_name(self.path, part.name)
            or said_first
            or make_storable(self.path.absolute().parent.name)[0]
            or "whatsapp"
        )
        clock = Clock(self.options.timezone)
        for (number, header, more), one in zip(begun, spoken, strict=True):
            where = f"{part.where}, line {number}"
            if one is None or _is_notice(one):
                yield Ignored("notices of WhatsApp")
            elif _DELETED.fullmatch(one["text"] or ""):
                yield Ignored("deleted messages")
            elif (shown := _shown_time(header, order)) is None:
                reason = f"its time ({printable(header[0][:40])}) is none in the order {order}; see --date-order"
                yield Skipped(where, reason)
            else:
                text = "\n".join([one["text"] or "", *more])
                yield self._record(text, _speaker(one), shown, where, chat, clock)

    def _record(
        self, said: str, speaker: str, shown: datetime, where: str, chat: str, clock: Clock
    ) -> Record | Ignored:
        text, metadata = make_storable(said.strip(f"{_MARKS} \n\t"))
        metadata |= {"edited": True} if _EDITED.search(text) else {}
        text = _EDITED.sub("", text).rstrip(f"{_MARKS} ")
        text = _ATTACHED.sub(lambda file: f"[{file['name'] or file['file']}]", text)
        if omitted := _OMITTED.fullmatch(text):
            text = f"[{omitted['kind'] or 'media'}]"
        if not text.strip():
            return Ignored("empty messages")
        message: Message = {"role": "user", "content": text, "name": speaker}
        external_id = derive_id(None, chat, message | {"occurred_at": shown.isoformat()}, self.seen)
        if speaker == self.options.me:
            del message["name"]
        message |= {"occurred_at": clock.to_utc(shown), "external_id": external_id, "metadata": metadata}
        return Record(conversation=chat, message=message, channel=self.name, where=where)


def _header(line: str) -> re.Match[str] | None:
    return _IPHONE.match(line) or _ANDROID.match(line)


def _file_name(path: Path, part: str) -> str:
    """Return what a chat's file is called, else its zip; nothing where both say nothing."""
    for name in (PurePosixPath(part).stem, path.stem if is_zip(path) else ""):
        name = make_storable(_COPY.sub("", name))[0].strip()
        if name and name.lower() != "_chat":
            return name
    return ""


def _speaker(spoken: re.Match[str]) -> str:
    return make_storable(spoken["name"].strip(f"{_MARKS} ~\u202f\u00a0"))[0] or "?"


def _is_notice(spoken: re.Match[str]) -> bool:
    """Return whether a line with a name before it is what WhatsApp itself says: an iPhone marks it."""
    text = spoken["text"] or ""
    marked = text.startswith("\u200e") and not (_OMITTED.fullmatch(text) or _ATTACHED.search(text))
    return marked and not _DELETED.fullmatch(text)


def _shown_time(header: re.Match[str], order: DateOrder) -> datetime | None:
    """Return the time as the clock showed it."""
    day, hour = parse_day(header["date"], order), int(header["hour"])
    if header["half"]:
        hour = hour % 12 + (12 if header["half"] in "Pp" else 0)
    try:
        clock = time(hour, int(header["minute"]), int(header["second"] or 0))
    except ValueError:
        return None
    return datetime.combine(day, clock) if day else None


def find_order(dates: list[str]) -> DateOrder:
    """Return in which order all these dates are written; raise `InvalidInput` where two remain, or none.

    With points between its numbers the month is not first; a year that is has four digits.
    """
    possible: list[tuple[DateOrder, list[date]]] = []
    for order in get_args(DateOrder):
        days = [
            day
            for written in dates
            if (day := parse_day(written, order))
            and not (order == "mdy" and "." in written)
            and not (order == "ymd" and not written[:4].isdigit())
        ]
        if len(days) == len(dates):
            possible.append((order, days))
    why = "may be read in two ways" if possible else "are written in more than one order"
    if len(possible) > 1:  # a chat is written in the order of its time
        possible = [(order, days) for order, days in possible if days == sorted(days)]
    if len(possible) == 1:
        return possible[0][0]
    raise InvalidInput(f"its dates {why}; say how they are meant with --date-order dmy, mdy or ymd")


def parse_day(written: str, order: DateOrder) -> date | None:
    """Return the day that three numbers mean in this order, or None; a year of two digits is of this century."""
    numbers = re.split(r"[./-]\s?", written)
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
