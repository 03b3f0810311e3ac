"""What "last Friday" meant on the day it was said: relative dates of a text, with the absolute ones beside them.

A fact is read long after it was said, so "yesterday" becomes "yesterday (7 May 2023)". English and German here, French,
Spanish and Chinese with `phrases`; no clock: everything follows from the time of the message.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from typing import NamedTuple

from memstore.ingest.rules.phrases import LANGUAGES, MONTH_NAMES, phrases
from memstore.ingest.rules.tenses import is_past_at, lies_ahead

_DAYS = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]
_MONTHS = ["january", "february", "march", "april", "may", "june"]
_MONTHS += ["july", "august", "september", "october", "november", "december"]
_TAGE = ["montag", "dienstag", "mittwoch", "donnerstag", "freitag", "samstag", "sonntag"]
_MONATE = ["januar", "februar", "märz", "april", "mai", "juni"]
_MONATE += ["juli", "august", "september", "oktober", "november", "dezember"]
_DAY_NUMBER = {name: number for names in (_DAYS, _TAGE) for number, name in enumerate(names)}
_MONTH_NUMBER = {name: number for names in (_MONTHS, _MONATE) for number, name in enumerate(names, 1)}
_COUNTS = ["a", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]
_COUNT = {word: max(1, number) for number, word in enumerate(_COUNTS)} | {"an": 1, "couple": 2}
_COUNT |= {"einem": 1, "einer": 1, "zwei": 2, "drei": 3, "vier": 4, "fünf": 5, "sechs": 6}
_WHICH = {"last": -1, "this": 0, "coming": 0, "next": 1, "letzt": -1, "dies": 0, "nächst": 1, "kommend": 1}
_UNITS = {"tag": "day", "woche": "week", "wochenende": "weekend", "monat": "month", "jahr": "year"}
_NEAR = {"the day before yesterday": -2, "yesterday": -1, "last night": -1, "tomorrow": 1, "the day after tomorrow": 2}
_NEAR |= {"vorgestern": -2, "gestern": -1, "morgen": 1, "übermorgen": 2}


class _Stretch(NamedTuple):
    unit: str  # day, week, weekend, month or year
    first: date


def _any(words: list[str] | dict[str, int]) -> str:
    return "|".join(sorted(words, key=len, reverse=True))


# The groups of one form are named after what they hold; the function of the same row turns them into a stretch of time.
_FORMS: dict[str, str] = {
    "near": rf"(?<!\bam )(?<!guten )(?<!jeden )(?<!diesen )(?P<near>{_any(_NEAR)}|today|tonight|this"
    " (?:morning|afternoon|evening)|heute)",
    "which": rf"(?P<which>last|this|coming|next) (?P<unit>weekend|week|month|year|{_any(_DAYS)})",
    "ago": rf"(?P<ago>\d{{1,3}}|{_any(_COUNT)})(?: of)? (?P<ago_unit>day|week|month|year)s? ago",
    "ahead": rf"in (?P<ahead>\d{{1,3}}|{_any(_COUNT)})(?: of)? (?P<ahead_unit>day|week|month|year)s?(?!\s+of)",
    "weekday": rf"(?:on|by|until|since|from(?= \w+ on\b)) (?P<weekday>{_any(_DAYS)})(?! (?:the )?\d)"
    rf"(?! (?:{_any(_MONTHS)}) \d)",
    "month": rf"(?:in|since|by|until|of|early|late|mid|from(?= \w+ on\b)) (?P<month>{_any(_MONTHS)})(?! (?:\d|of))",
    "day_month": rf"(?P<day>\d{{1,2}})(?:st|nd|rd|th)?(?: of)? (?P<day_month>{_any(_MONTHS)})(?!,? \d{{4}})",
    "month_day": rf"(?P<month_day>{_any(_MONTHS)}) (?P<of_day>\d{{1,2}})(?:st|nd|rd|th)?(?!\d|,? \d{{4}}|[-–]\d)",
    "welch": rf"(?P<welch>letzt|dies|nächst|kommend)e[nmsr]? (?P<einheit>wochenende|woche|monat|jahr|{_any(_TAGE)})",
    "vor": rf"vor (?P<vor>\d{{1,3}}|{_any(_COUNT)}) (?P<vor_unit>tag|woche|monat|jahr)(?:en|n|e|s)?",
    "tag": rf"am (?P<tag>{_any(_TAGE)})(?!,? (?:den )?\d)",
    "tag_monat": rf"(?P<nummer>\d{{1,2}})\. (?P<tag_monat>{_any(_MONATE)})(?! \d{{4}})",
    "monat": rf"(?:im|seit|ab) (?P<monat>{_any(_MONATE)})(?! \d{{4}})",
}
_RELATIVE = re.compile(rf"\b(?:{'|'.join(_FORMS.values())})\b(?! \()", re.IGNORECASE)
# "I've started, and it must be done by June": what is due lies ahead, whatever the tense.
_DUE = re.compile(r"\b(?:by|due(?: on)?|deadline(?: of| on|:)?|starting|begins) (?:the )?$", re.IGNORECASE)
# A day that comes every year has no year of its own: it is told again as it was said.
_YEARLY = re.compile(
    r"\b(?:(?:birthday|geburtstag|name day|namenstag)(?::| it's|[,:]? it (?:is|was)|[,:] it's| is| was| falls| ist"
    r"| war)|born|geboren)(?: (?:actually|really|always|now|not|on|the|am|den|eigentlich|immer)){0,5} $",
    re.IGNORECASE,
)
_YEARLY_BEHIND = re.compile(r" (?:\w+ )?(?:geboren|geburtstag)(?!\w)|(?:,| is| as) (?:\w+ )?birthday\b", re.IGNORECASE)
_DAYS_OF_YEAR = {"day_month", "month_day", "tag_monat"}
_MOVED = re.compile(r"\b(?:moved|staying|lent|rented|sublet)\b", re.IGNORECASE)  # "… until March" lies ahead too
_GERMAN = {"welch", "vor", "tag", "tag_monat", "monat"}
_GERMAN_NEAR = {"heute", "gestern", "vorgestern", "morgen", "übermorgen"}
_YEAR = re.compile(r"\b(?:in|since|im Jahr|seit|\w+ber|\w+ary|March|April|May|June|July|August) ((?:19|20)\d\d)\b")

_MONTHS_OF = {language: names.split("|") for language, names in MONTH_NAMES.items()}
_WRITTEN = {
    "fr": {"day": "{day} {month} {date.year}", "week": "semaine du {day} {month} {date.year}",
           "month": "{month} {date.year}",
           "year": "{date.year}"},
    "es": {"day": "{day} de {month} de {date.year}", "week": "semana del {day} de {month} de {date.year}",
           "month": "{month} de {date.year}", "year": "{date.year}"},
    "zh": {"day": "{date.year}年{date.month}月{day}日", "week": "{date.year}年{date.month}月{day}日那一周",
           "month": "{date.year}年{date.month}月", "year": "{date.year}年"},
}  # fmt: skip


def anchor(text: str, occurred_at: datetime, *, past: bool, language: str = "en") -> tuple[str, datetime | None]:
    """Give the text with each relative date followed by the absolute one, and when the earliest of them begins.

    Which October a bare "9 October" is, the words beside it tell: what is booked, confirmed or until then lies ahead.
    Where they do not, `past` says that it lies behind, and else it is the nearest. `language` is "fr", "es", "zh", or
    anything else for English and German. The time is the midnight that begins the day, month or year, in the
    time zone of `occurred_at`; None where nothing was stated.
    """
    try:
        if language in LANGUAGES:
            anchored, begins = _anchored_by_phrases(text, occurred_at, past, language)
        else:
            anchored, begins = _anchored(text, occurred_at.date(), past)
    except (ValueError, OverflowError):  # "300 years ago" said in the year 200, "31 June": no such day
        anchored, begins = text, []
    begins += [date(int(year), 1, 1) for year in _YEAR.findall(text)]
    return anchored, datetime.combine(min(begins), time(), occurred_at.tzinfo) if begins else None


def stretch_at(text: str, today: date) -> tuple[str, date] | None:
    """Give the unit and the first day of the date ahead with which an English or German text begins, if with one."""
    found = _RELATIVE.match(text)
    said = {name: value.lower() for name, value in found.groupdict().items() if value} if found else {}
    return _resolve(said, today, past=False)


def _anchored(text: str, today: date, past: bool) -> tuple[str, list[date]]:
    begins: list[date] = []

    def replace(found: re.Match[str]) -> str:
        said = {name: value.lower() for name, value in found.groupdict().items() if value}
        if _DAYS_OF_YEAR & said.keys() and _is_yearly(text, found.start(), found.end()):
            return found[0]
        due = bool(_DUE.search(found.string, max(0, found.start() - 20), found.start()))
        due |= found[0].lower().startswith("until ") and bool(_MOVED.search(found.string))
        german = bool(_GERMAN & said.keys()) or said.get("near") in _GERMAN_NEAR
        told = is_past_at(text, found.start(), found.end(), german=german)
        told = (past or None) if told is None and not german else told
        stretch = _resolve(said, today, False if due else told)
        if stretch is None:
            return found[0]
        begins.append(stretch.first)
        return f"{found[0]} ({_write(stretch, german=german)})"

    return _RELATIVE.sub(replace, text), begins


def _is_yearly(text: str, start: int, stop: int) -> bool:
    """Whether a day is that of a birthday, which comes every year."""
    return bool(_YEARLY.search(text, max(0, start - 60), start) or _YEARLY_BEHIND.match(text, stop))


def _anchored_by_phrases(text: str, said_at: datetime, past: bool, language: str) -> tuple[str, list[date]]:
    pieces, position, begins = [], 0, []
    past = past and not lies_ahead(text)
    for phrase in phrases(text, said_at, language, past=past):
        begins.append(phrase.first)
        month = _MONTHS_OF[language][phrase.first.month - 1] if language != "zh" else ""
        written = _WRITTEN[language][phrase.unit].format(day=phrase.first.day, month=month, date=phrase.first)
        pieces += [text[position : phrase.stop], f"（{written}）" if language == "zh" else f" ({written})"]
        position = phrase.stop
    return "".join(pieces) + text[position:], begins


def _resolve(said: dict[str, str], today: date, past: bool | None) -> _Stretch | None:
    for name, resolver in _RESOLVERS.items():
        if name in said:
            return resolver(said, today, past)
    return None


def _near(said: dict[str, str], today: date, past: bool | None) -> _Stretch:
    return _Stretch("day", today + timedelta(days=_NEAR.get(said["near"], 0)))


def _which(said: dict[str, str], today: date, past: bool | None) -> _Stretch | None:
    step = _WHICH[said.get("which") or said["welch"]]
    unit = said.get("unit") or said["einheit"]
    if unit in _DAY_NUMBER:
        if step > 0:  # the one of next week: on a Monday, "next Friday" is not this week's
            return _Stretch("day", _monday(today) + timedelta(days=7 + _DAY_NUMBER[unit]))
        return _Stretch("day", _weekday(today, _DAY_NUMBER[unit], past=step < 0 or bool(past)))
    return _step(today, _UNITS.get(unit, unit), step)


def _ago(said: dict[str, str], today: date, past: bool | None) -> _Stretch | None:
    unit = said.get("ago_unit") or said["vor_unit"]
    return _step(today, _UNITS.get(unit, unit), -_number(said.get("ago") or said["vor"]))


def _ahead(said: dict[str, str], today: date, past: bool | None) -> _Stretch | None:
    # "I wrote it in two days" is a length of time, not a date.
    return None if past else _step(today, said["ahead_unit"], _number(said["ahead"]))


def _bare_weekday(said: dict[str, str], today: date, past: bool | None) -> _Stretch:
    return _Stretch("day", _weekday(today, _DAY_NUMBER[said.get("weekday") or said["tag"]], past=bool(past)))


def _bare_month(said: dict[str, str], today: date, past: bool | None) -> _Stretch:
    number = _MONTH_NUMBER[said.get("month") or said["monat"]]
    return _Stretch("month", _of_nearest_year(today.replace(day=1), number, 1, past))


def _bare_date(said: dict[str, str], today: date, past: bool | None) -> _Stretch:
    number = _MONTH_NUMBER[said.get("day_month") or said.get("month_day") or said["tag_monat"]]
    day = int(said.get("day") or said.get("of_day") or said["nummer"])
    return _Stretch("day", _of_nearest_year(today, number, day, past))


_Resolver = Callable[[dict[str, str], date, bool | None], _Stretch | None]
_RESOLVERS: dict[str, _Resolver] = {
    "near": _near,
    "which": _which,
    "welch": _which,
    "ago": _ago,
    "vor": _ago,
    "ahead": _ahead,
    "weekday": _bare_weekday,
    "tag": _bare_weekday,
    "month": _bare_month,
    "monat": _bare_month,
    "day_month": _bare_date,
    "month_day": _bare_date,
    "tag_monat": _bare_date,
}


def _number(word: str) -> int:
    return int(word) if word.isdigit() else _COUNT[word]


def _monday(day: date) -> date:
    return day - timedelta(days=day.weekday())


def _weekday(today: date, weekday: int, *, past: bool) -> date:
    if past:
        return today - timedelta(days=(today.weekday() - weekday - 1) % 7 + 1)
    return today + timedelta(days=(weekday - today.weekday() - 1) % 7 + 1)


def _of_nearest_year(today: date, month: int, day: int, past: bool | None) -> date:
    """Give the day in the nearest year, on the side that the tense allows; ValueError for 31 June."""
    years = (today.year + step for step in ((0, -1) if past else (0, 1) if past is False else (0, -1, 1)))
    last = 28 if (month, day) == (2, 29) else day  # a year without a 29 February orders as one with it
    ordered = sorted(years, key=lambda year: abs(date(year, month, last) - today))
    allowed = [year for year in ordered if past is None or (date(year, month, last) > today) is not past]
    return date(next(iter(allowed), today.year), month, day)


def _step(today: date, unit: str, steps: int) -> _Stretch | None:
    if unit == "day":
        return _Stretch(unit, today + timedelta(days=steps))
    if unit == "week":
        return _Stretch(unit, _monday(today) + timedelta(weeks=steps))
    if unit == "weekend":
        # Said on a Sunday, "last weekend" is not the one that still lasts.
        return _Stretch(unit, _monday(today) + timedelta(weeks=steps, days=5))
    if unit == "month":
        months = today.year * 12 + today.month - 1 + steps
        return _Stretch(unit, date(months // 12, months % 12 + 1, 1))
    return _Stretch(unit, date(today.year + steps, 1, 1))


def _write(stretch: _Stretch, *, german: bool) -> str:
    first, months = stretch.first, _MONATE if german else _MONTHS
    dot = "." if german else ""
    month = f"{months[first.month - 1].capitalize()} {first.year}"
    if stretch.unit == "year":
        return str(first.year)
    if stretch.unit == "month":
        return month
    if stretch.unit == "week":
        return f"{'Woche vom' if german else 'week of'} {first.day}{dot} {month}"
    if stretch.unit == "day":
        return f"{first.day}{dot} {month}"
    last = first + timedelta(days=1)
    if last.month == first.month:
        return f"{first.day}{dot}–{last.day}{dot} {month}"
    return f"{first.day}{dot} {months[first.month - 1].capitalize()} – {_write(_Stretch('day', last), german=german)}"
