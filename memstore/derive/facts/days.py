"""When what a plan names is over, where it follows from the day on which it was said: "dentist on Friday at 8". Pure.

English and German. A plan that vanishes early is worse than one without an end, so one day alone is believed: not two,
not what comes again ("every Friday"), begins then ("starts on Monday"), lasts ("for two weeks") or may be another day
("next Friday"). Days are those of UTC.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, time, timedelta

from memstore.language import load_numbers, number_words

WEEKDAYS = number_words("weekdays", "en", "de", start=0) | number_words("short_weekdays", start=0)
MONTHS = number_words("months", "en", "de") | number_words("short_months", "en", "de")
_MONTH, _WEEKDAY = ("|".join(sorted(names, key=lambda name: -len(name))) for names in (MONTHS, WEEKDAYS))
_DAY = re.compile(
    r"\b(?P<iso>\d{4}-\d\d-\d\d)\b"
    rf"|\b(?P<day>\d{{1,2}})(?:st|nd|rd|th|\.)?(?: of)? (?P<month>{_MONTH})\b\.?(?:,? (?P<year>\d{{4}})\b)?"
    rf"|\b(?P<month_first>{_MONTH})\.? (?P<day_last>\d{{1,2}})(?:st|nd|rd|th)?\b(?!:)(?:,? (?P<year_last>\d{{4}})\b)?"
    r"|\b(?P<day_of>\d{1,2})\.(?P<month_of>\d{1,2})\.(?P<year_of>\d{4}|\d\d)?(?!\d)"
    rf"|\b(?P<weekday>{_WEEKDAY})\b"
    r"|\b(?P<after>übermorgen)\b|\b(?P<tomorrow>tomorrow|(?-i:morgen))\b",
    re.IGNORECASE,
)
# What comes again, or begins then.
_LASTING = (
    r"every|each|always|usually|mostly|weekly|monthly|yearly|annual\w*|jede[nrsm]?|immer|meistens|wöchentlich\w*"
    rf"|monatlich\w*|jährlich\w*|(?:{_WEEKDAY})s"
    r"|from|since|after|starts?|starting|as of|begins?|beginning"
    r"|ab|seit|nach (?:de[mr]|diese[mr]|nächste[mr])|vom|fang\w*|anfang\w*|beginn\w*"
)
_UNSURE = re.compile(
    rf"\b(?:{_LASTING}|nach|next|last|this|today|tonight|nächste\w*|übernächste\w*|letzte\w*|heute|guten"
    r"|weeks?|days|nights?|months?|wochen?|tagen?|nächten?|monaten?"
    r"|said|says|told|called|asked|was|were|sagte|sagt|meinte|rief|war|(?-i:may) \d|\d (?-i:may))\b",
    re.IGNORECASE,
)
# Of few and of a pair as many as may be meant.
_COUNTS = load_numbers("en", "de") | {"a": 1, "an": 1, "einer": 1, "einem": 1, "couple of": 3, "few": 5, "paar": 5}
_LENGTHS = {"day": 1, "tag": 1, "week": 7, "woche": 7, "month": 31, "monat": 31, "year": 366, "jahr": 366}
_PERIOD = re.compile(
    r"\b(?:(?P<in>in)|(?P<next>next|nächste[mnrs]?)|this|diese[mnrs]?)(?: an?(?= few| couple)| ein(?:em|er)?(?= paar))?"
    rf"(?: (?P<count>\d\d?|{'|'.join(sorted(_COUNTS, key=len, reverse=True))}))?"
    rf" (?P<unit>{'|'.join(_LENGTHS)}|{_WEEKDAY})(?:end|nende|e?n|e|s)?\b"
    r"|\b(?P<today>today|tonight|heute)\b",
    re.IGNORECASE,
)


def end_of_plan(words: str, said_at: datetime) -> datetime | None:
    """Return when the one day is over that a plan names; None where it names none for certain."""
    named = [] if _UNSURE.search(words) else list(_DAY.finditer(words))
    said = said_at.astimezone(UTC).date()
    days = {_day(match, said) for match in named if not match["weekday"]}
    weekdays = {WEEKDAYS[match["weekday"].casefold()] for match in named if match["weekday"]}
    if not days and len(weekdays) == 1:
        ahead = (weekdays.pop() - said.weekday()) % 7
        days = {said + timedelta(days=ahead) if ahead else None}
    day = days.pop() if len(days) == 1 else None
    if day is None or weekdays - {day.weekday()}:
        return None
    return datetime.combine(day + timedelta(days=1), time(), UTC)


def end_of_period(words: str, said_at: datetime) -> datetime | None:
    """Return when the last period is over that a plan names, however it is meant: "next month", "in two weeks".

    >>> end_of_period("We're going camping next month.", datetime(2026, 5, 25, tzinfo=UTC)).date()
    datetime.date(2026, 7, 1)
    """
    said = said_at.astimezone(UTC).date()
    named = [] if re.search(rf"\b(?:{_LASTING})\b", words, re.IGNORECASE) else _PERIOD.finditer(words)
    ends = [_end(match, said) for match in named if match["count"] or not match["in"]]
    return datetime.combine(max(ends), time(), UTC) if ends else None


def _end(match: re.Match[str], said: date) -> date:
    """Return the first day after a period; a week that is named on a Sunday may be the next one."""
    ahead, unit, count = bool(match["next"]), (match["unit"] or "day").casefold(), match["count"]
    if count:
        number = int(count) if count.isdigit() else _COUNTS[count.casefold()]
        return said + timedelta(days=_LENGTHS.get(unit, 7) * (number + 1))
    if unit in WEEKDAYS:
        return said + timedelta(days=((WEEKDAYS[unit] - said.weekday()) % 7 or 7) + 7 * ahead + 1)
    if unit in ("week", "woche"):
        return said + timedelta(days=7 - (said.weekday() + 1) % 7 + 1 + 7 * ahead)
    if unit in ("month", "monat"):
        months = said.year * 12 + said.month + ahead
        return date(months // 12, months % 12 + 1, 1)
    return date(said.year + 1 + ahead, 1, 1) if unit in ("year", "jahr") else said + timedelta(days=1 + ahead)


def _day(match: re.Match[str], said: date) -> date | None:
    """Return the day of a date or of "tomorrow"; where the year is not named the next such day."""
    if match["after"] or match["tomorrow"]:
        return said + timedelta(days=2 if match["after"] else 1)
    year = match["year"] or match["year_last"] or match["year_of"]
    month = match["month"] or match["month_first"]
    try:
        if match["iso"]:
            day = date.fromisoformat(match["iso"])
        else:
            number = int(match["day"] or match["day_last"] or match["day_of"])
            of_month = MONTHS[month.casefold()] if month else int(match["month_of"])
            in_year = int(year) % 100 + 2000 if year else said.year + ((of_month, number) < (said.month, said.day))
            day = date(in_year, of_month, number)
    except ValueError:
        return None
    # A day without a year that is farther ahead was more likely meant of the past.
    farthest = timedelta(days=3660 if year or match["iso"] else 300)
    return day if said <= day <= said + farthest else None
