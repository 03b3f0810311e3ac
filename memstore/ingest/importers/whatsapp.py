"""A chat that WhatsApp exported: `_chat.txt` of an iPhone, "WhatsApp Chat with ….txt" of Android, or the zip with it.

    [12.03.24, 18:05:11] Ann: On Friday then          12/03/24, 6:05 pm - Ann: On Friday then

- The times are those of a clock, without a zone: `timezone` must be given. Summer time is observed; of the hour that
  comes twice in autumn, the order of the messages tells which is meant, where it can.
- Days are written in the order of the phone's country: it is found from all dates of the file, else `date_order` must
  be given.
- Everybody is a user with a name, but for `me`, which must be given: those messages have no name, and are the user's
  own.
- A line that begins with no time goes on with the message before it. What WhatsApp itself says (somebody joined, calls
  are encrypted) and deleted messages are left out and counted. A picture that is not in the text is "[image]", a file
  "[name]".
- Messages bring no ids: they follow from who said what when, as the clock showed it.

A chat is named after its file, or, where that is `_chat.txt`, after its zip, its first line, or its folder.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, time
from pathlib import Path, PurePosixPath

from memstore.errors import InvalidInput

from .files import MOST_UNPACKED, READ_ERRORS, Part, check_file, first_head, is_zip, parts, read_parts
from .lines import LONGEST_LINE, numbered_lines
from .local_times import Clock, DateOrders, written
from .made_ids import made_id
from .reading import PLAINLY, DateOrder, Reading
from .records import Found, LeftOut, Record, Skipped, shown, storable
from .scratch import Occurrences

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


@dataclass(frozen=True, slots=True)
class WhatsApp:
    """Reads a chat of WhatsApp's."""

    @property
    def name(self) -> str:
        """What `--format` calls it."""
        return "whatsapp"

    def sniff(self, path: Path) -> float:
        """Give 0.8 for a text whose first lines begin with times and speakers."""
        lines = first_head(path, _MEMBER).decode(errors="replace").splitlines()[:20]
        return 0.8 if any(_header(line) for line in lines) else 0.0

    def read(self, path: Path, reading: Reading = PLAINLY) -> Iterator[Found]:
        """Give what was said in each chat; it is read twice, for how it is written shows in the whole of it only."""
        check_file(path)
        chats = {}
        try:
            for part in parts(path, _MEMBER, MOST_UNPACKED):
                chats[part.name] = _looked_at(part, path)
        except READ_ERRORS:
            pass  # the second reading tells it
        for chat in chats.values():
            chat.settle(reading)

        def read(part: Part) -> Iterator[Found]:
            chat = chats.get(part.name)
            return _chat(part, chat, reading) if chat is not None else iter(())

        yield from read_parts(path, _MEMBER, reading, read, AGAIN)


@dataclass(slots=True)
class _Chat:
    """What is known of a chat before its messages are read."""

    name: str
    speakers: dict[str, None] = field(default_factory=dict)
    orders: DateOrders = field(default_factory=DateOrders)
    order: DateOrder = "dmy"

    def settle(self, reading: Reading) -> None:
        """Decide how dates are written; InvalidInput where only the importing person knows what is meant."""
        if not self.speakers:
            return
        self.order = reading.date_order or self.orders.found()
        if reading.timezone is None:
            raise InvalidInput("WhatsApp writes no time zone; say where its phone was, with --timezone Europe/Berlin")
        if reading.me not in self.speakers:
            some = ", ".join(shown(name) for name in list(self.speakers)[:20])
            why = "say who of them you are" if reading.me is None else f"nobody in it is called {shown(reading.me)}"
            raise InvalidInput(f"{why}; --me takes one of: {some}")


def _header(line: str) -> re.Match[str] | None:
    return _IPHONE.match(line) or _ANDROID.match(line)


def _looked_at(part: Part, path: Path) -> _Chat:
    """Read a chat for its dates and its speakers."""
    chat = _Chat(_named_after(path, part.name))
    try:
        for number, line in numbered_lines(part.stream):
            found = _header((line or b"").decode(errors="replace").rstrip("\r\n"))
            if found is None:
                continue
            chat.orders.add(_numbers(found), points="." in found["date"])
            spoken = _SPOKEN.fullmatch(found["rest"])
            if spoken is None:
                continue
            if _of_whatsapp(spoken):
                # The first thing that an iPhone's WhatsApp says, it says in the name of the chat.
                chat.name = chat.name or (_speaker(spoken) if number == 1 else "")
            elif len(chat.speakers) < MOST_NAMES:
                chat.speakers[_speaker(spoken)] = None
    except READ_ERRORS:
        pass  # the second reading tells it
    chat.name = chat.name or storable(path.absolute().parent.name)[0] or "whatsapp"
    return chat


def _named_after(path: Path, part: str) -> str:
    """Give what a chat's file is called, else its zip; nothing where both say nothing."""
    for name in (PurePosixPath(part).stem, path.stem if is_zip(path) else ""):
        name = storable(_COPY.sub("", name))[0].strip()
        if name and name.lower() != "_chat":
            return name
    return ""


