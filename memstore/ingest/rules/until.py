"""Until when something holds that is said to end: "until March", "for two weeks", "bis Ende Mai", "this week".

"Until Friday" ends with the Friday, "until March" where March begins, "until the end of May" where June does: the
least that each of them says.
"""

from __future__ import annotations

import re
from datetime import date, datetime, time, timedelta

from memstore.ingest.rules.dates import stretch_at
from memstore.ingest.rules.phrases import LANGUAGES, phrases

_UNTIL = {
    language: re.compile(pattern, re.IGNORECASE)
    for language, pattern in {
        "en": r"\b(?:until|till|til)(?: the)?(?P<end> end of(?: the)?)?(?: early| mid)? (?=(?P<rest>\S.{0,40}))",
        "de": r"\bbis(?: zum| zur)?(?P<end> ende)?(?: anfang| mitte)?(?: des)? (?=(?P<rest>\S.{0,40}))",
        "fr": r"\bjusqu(?:'à la|'à|'au|'en)(?P<end> (?:la )?fin(?: de| du)?)? (?=(?P<rest>\S.{0,40}))",
        "es": r"\bhasta(?P<end> (?:el )?(?:final|fines)(?: de| del)?)? (?=(?P<rest>\S.{0,40}))",
        "zh": r"到(?=(?P<rest>(?:\d|[下这明]|月底|年底|周|星期|礼拜).{0,20}))(?P<end>)",
    }.items()
}
# What a resolver wants before a bare day or month.
_BEFORE = {
    "en": ("", "until "),
    "de": ("", "am ", "im "),
    "fr": ("", "le ", "en "),
    "es": ("", "el ", "en "),
    "zh": ("",),
}
_COUNT = (
    r"(?P<count>\d{1,3}|an?|one|two|three|four|five|six|eine?n?|zwei|drei|vier|fünf|sechs|une?|deux|trois|quatre"
    r"|cinq|una"
    r"|dos|tres|cuatro|cinco|[一两二三四五六])"
)
_UNIT = (
    r"(?:(?P<day>days?|nights?|tage?n?|nächte|jours?|nuits?|días?|noches?|天)|(?P<week>weeks?|wochen?|semaines?|semanas?"
    r"|个?(?:星期|周|礼拜))|(?P<month>months?|monate?n?|mois|mes(?:es)?|个月)|(?P<year>years?|jahre?n?|ans?|años?|年))"
)
_FOR = re.compile(
    rf"(?:\b(?:for|für|pour|por|durante|pendant) |待|住){_COUNT} ?{_UNIT}(?!\w*[^\W\d_一-鿿])", re.IGNORECASE
)
_NUMBERS = {
    word: number
    for number, words in enumerate(
        (
            "", "a an one ein eine einen un une una 一", "two zwei deux dos 两 二", "three drei trois tres 三",
            "four vier quatre cuatro 四", "five fünf cinq cinco 五", "six sechs 六",
        )
    )
    for word in words.split()
}  # fmt: skip
# "Since this month I'm vegan", "from this month on", "as of this month": it begins then, and has no end.
NOT_SINCE = "".join(
    rf"(?<!\b{word} )" for word in ("since", "as of", "from", "seit", "ab", "depuis", "dès", "desde", "a partir de")
)
_BEGINS = re.compile(r"\b(?:did|was|were|had)(?:n't| not)\b", re.IGNORECASE)  # "I didn't live there until March"
_NOW = re.compile(
    rf"{NOT_SINCE}\b(?:(?P<day>today|tonight|heute|aujourd'hui|ce soir|hoy|esta noche)|(?P<week>this (?:week"
    rf"|weekend)|diese woche"
    r"|dieses wochenende|cette semaine|ce week-end|esta semana|este fin de semana)|(?P<month>this month|diesen monat"
    r"|ce mois(?:-ci)?|este mes)|(?P<year>this year|dieses jahr|cette année|este año))\b",
    re.IGNORECASE,
)


def says_until(text: str) -> bool:
    """Whether a clause says how long something lasts, so that it lasts no longer: "I moved to Leeds until June"."""
    plain = text.replace("’", "'")
    return bool(_FOR.search(plain)) or any(pattern.search(plain) for pattern in _UNTIL.values())


def ends(text: str, said_at: datetime, language: str, *, passing: bool) -> datetime | None:
    """Give the first moment at which what a clause says no longer holds; None where it does not say, or it has passed.

    `passing` is what holds for a while: of that "for two weeks" and "this week" say the end too, where of what lasts
    they may say the beginning. The moment is a midnight in the time zone of `said_at`.
    """
    plain = text.replace("’", "'")
    if _BEGINS.search(plain):
        return None
    try:
        day = _until(plain, said_at, language) or (_length(plain, said_at.date()) if passing else None)
        moment = datetime.combine(day, time(), said_at.tzinfo) if day else None
    except (ValueError, OverflowError):  # beyond the calendar
        return None
    return moment if moment and moment > said_at else None


def _until(text: str, said_at: datetime, language: str) -> date | None:
    found = _UNTIL[language].search(text) if language in _UNTIL else None
    if not found:
        return None
    for before in _BEFORE[language]:
        stretch = _stretch(f"{before}{found['rest']}", said_at, language)
        if stretch:
            unit, first = stretch
            return _after(unit, first) if unit == "day" or found["end"] else first
    return None


def _stretch(words: str, said_at: datetime, language: str) -> tuple[str, date] | None:
    if language not in LANGUAGES:
        return stretch_at(words, said_at.date())
    found = [one for one in phrases(words, said_at, language, past=False) if one.start <= 3]
    return (found[0].unit, found[0].first) if found else None


def _length(text: str, today: date) -> date | None:
    found = _FOR.search(text)
    if found:
        count = int(found["count"]) if found["count"].isdigit() else _NUMBERS[found["count"].lower()]
        if found["month"] or found["year"]:
            months = today.year * 12 + today.month - 1 + count * (12 if found["year"] else 1)
            return date(months // 12, months % 12 + 1, min(today.day, 28))
        return today + timedelta(days=count * (7 if found["week"] else 1))
    now = _NOW.search(text)
    if not now or now.lastgroup is None:
        return None
    begins = {"week": today - timedelta(days=today.weekday()), "month": today.replace(day=1), "day": today}
    return _after(now.lastgroup, begins.get(now.lastgroup, today.replace(month=1, day=1)))


def _after(unit: str, first: date) -> date:
    """Give the day after a stretch of time."""
    if unit in ("day", "week"):
        return first + timedelta(days=7 if unit == "week" else 1)
    if unit == "weekend":
        return first + timedelta(days=2)
    months = first.year * 12 + first.month - 1 + (12 if unit == "year" else 1)
    return date(months // 12, months % 12 + 1, 1)
