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
from collections.abc import Collection, Iterator
from datetime import UTC, date, datetime, time
from difflib import get_close_matches
from pathlib import Path, PurePosixPath
from typing import get_args

from memstore.language import word_set

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
_MARKS = "\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff"
# Words before the hour or behind it, without points and blanks: halves of a day, and others. None are guessed.
_HOURS = dict.fromkeys(word_set("am 上午 凌晨 清晨 早上 早晨 午前 오전 ص πμ לפנה״צ sa öö قظ"), 0)
_HOURS |= dict.fromkeys(word_set("pm 下午 中午 晚上 傍晚 午後 오후 م μμ אחה״צ ch ös بظ"), 12)
_OTHER_WORDS = ("", "klo", "um", "at", "à", "às", "kl", "lúc", "น")
_WORD = r"[^\W\d_][^\d:\[\]\n]{0,14}?"
_DATE = rf"(?P<date>\d{{1,4}}(?:[{_MARKS}]*[./-][{_MARKS}]*\s?\d{{1,4}}){{2}})[{_MARKS}]*"
_CLOCK = (
    rf"(?P<before>{_WORD})?[\s\u202f]?(?P<hour>\d{{1,2}})[:.](?P<minute>\d{{2}})(?:[:.](?P<second>\d{{2}}))?"
    rf"(?:[\s\u202f]?(?P<behind>{_WORD}))?[{_MARKS}]*"
)
_TIMES = (rf"{_DATE}\.?[,،]?[\s\u202f]{_CLOCK}", rf"{_CLOCK},? {_DATE}")
_HEADERS = [
    re.compile(rf"[{_MARKS}]*{form}(?P<rest>.*)", re.DOTALL | re.IGNORECASE)
    for time in _TIMES
    for form in (rf"(?P<iphone>\[){time}\] ", rf"{time} [-–] (?P<iphone>(?!))?")
]
_BEGINNING = re.compile(rf"[{_MARKS}]*[\[\d]")
_SPOKEN = re.compile(r"(?P<name>[^:\n]{1,100}):(?: (?P<text>.*)|\s*)", re.DOTALL)
_QUOTES = '“”„«»"'
_OMITTED = re.compile(
    rf"[{_MARKS}]*(?:<[^<>:\n]{{3,40}}>|(?P<kind>[\w -]{{3,30}}) (?:omitted|weggelassen|omitid[ao]"
    r"|omess[ao]|ocultad[ao]|absente?|weggelaten))"
)
# Looked for where a line begins, or by a fixed word: a long text is not tried again at every character.
_ATTACHED = re.compile(
    rf"<(?:attached|Anhang): (?P<name>[^<>\n]+)>|\u200e<[^<>:\n]{{3,30}}: (?P<marked>[^<>\n]+\.\w{{2,5}})>"
    rf"|(?m:^)[{_MARKS}]*(?P<file>[^\n<>]{{1,200}}\.\w{{2,5}}) \((?:file attached|Datei angehängt)\)"
    rf"|(?m:^)[{_MARKS}]*(?P<numbered>[A-Z]{{3}}-\d{{8}}-WA\d{{4}}\.\w{{2,5}}) \([^()\n]{{3,40}}\)"
)
_DELETED = re.compile(
    rf"[{_MARKS}]*(?:This message was deleted|You deleted this message"
    r"|Diese Nachricht wurde gelöscht|Du hast diese Nachricht gelöscht"
    r"|Se eliminó este mensaje|Este mensaje fue eliminado|Eliminaste este mensaje|Has eliminado este mensaje"
    r"|Mensagem apagada|Ess?ta? mensagem foi apagada|Você apagou esta mensagem|Apagou esta mensagem"
    r"|Ce message a été supprimé|Vous avez supprimé ce message"
    rf"|Questo messaggio è stato eliminato|Hai eliminato questo messaggio)\.?[{_MARKS}]*"
)
_EDITED = re.compile(
    r"(?:\u200e<[^<>:\n]{5,60}>|<(?:This message was edited|Diese Nachricht wurde bearbeitet|Se editó este mensaje"
    r"|Mensagem editada|Ce message a été modifié|Questo messaggio è stato modificato)\.?>)"
    rf"[{_MARKS}]*$"
)
# An iPhone puts a name before its notices too, and a mark; but what people say may begin with the mark.
_NOTICE = re.compile(
    r".*\b(?:end-to-end|Ende-zu-Ende|extremo a extremo|bout en bout|ponta a ponta)\b.*"
    r"|.{1,80} (?:created (?:this )?group|added you|left|joined using|were added|changed (?:the|this|their|your|to)"
    r"|turned (?:on|off)|pinned a message|an admin\b|blocked this contact).*"
    r"|(?:Du|.{1,80}) ha(?:t|st) .* (?:erstellt|hinzugefügt|entfernt|verlassen|geändert|angeheftet)\.?"
    r"|(?:Missed|Verpasster) .*|(?:Voice|Video) call\b.*|(?:Sprach|Video)anruf\b.*",
    re.IGNORECASE,
)
_LINE_MARKS = re.compile(rf"(?m:^)[{_MARKS}]+|[{_MARKS}]+ *\Z")
_DOWNLOAD_NUMBER = re.compile(r" ?\([0-9]+\)$")


