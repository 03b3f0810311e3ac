"""Which days, months and years a question names: "in May 2023", "am 8. Mai", "2023年5月", "on 2023-05-08". Pure.

Only what needs no clock: whoever asks about "last week" means another one every week, and a store gives the same answer
to the same question. The months' names are those of the Unicode CLDR, by Babel.
"""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

from babel import Locale

_LANGUAGES = ("en", "de", "fr", "es")
# Words of another meaning as well: they are months beside a number, and after what a time is said with.
_AMBIGUOUS = r"may|march|mars|august"
_TIME_WORDS = (
    "in|of|since|during|by|until|till|before|after|last|this|early|mid|late|from|through|im|seit|ab|bis|vom|letzten"
    "|diesen|en|de|depuis|avant|après|desde|hasta|antes|durante"
)
_YEAR = r"(?:19|20)\d\d"
_BETWEEN = r"(?:,|\.)?\s+(?:of\s+|de[l]?\s+)?"


class NamedDate(NamedTuple):
    """A year, a month (1 to 12), a day, or some of them."""

    year: int | None = None
    month: int | None = None
    day: int | None = None


def named_dates(text: str) -> list[NamedDate]:
    """Give the dates that a text names, in the order in which they stand there."""
    numbers = _months()
    folded = text.casefold()
    if not any(map(str.isdecimal, text)) and not any(name in folded for name in numbers):
        return []  # most questions: a tenth of a millisecond is much of what recall takes
    found = []
    for match in _pattern().finditer(text):
        said = {name.rstrip("_0123456789"): value for name, value in match.groupdict().items() if value}
        month = said.get("name")
        number = numbers[month.casefold().rstrip(".")] if month else int(said["month"]) if "month" in said else None
        year, day = said.get("year"), said.get("day")
        if number is None or 1 <= number <= 12:
            found.append(NamedDate(int(year) if year else None, number, int(day) if day else None))
    return found


@cache
def _months() -> dict[str, int]:
    """Give the number of each month's name and abbreviation."""
    return {
        name.casefold().rstrip("."): number
        for language in _LANGUAGES
        for width in ("abbreviated", "wide")
        for number, name in Locale(language).months["format"][width].items()
    }


@cache
def _pattern() -> re.Pattern[str]:
    any_name = "|".join(sorted(map(re.escape, _months()), key=len, reverse=True))
    wide = {name.casefold() for one in _LANGUAGES for name in Locale(one).months["format"]["wide"].values()}
    alone = "|".join(sorted(wide, key=len, reverse=True))
    day = r"(?P<day{n}>[0-3]?\d)(?:st|nd|rd|th|er)?"
    forms = [
        rf"\b(?P<year_2>{_YEAR})-(?P<month_2>\d\d)(?:-(?P<day_2>\d\d))?\b",
        rf"\b(?P<day_3>[0-3]?\d)\.\s?(?P<month_3>[01]?\d)\.\s?(?P<year_3>{_YEAR})\b",
        rf"(?P<year_4>{_YEAR})年(?:(?P<month_4>[01]?\d)月)?(?:(?P<day_4>[0-3]?\d)[日号])?",
        rf"\b{day.format(n='')}{_BETWEEN}(?P<name>{any_name})\b(?:{_BETWEEN}(?P<year>{_YEAR})\b)?",
        rf"\b(?P<name_2>{any_name})\.?\s+{day.format(n='_5')}(?!\d)(?:,?\s+(?P<year_5>{_YEAR})\b)?",
        rf"\b(?P<name_3>{any_name}){_BETWEEN}(?P<year_22>{_YEAR})\b",
        rf"(?:(?<=\s)|^)(?!(?:{_AMBIGUOUS})\b)(?P<name_4>{alone})\b",
        rf"\b(?:{_TIME_WORDS})\s+(?P<name_5>{_AMBIGUOUS})\b(?:{_BETWEEN}(?P<year_24>{_YEAR})\b)?",
        rf"\b(?P<year_23>{_YEAR})\b",
    ]
    return re.compile("|".join(forms), re.IGNORECASE)
