"""A chat that WhatsApp exported, as docs/reference/importing.md says.

    [12.03.24, 18:05:11] Ann: On Friday then          12/03/24, 6:05 pm - Ann: On Friday then

The order of days is found from all dates of the file. Messages bring no ids: they follow from who said what when, as
the clock showed it. A chat is named after its file, or, where that is `_chat.txt`, after its zip or folder.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from datetime import UTC, date, datetime, time
from difflib import get_close_matches
from pathlib import Path, PurePosixPath
from typing import NamedTuple, get_args

from memstore.language import compile_phrases, word_set

from .base import (
    DateOrder,
    IgnoredContent,
    Importer,
    ImportItem,
    Message,
    OptionMissing,
    Record,
    derive_id,
    make_storable,
)
from .files import ImportProblem, OpenFile, open_files, printable, read_files, read_start

# Invisible marks that turn writing left or right.
_MARKS = "\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\ufeff"
# Words before the hour or behind it, letters alone.
_HOURS = dict.fromkeys(word_set("am 上午 凌晨 清晨 早上 早晨 午前 오전 ص πμ לפנהצ sa öö قظ"), 0) | dict.fromkeys(
    word_set("pm 下午 中午 晚上 傍晚 午後 오후 م μμ אחהצ ch ös بظ"), 12
)
# Looked for where a line begins, or by a fixed word: a long text is not tried again at every character.
_ATTACHED = re.compile(
    rf"<(?:attached|Anhang): (?P<name>[^<>\n]+)>|\u200e<[^<>:\n]{{3,30}}: (?P<marked>[^<>\n]+\.\w{{2,5}})>"
    rf"|(?m:^)[{_MARKS}]*(?P<file>[^\n<>]{{1,200}}\.\w{{2,5}}) \((?:file attached|Datei angehängt)\)"
    rf"|(?m:^)[{_MARKS}]*(?P<numbered>[A-Z]{{3}}-\d{{8}}-WA\d{{4}}\.\w{{2,5}}) \([^()\n]{{3,40}}\)"
)
_DELETED = compile_phrases(
    "This message was deleted, You deleted this message, Diese Nachricht wurde gelöscht, Du hast diese Nachricht "
    "gelöscht, Se eliminó este mensaje, Este mensaje fue eliminado, Eliminaste este mensaje, Has eliminado este "
    "mensaje, Mensagem apagada, Esta mensagem foi apagada, Essa mensagem foi apagada, Você apagou esta mensagem, "
    "Apagou esta mensagem, Ce message a été supprimé, Vous avez supprimé ce message, Questo messaggio è stato "
    "eliminato, Hai eliminato questo messaggio",
    ignore_case=False,
)
_EDITED = compile_phrases(
    "This message was edited, Diese Nachricht wurde bearbeitet, Se editó este mensaje, Mensagem editada, "
    "Ce message a été modifié, Questo messaggio è stato modificato",
    ignore_case=False,
)
# An iPhone puts a name before its notices too, and a mark; but what people say may begin with the mark.
_NOTICE = compile_phrases(
    "end-to-end, Ende-zu-Ende, extremo a extremo, bout en bout, ponta a ponta, created group, created this group, "
    "added you, left, joined using, were added, changed the, changed this, changed their, changed your, changed to, "
    "turned on, turned off, pinned a message, an admin, blocked this contact"
)


class _Header(NamedTuple):
    """The beginning of a message: its time as it is written, whole and in parts, and what follows it."""

    time: str
    date: str
    clock: re.Match[str]
    is_iphone: bool
    rest: str

    @property
    def words(self) -> list[str]:
        """The words before the clock and behind it."""
        return ["".join(filter(str.isalpha, part or "")).lower() for part in self.clock.group(1, 5)]


class WhatsApp(Importer):
    name = "whatsapp"
    advice = "export the chat again, without media"
    option_names = ("me", "timezone", "date_order")
    files = ("_chat.txt", "*whatsapp*.txt")

    @classmethod
    def sniff(cls, path: Path) -> bool:
        starts = map(read_start, open_files(path, cls.files))
        return any(_header(line) for start in starts for line in start.decode(errors="replace").splitlines()[:20])

    def read(self) -> Iterator[ImportItem]:
        return read_files(self.path, self.files, self.read_file, self.advice)

    def read_file(self, file: OpenFile) -> Iterator[ImportItem]:
        """Yield the messages of a chat. It is held as a whole: only all of it shows how its dates are written."""
        # The number and the beginning of a message, and its lines.
        begun: list[tuple[int, _Header, list[str]]] = []
        lost: list[int] = []
        lines = file.stream.read().decode("utf-8-sig", "surrogateescape").split("\n")
        for number, line in enumerate(lines, 1):
            if header := _header(line.removesuffix("\r")):
                begun.append((number, header, []))
            elif begun:
                begun[-1][2].append(line.removesuffix("\r"))
            elif line.strip(f"{_MARKS} \t\r"):
                lost.append(number)
        spoken = [_spoken(header) for _, header, _ in begun]
        speakers = {said[0]: None for said in spoken if said}
        if not begun and not lost:
            yield ImportProblem(file.where, f"the file is empty; {self.advice}")
            return
        if not speakers:
            yield ImportProblem(file.where, f"no line of it says who said something, and when; {self.advice}")
            return
        for number in lost:
            reason = f"it belongs to no message: none begins before it; {self.advice}"
            yield ImportProblem(f"{file.where}, line {number}", reason)
        order = self.options.date_order or _find_order([header.date for _, header, _ in begun])
        if self.options.timezone is None:
            raise OptionMissing(
                "WhatsApp writes no time zone; give that of its phone, such as --timezone Europe/Berlin"
            )
        named = None if self.options.me is None else self.options.me.strip("~ ").casefold()
        me = next((name for name in speakers if name.casefold() == named), None)
        chat = _chat_name(self.path, file.name)
        if me is None:
            self._check_absence(speakers, chat)
            yield IgnoredContent(f"chats without a message of {printable(str(self.options.me))}")
        for (number, header, more), said in zip(begun, spoken, strict=True):
            where = f"{file.where}, line {number}"
            if said is None:
                yield IgnoredContent("notices of WhatsApp")
            elif _is_deleted(said[1]):
                yield IgnoredContent("deleted messages")
            elif (shown := _shown_time(header, order)) is None:
                reason = f"its time ({printable(header.time)}) is none in the order {order}; see --date-order"
                yield ImportProblem(where, reason)
            else:
                yield self._record("\n".join([said[1], *more]), said[0], me, shown, where, chat)

    def _check_absence(self, speakers: Collection[str], chat: str) -> None:
        """Raise unless `me` is somebody else, who may have been silent in this chat."""
        is_of_two = len(speakers) == 2 and any(chat.endswith(name) for name in speakers)
        is_misspelt = self.options.me and get_close_matches(self.options.me, speakers, cutoff=0.7)
        if self.options.me is None or is_of_two or is_misspelt:
            raise self.unknown_me(speakers)

    def _record(
        self, said: str, speaker: str, me: str | None, shown: datetime, where: str, chat: str
    ) -> Record | IgnoredContent:
        said, metadata = make_storable(said)
        text = _without_edit_mark(said)
        metadata |= {"edited": True} if text != said else {}
        text = _ATTACHED.sub(lambda file: f"[{file[file.lastgroup or 0]}]", text).rstrip(f"{_MARKS} ")
        text = _name_omitted("\n".join(line.lstrip(_MARKS) for line in text.split("\n")).strip())
        if not text:
            return IgnoredContent("empty messages")
        message: Message = {"role": "user", "content": text, "name": speaker, "occurred_at": shown.isoformat()}
        external_id = derive_id(None, chat, message, self.equal_counts)
        when = shown.replace(tzinfo=self.options.timezone).astimezone(UTC)
        message |= {"occurred_at": when, "external_id": external_id, "metadata": metadata}
        if speaker == me:
            del message["name"]
        return Record(conversation=chat, message=message, channel=self.name, where=where)


def _header(line: str) -> _Header | None:
    """Return the beginning of a message, or None for a line that goes on with the one before."""
    line = line.lstrip(_MARKS)
    is_iphone = line[:1] == "["
    if not (is_iphone or line[:1].isdigit()):
        return None
    ends = [end for end in (("] ",) if is_iphone else (" - ", " – ")) if end in line[:60]]
    if not ends:
        return None
    written, _, rest = line.removeprefix("[").partition(min(ends, key=line.index))
    written = "".join(char for char in written if char not in _MARKS)
    if (date_match := re.search(r"\d{1,4}(?:[./-]\s?\d{1,4}){2}", written)) is None:
        return None
    beside = written[: date_match.start()] or written[date_match.end() :]
    clock = re.fullmatch(r"(\D*)(\d{1,2})[:.](\d{2})(?:[:.](\d{2}))?(\D*)", beside)
    if clock is None:
        return None
    header = _Header(written, date_match[0], clock, is_iphone, rest)
    other_words = ("", "klo", "um", "at", "à", "às", "kl", "lúc", "น")
    return header if all(word in _HOURS or word in other_words for word in header.words) else None


def _spoken(header: _Header) -> tuple[str, str] | None:
    """Return who said what, or None for a notice of WhatsApp's."""
    name, colon, text = header.rest.partition(":")
    # Ann changed the subject from “A: b” to “C: d”.
    is_quotation = sum(map(name.count, '“”„«»"')) % 2 == 1
    if not (colon and 1 <= len(name) <= 100) or (text.strip() and text[0] != " ") or is_quotation:
        return None
    speaker, text = make_storable(name.strip(f"{_MARKS} ~\u202f\u00a0"))[0] or "?", text.removeprefix(" ")
    if header.is_iphone and text.startswith("\u200e") and not _is_deleted(text):
        notice = text.lstrip("\u200e")
        calls = ("Missed ", "Voice call", "Video call", "Verpasster ", "Sprachanruf", "Videoanruf")
        german = (" erstellt", " hinzugefügt", " entfernt", " verlassen", " geändert", " angeheftet")
        ends_as_notice = notice.rstrip(".").endswith(german)
        if notice.startswith((f"{speaker} ", *calls)) or ends_as_notice or _NOTICE.search(notice):
            return None
    return speaker, text


