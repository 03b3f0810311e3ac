"""The last day that a plan names, where it follows from the day on which it was said: "dentist on Friday at 8". Pure.

English and German. A plan that vanishes early is worse than one without an end, so one day alone is believed: not two,
not what comes again ("every Friday"), begins then ("starts on Monday"), lasts ("for two weeks") or may be another day
("next Friday"). Days are those of UTC.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, time, timedelta

from memstore.language import number_words

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
_UNSURE = re.compile(
    r"\b(?:every|each|always|usually|mostly|weekly|monthly|yearly|annual\w*|jede[nrsm]?|immer|meistens|wöchentlich\w*"
    rf"|monatlich\w*|jährlich\w*|(?:{_WEEKDAY})s"
    r"|next|last|this|today|tonight|nächste\w*|übernächste\w*|letzte\w*|heute|guten"
    r"|weeks?|days|nights?|months?|wochen?|tagen?|nächten?|monaten?"
    r"|from|since|after|starts?|starting|as of|begins?|beginning|ab|seit|nach|vom|fang\w*|anfang\w*|beginn\w*"
    r"|said|says|told|called|asked|was|were|sagte|sagt|meinte|rief|war|(?-i:may) \d|\d (?-i:may))\b",
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
