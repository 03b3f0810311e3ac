"""A chat that WhatsApp exported: `_chat.txt` of an iPhone, "WhatsApp Chat with ….txt" of Android, or the zip with it.

    [12.03.24, 18:05:11] Ann: On Friday then          12/03/24, 6:05 pm - Ann: On Friday then

- The times are those of a clock, without a zone: `timezone` must be given. Summer time is observed.
- Days are written in the order of the phone's country: it is found from all dates of the file, else `date_order` must
  be given.
- Everybody is a user with a name, but for `me`, which must be given: those messages have no name, and are the user's
  own.
- A line that begins with no time goes on with the message before it. WhatsApp's own lines (somebody joined, calls are
  encrypted) and deleted messages are ignored and counted. A picture that is not in the text is "[image]", a file
  "[name]".
- Messages bring no ids: they follow from who said what when, as the clock showed it.

A chat is named after its file, or, where that is `_chat.txt`, after its zip or folder.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, date, datetime, time
from pathlib import Path, PurePosixPath
from typing import get_args

from memstore.errors import InvalidInput

from .base import DateOrder, IgnoredContent, Importer, ImportItem, Message, Record, derive_id, make_storable
from .files import ImportProblem, OpenFile, printable

_MARKS = "\u200e\u200f\u202a\u202c\ufeff"  # invisible marks that turn writing left or right
_TIME = (
    r"(?P<date>\d{1,4}[./-]\s?\d{1,2}[./-]\s?\d{1,4})\.?,?[\s\u202f](?:klo |um |at )?"
    r"(?P<hour>\d{1,2})[:.](?P<minute>\d{2})(?:[:.](?P<second>\d{2}))?"
    r"(?:[\s\u202f]?(?P<half>[AaPp])\.?[\s\u202f]?[Mm]\.?)?"
)
_IPHONE = re.compile(rf"[{_MARKS}]*\[{_TIME}\] (?P<rest>.*)", re.DOTALL)
_ANDROID = re.compile(rf"[{_MARKS}]*{_TIME} [-–] (?P<rest>.*)", re.DOTALL)
# No quotes: Ann changed the subject from “A: b” to “C: d”.
_SPOKEN = re.compile(r"(?P<name>[^:“”\"\n]{1,100}):(?: (?P<text>.*)|\s*)", re.DOTALL)
_OMITTED = re.compile(rf"[{_MARKS}]*(?:<[^<>\n]{{3,40}}>|(?P<kind>[\w -]{{3,30}}) (?:omitted|weggelassen))")
# Looked for where a line begins, or by a fixed word: a long text is not tried again at every character.
_ATTACHED = re.compile(
    r"<(?:attached|Anhang): (?P<name>[^<>\n]+)>"
    rf"|(?m:^)[{_MARKS}]*(?P<file>[^\n<>]{{1,200}}\.\w{{2,5}}) \((?:file attached|Datei angehängt)\)"
)
_DELETED = re.compile(
    rf"[{_MARKS}]*(?:This message was deleted|You deleted this message"
    rf"|Diese Nachricht wurde gelöscht|Du hast diese Nachricht gelöscht)\.?[{_MARKS}]*"
)
_EDITED = re.compile(rf"<(?:This message was edited|Diese Nachricht wurde bearbeitet\.?)>[{_MARKS}]*$")
_COPY = re.compile(r" ?\([0-9]+\)$")  # what a browser adds to the name of a second download


class WhatsApp(Importer):
    """WhatsApp's chats."""

    name = "whatsapp"
    advice = "export the chat again, without media"
    files = re.compile(r"(?:.*/)?(?:_chat|[^/]*WhatsApp[^/]*)\.txt", re.IGNORECASE)

    @staticmethod
    def rate_head(head: bytes) -> float:
        """Return 0.8 for a text whose first lines begin with times and speakers."""
        lines = head.decode(errors="replace").splitlines()[:20]
        return 0.8 if any(_header(line) for line in lines) else 0.0

    def read_file(self, file: OpenFile) -> Iterator[ImportItem]:
        """Yield the messages of a chat. It is held as a whole: only all of it shows how its dates are written."""
        begun: list[
            tuple[int, re.Match[str], list[str]]
        ] = []  # the number and the beginning of a message, and its lines
        lost: list[int] = []
        lines = file.stream.read().decode("utf-8-sig", "surrogateescape").split("\n")
        for number, line in enumerate(lines, 1):
            if header := _header(line.removesuffix("\r")):
                begun.append((number, header, []))
            elif begun:
                begun[-1][2].append(line.removesuffix("\r"))
            elif line.strip(f"{_MARKS} \t\r"):
                lost.append(number)
        spoken = [_SPOKEN.fullmatch(header["rest"]) for _, header, _ in begun]
        speakers = {_speaker(one): None for one in spoken if one and not _is_notice(one)}
        if not begun and not lost:
            yield ImportProblem(file.where, f"the file is empty; {self.advice}")
            return
        if not speakers:
            yield ImportProblem(file.where, f"no line of it says who said something, and when; {self.advice}")
            return
        for number in lost:
            yield ImportProblem(
                f"{file.where}, line {number}", f"it belongs to no message: none begins before it; {self.advice}"
            )
        order = self.options.date_order or _find_order([header["date"] for _, header, _ in begun])
        if self.options.timezone is None:
            raise InvalidInput("WhatsApp writes no time zone; give that of its phone, such as --timezone Europe/Berlin")
        me = next((name for name in speakers if _is_same(name, self.options.me)), None)
        if me is None:
            raise self.unknown_me(speakers)
        chat = _chat_name(self.path, file.name)
        for (number, header, more), one in zip(begun, spoken, strict=True):
            where = f"{file.where}, line {number}"
            if one is None or _is_notice(one):
                yield IgnoredContent("notices of WhatsApp")
            elif _DELETED.fullmatch(one["text"] or ""):
                yield IgnoredContent("deleted messages")
            elif (shown := _shown_time(header, order)) is None:
                reason = f"its time ({printable(header[0][:40])}) is none in the order {order}; see --date-order"
                yield ImportProblem(where, reason)
            else:
                text = "\n".join([one["text"] or "", *more])
                yield self._record(text, _speaker(one), me, shown, where, chat)

    def _record(
        self, said: str, speaker: str, me: str, shown: datetime, where: str, chat: str
    ) -> Record | IgnoredContent:
        text, metadata = make_storable(said.strip(f"{_MARKS} \n\t"))
        metadata |= {"edited": True} if _EDITED.search(text) else {}
        text = _EDITED.sub("", text).rstrip(f"{_MARKS} ")
        text = _ATTACHED.sub(lambda file: f"[{file['name'] or file['file']}]", text)
        if omitted := _OMITTED.fullmatch(text):
            text = f"[{omitted['kind'] or 'media'}]"
        if not text.strip():
            return IgnoredContent("empty messages")
        message: Message = {"role": "user", "content": text, "name": speaker}
        external_id = derive_id(None, chat, message | {"occurred_at": shown.isoformat()}, self.equal_counts)
        if speaker == me:
            del message["name"]
        when = shown.replace(tzinfo=self.options.timezone).astimezone(UTC)
        message |= {"occurred_at": when, "external_id": external_id, "metadata": metadata}
        return Record(conversation=chat, message=message, channel=self.name, where=where)


