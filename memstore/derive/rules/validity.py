"""Since and until when something holds, from the few forms that say it for certain; else nothing.

"Since March 2024" and "until 5 June 2026" say it; "last spring" does not. A wrong date is worse than none.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from memstore.derive.rules.pack import Language


class Validity(NamedTuple):
    """From when a statement holds, and the first moment at which it no longer does."""

    begins: datetime | None
    ends: datetime | None


def validity(clause: str, said_at: datetime, language: Language) -> Validity:
    """Give the times that a clause names with their year."""
    begins = _first(language.patterns["since"].search(clause), language, said_at)
    until = language.patterns["until"].search(clause)
    ends = _first(until, language, said_at)
    if ends is not None and until and until["day"]:  # with the day, and with the beginning of a month or a year
        ends += timedelta(days=1)
    if begins is not None and begins > said_at:
        begins = None
    if ends is not None and ends <= said_at:
        ends = None
    return Validity(begins, ends)


def _first(found: re.Match[str] | None, language: Language, said_at: datetime) -> datetime | None:
    """Give the beginning of the day, month or year that is named."""
    if found is None:
        return None
    named = found.groupdict()
    months = {name: number for number, name in enumerate(language.data["months"].split(), 1)}
    year = int(named["year"]) if named.get("year") else said_at.year
    month = months.get(named["month"].casefold(), 0) if named.get("month") else 1  # 0 for "Aprıl", which is none
    day = int(named["day"]) if named.get("day") else 1
    try:
        return datetime(year, month, day, tzinfo=said_at.tzinfo or UTC)
    except ValueError:  # 31 June, or no month
        return None