def _is_deleted(text: str) -> bool:
    return _DELETED.fullmatch(text.strip(_MARKS).removesuffix(".")) is not None


def _without_edit_mark(text: str) -> str:
    """Return a text without the mark of an edit behind it, such as "<This message was edited>"."""
    before, _, mark = text.rstrip(f"{_MARKS}\n").rpartition("<")
    is_mark = mark.endswith(">") and not set(":\n") & set(mark)
    if before and is_mark and (before.endswith("\u200e") or _EDITED.fullmatch(mark.rstrip(".>"))):
        return before
    return text


def _name_omitted(text: str) -> str:
    """Return what stands for a thing that was not exported, or the text itself."""
    if text.startswith("<") and text.endswith(">") and not set("<>:\n") & set(text[1:-1]):
        return "[media]"
    kind, _, word = text.rpartition(" ")
    is_name = 3 <= len(kind) <= 30 and kind.replace(" ", "").replace("-", "").isalnum()
    omitted = word_set("omitted weggelassen omitido omitida omesso omessa ocultado ocultada absent absente weggelaten")
    return f"[{kind}]" if is_name and word in omitted else text


def _chat_name(path: Path, file: str) -> str:
    names = PurePosixPath(file).stem, path.stem, path.absolute().parent.name
    storable = (make_storable(re.sub(r" ?\([0-9]+\)$", "", name))[0].strip() for name in names)
    return next((name for name in storable if name and name.lower() != "_chat"), "whatsapp")