def _is_same(name: str, given: str | None) -> bool:
    return given is not None and name.casefold() == given.strip("~ ").casefold()


def _header(line: str) -> re.Match[str] | None:
    return _IPHONE.match(line) or _ANDROID.match(line)


def _chat_name(path: Path, file: str) -> str:
    names = PurePosixPath(file).stem, path.stem, path.absolute().parent.name
    storable = (make_storable(_COPY.sub("", name))[0].strip() for name in names)
    return next((name for name in storable if name and name.lower() != "_chat"), "whatsapp")


def _speaker(spoken: re.Match[str]) -> str:
    return make_storable(spoken["name"].strip(f"{_MARKS} ~\u202f\u00a0"))[0] or "?"


def _is_notice(spoken: re.Match[str]) -> bool:
    """Return whether a line with a name before it is WhatsApp's own: an iPhone marks it."""
    text = spoken["text"] or ""
    marked = text.startswith("\u200e") and not (_OMITTED.fullmatch(text) or _ATTACHED.search(text))
    return marked and not _DELETED.fullmatch(text)


def _shown_time(header: re.Match[str], order: DateOrder) -> datetime | None:
    day, hour = _parse_day(header["date"], order), int(header["hour"])
    if header["half"]:
        hour = hour % 12 + (12 if header["half"] in "Pp" else 0)
    try:
        clock = time(hour, int(header["minute"]), int(header["second"] or 0))
    except ValueError:
        return None
    return datetime.combine(day, clock) if day else None


def _find_order(dates: list[str]) -> DateOrder:
    """Return the order of day, month and year in all these dates; raise `InvalidInput` if several fit, or none."""
    read: dict[DateOrder, list[date | None]] = {
        order: [_parse_day(written, order) for written in dates] for order in get_args(DateOrder)
    }
    possible = {order: [day for day in days if day] for order, days in read.items() if all(days)}
    why = "may be read in two ways" if possible else "are written in more than one order"
    if len(possible) > 1:  # a chat is written in the order of its time
        possible = {order: days for order, days in possible.items() if days == sorted(days)}
    if len(possible) == 1:
        return next(iter(possible))
    raise InvalidInput(f"its dates {why}; give --date-order dmy, mdy or ymd")


def _parse_day(written: str, order: DateOrder) -> date | None:
    """Return the day that three numbers mean in this order, or None; a year of two digits is of this century.

    With points between its numbers the month is not first; where the year is first it has four digits.
    """
    if (order == "mdy" and "." in written) or (order == "ymd" and not written[:4].isdigit()):
        return None
    numbers = re.split(r"[./-]\s?", written)
    year, month, day = (numbers[order.index(unit)] for unit in "ymd")
    if len(year) not in (2, 4) or len(month) > 2 or len(day) > 2:
        return None
    try:
        return date(int(year) + (2000 if len(year) == 2 else 0), int(month), int(day))
    except ValueError:
        return None