def _numbers(found: re.Match[str]) -> tuple[str, str, str]:
    first, second, third = re.split(r"[./-]\s?", found["date"])
    return first, second, third


def _speaker(spoken: re.Match[str]) -> str:
    return storable(spoken["name"].strip(f"{_MARKS} ~\u202f\u00a0"))[0] or "?"


def _of_whatsapp(spoken: re.Match[str]) -> bool:
    """Whether a line with a name before it is what WhatsApp itself says: an iPhone marks it."""
    text = spoken["text"] or ""
    marked = text.startswith("\u200e") and not (_OMITTED.fullmatch(text) or _ATTACHED.search(text))
    return marked and not _DELETED.fullmatch(text)


@dataclass(slots=True)
class _Open:
    """A message whose last line may be still to come."""

    spoken: re.Match[str]
    shown: datetime
    where: str
    lines: list[str]
    size: int = 0


def _chat(part: Part, chat: _Chat, reading: Reading) -> Iterator[Found]:
    """Give a chat's messages, each when the next begins."""
    if not chat.speakers:
        yield Skipped(part.where, f"no line of it says who said something, and when; {AGAIN}")
        return
    clock = Clock(reading.timezone or UTC)  # settled before: it is given
    with Occurrences() as seen:
        for one in _messages(part, chat):
            if isinstance(one, _Open):
                yield _record(one, chat, clock, reading.me, seen)
            else:
                yield one


def _messages(part: Part, chat: _Chat) -> Iterator[_Open | Skipped | LeftOut]:
    pending: _Open | None = None
    number = 0
    try:
        for number, line in numbered_lines(part.stream):
            where = f"{part.where}, line {number}"
            if line is None:
                yield Skipped(where, f"the line is longer than {LONGEST_LINE:,} bytes; {AGAIN}")
                continue
            text = line.decode("utf-8", "surrogateescape").rstrip("\r\n")
            if (found := _header(text)) is None:
                yield from _continued(pending, text, where)
                continue
            if pending is not None:
                yield pending
            begun = _begun(found, chat, where)
            pending = begun if isinstance(begun, _Open) else None
            if not isinstance(begun, _Open):
                yield begun
    except READ_ERRORS as error:
        yield Skipped(
            f"{part.where}, after line {number}", f"the file is cut off or damaged ({shown(str(error), 200)})"
        )
    if pending is not None:
        yield pending


def _continued(pending: _Open | None, text: str, where: str) -> Iterator[Skipped]:
    """Add a line to the message before it, while that one is not longer than a line may be."""
    if pending is None:
        if text.strip(f"{_MARKS} \t"):
            yield Skipped(where, f"it belongs to no message: none begins before it; {AGAIN}")
        return
    pending.size += len(text) + 1
    if pending.size <= LONGEST_LINE:
        pending.lines.append(text)
    else:
        yield Skipped(where, f"the message it goes on with is longer than {LONGEST_LINE:,} characters already")


def _begun(found: re.Match[str], chat: _Chat, where: str) -> _Open | Skipped | LeftOut:
    """Give the message that a line begins, or what it is instead."""
    spoken = _SPOKEN.fullmatch(found["rest"])
    if spoken is None or _of_whatsapp(spoken):
        return LeftOut("notices of WhatsApp")
    if _DELETED.fullmatch(spoken["text"] or ""):
        return LeftOut("deleted messages")
    day, hour = written(_numbers(found), chat.order), int(found["hour"])
    if found["half"]:
        hour = hour % 12 + (12 if found["half"] in "Pp" else 0)
    try:
        clock = time(hour, int(found["minute"]), int(found["second"] or 0))
    except ValueError:
        day = None
    if day is None:
        return Skipped(where, f"its time ({shown(found[0][:40])}) is none in the order {chat.order}; see --date-order")
    return _Open(spoken, datetime.combine(day, clock), where, [spoken["text"] or ""])


def _record(one: _Open, chat: _Chat, clock: Clock, me: str | None, seen: Occurrences) -> Record | LeftOut:
    text, metadata = storable("\n".join(one.lines).strip(f"{_MARKS} \n\t"))
    speaker = _speaker(one.spoken)
    metadata |= {"edited": True} if _EDITED.search(text) else {}
    text = _EDITED.sub("", text).rstrip(f"{_MARKS} ")
    text = _ATTACHED.sub(lambda file: f"[{file['name'] or file['file']}]", text)
    if omitted := _OMITTED.fullmatch(text):
        text = f"[{omitted['kind'] or 'media'}]"
    if not text.strip():
        return LeftOut("empty messages")
    message: dict[str, object] = {"role": "user", "content": text, "name": speaker}
    known = made_id(None, chat.name, message | {"occurred_at": one.shown.isoformat()}, seen)
    if speaker == me:
        del message["name"]
    message |= {"occurred_at": clock.instant(one.shown), "external_id": known, "metadata": metadata}
    return Record(user=None, conversation=chat.name, message=message, channel="whatsapp", where=one.where)