class WhatsApp(Importer):
    name = "whatsapp"
    advice = "export the chat again, without media"
    files = re.compile(r"(?:.*/)?(?:_chat|[^/]*WhatsApp[^/]*)\.txt", re.IGNORECASE)

    @classmethod
    def sniff(cls, path: Path) -> bool:
        starts = map(read_start, open_files(path, cls.files))
        return any(_header(line) for start in starts for line in start.decode(errors="replace").splitlines()[:20])

    def read(self) -> Iterator[ImportItem]:
        return read_files(self.path, self.files, self.read_file, self.advice)

    def read_file(self, file: OpenFile) -> Iterator[ImportItem]:
        """Yield the messages of a chat. It is held as a whole: only all of it shows how its dates are written."""
        # The number and the beginning of a message, and its lines.
        begun: list[tuple[int, re.Match[str], list[str]]] = []
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
        speakers = {_speaker(match): None for match in spoken if match}
        if not begun and not lost:
            yield ImportProblem(file.where, f"the file is empty; {self.advice}")
            return
        if not speakers:
            yield ImportProblem(file.where, f"no line of it says who said something, and when; {self.advice}")
            return
        for number in lost:
            reason = f"it belongs to no message: none begins before it; {self.advice}"
            yield ImportProblem(f"{file.where}, line {number}", reason)
        order = self.options.date_order or _find_order([header["date"] for _, header, _ in begun])
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
        for (number, header, more), match in zip(begun, spoken, strict=True):
            where = f"{file.where}, line {number}"
            if match is None:
                yield IgnoredContent("notices of WhatsApp")
            elif _DELETED.fullmatch(match["text"] or ""):
                yield IgnoredContent("deleted messages")
            elif (shown := _shown_time(header, order)) is None:
                reason = f"its time ({printable(header[0][:40])}) is none in the order {order}; see --date-order"
                yield ImportProblem(where, reason)
            else:
                text = "\n".join([match["text"] or "", *more])
                yield self._record(text, _speaker(match), me, shown, where, chat)

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
        text, edits = _EDITED.subn("", said) if _EDITED.search(said, 1) else (said, 0)
        metadata |= {"edited": True} if edits else {}
        text = _LINE_MARKS.sub("", _ATTACHED.sub(lambda file: f"[{file[file.lastgroup or 0]}]", text)).strip()
        if omitted := _OMITTED.fullmatch(text):
            text = f"[{omitted['kind'] or 'media'}]"
        if not text.strip():
            return IgnoredContent("empty messages")
        message: Message = {"role": "user", "content": text, "name": speaker, "occurred_at": shown.isoformat()}
        external_id = derive_id(None, chat, message, self.equal_counts)
        when = shown.replace(tzinfo=self.options.timezone).astimezone(UTC)
        message |= {"occurred_at": when, "external_id": external_id, "metadata": metadata}
        if speaker == me:
            del message["name"]
        return Record(conversation=chat, message=message, channel=self.name, where=where)


def _header(line: str) -> re.Match[str] | None:
    if not _BEGINNING.match(line):
        return None
    header = next(filter(None, (form.match(line) for form in _HEADERS)), None)
    return header if header and all(word in _HOURS or word in _OTHER_WORDS for word in _words(header)) else None


def _words(header: re.Match[str]) -> list[str]:
    return [re.sub(r"[\s.]", "", header[name] or "").lower().replace('"', "״") for name in ("before", "behind")]


def _spoken(header: re.Match[str]) -> re.Match[str] | None:
    """Return who said what, or None for a notice of WhatsApp's."""
    spoken = _SPOKEN.fullmatch(header["rest"])
    # Ann changed the subject from “A: b” to “C: d”.
    if spoken is None or sum(map(spoken["name"].count, _QUOTES)) % 2:
        return None
    text = spoken["text"] or ""
    if not (header["iphone"] and text.startswith("\u200e")) or _DELETED.fullmatch(text):
        return spoken
    text = text.lstrip("\u200e")
    return None if _NOTICE.fullmatch(text) or text.startswith(f"{_speaker(spoken)} ") else spoken


def _chat_name(path: Path, file: str) -> str:
    names = PurePosixPath(file).stem, path.stem, path.absolute().parent.name
    storable = (make_storable(_DOWNLOAD_NUMBER.sub("", name))[0].strip() for name in names)
    return next((name for name in storable if name and name.lower() != "_chat"), "whatsapp")


def _speaker(spoken: re.Match[str]) -> str:
    return make_storable(spoken["name"].strip(f"{_MARKS} ~\u202f\u00a0"))[0] or "?"


def _shown_time(header: re.Match[str], order: DateOrder) -> datetime | None:
    day, hour = _parse_day(header["date"], order), int(header["hour"])
    for half in _HOURS.keys() & {*_words(header)}:
        hour = hour % 12 + _HOURS[half]
    try:
        clock = time(hour, int(header["minute"]), int(header["second"] or 0))
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
    written = re.sub(f"[{_MARKS}]", "", written)
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