def _shown_time(header: _Header, order: DateOrder) -> datetime | None:
    day = _parse_day(header.date, order)
    hour, minute, second = (int(number or 0) for number in header.clock.group(2, 3, 4))
    for half in _HOURS.keys() & {*header.words}:
        hour = hour % 12 + _HOURS[half]
    try:
        clock = time(hour, minute, second)
    except ValueError:
        return None
    return datetime.combine(day, clock) if day else None


def _find_order(dates: list[str]) -> DateOrder:
    """Return the order of day, month and year in all these dates; raise `OptionMissing` if several fit, or none."""
    possible: dict[DateOrder, list[date]] = {}
    for order in get_args(DateOrder):
        days = [day for written in dates if (day := _parse_day(written, order))]
        if len(days) == len(dates):
            possible[order] = days
    why = "may be read in two ways" if possible else "are written in more than one order"
    # A chat is written in the order of its time.
    if len(possible) > 1:
        possible = {order: days for order, days in possible.items() if days == sorted(days)}
    if len(possible) == 1:
        return next(iter(possible))
    raise OptionMissing(f"its dates {why}; give --date-order dmy, mdy or ymd")


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
        years = int(year) + (2000 if len(year) == 2 else 0)
        # The Thai count the years of Buddha.
        return date(years - 543 if years > 2400 else years, int(month), int(day))
    except ValueError:
        return None
