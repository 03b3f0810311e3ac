"""The time that a question asks about: "in May 2023", "nach 2024", "between 2021 and 2023", "2024年之后". Pure.

Only what needs no clock: "last week" is another one every week, and a store gives the same answer to the same question.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from functools import cache
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from memstore.language import WORD, load_days, load_words, number_words

_NAMES = number_words("months")
_MONTHS = _NAMES | number_words("short_months")
# Words with another meaning: they are months only next to a number, or behind a word such as "in" or "since".
_AMBIGUOUS = ("may", "march", "mars", "august")
_TIME_WORDS = (
    "in|of|since|during|by|until|till|before|after|last|this|early|mid|late|from|through|im|seit|ab|bis|vom|letzten"
    "|diesen|en|de|depuis|avant|après|desde|hasta|antes|durante"
)
_BETWEEN = r"(?:,|\.)?\s+(?:of\s+|de[l]?\s+)?"
_ONE_DAY = timedelta(days=1)


class NamedDate(NamedTuple):
    """A year, a month (1 to 12), a day, or some of them."""

    year: int | None = None
    month: int | None = None
    day: int | None = None


class Period(NamedTuple):
    """The days from `start` to before `stop`; None where it is open."""

    start: date | None
    stop: date | None


Time: TypeAlias = "NamedDate | Period"


@dataclass(frozen=True, slots=True)
class AskedTime:
    """The times that a question asks about, and those that it leaves out."""

    inside: Sequence[Time] = ()
    outside: Sequence[Time] = ()

    def scores(self, days: NDArray[np.datetime64]) -> NDArray[np.float64]:
        """Return 1 for each day that is asked about, 2 for the very day that is named, 0 for others."""
        scores = np.zeros(len(days))
        if not self.inside and self.outside:
            scores += 1
        for time in self.inside:
            scores = np.maximum(scores, _fit(time, days))
        for time in self.outside:
            scores[_fit(time, days) >= (2 if isinstance(time, NamedDate) and time.day else 1)] = 0
        return scores


def _fit(time: Time, days: NDArray[np.datetime64]) -> NDArray[np.float64]:
    fits = np.ones(len(days), dtype=np.bool_)
    if isinstance(time, Period):
        if time.start is not None:
            fits &= days >= np.datetime64(time.start)
        if time.stop is not None:
            fits &= days < np.datetime64(time.stop)
        return fits.astype(np.float64)
    months = days.astype("M8[M]")
    if time.year is not None:
        fits &= months.astype(np.int64) // 12 + 1970 == time.year
    if time.month is not None:
        fits &= months.astype(np.int64) % 12 + 1 == time.month
    very_day = fits & ((days - months.astype("M8[D]")).astype(np.int64) + 1 == time.day)
    scores: NDArray[np.float64] = fits.astype(np.float64) + very_day
    return scores


# What stands before a date, or behind it, and how a period lies to it.
_BEFORE_DATE = {
    "not": r"(?:not|nor|except|excluding|exclud\w+|other than|apart from|besides|nicht|außer|ausgenommen|ohne|pas|sauf"
    r"|hors|hormis|excepto|salvo|menos|tranne|exceto|outside|außerhalb|en dehors|fuera|a no ser"
    r"|(?:any|every|all|thing|year)\w* but)(?: for| of| von| de)?|no|não|除了?|不是?在?",
    "between": r"between|zwischen|entre|tra|fra|在",
    "after": r"after|later than|following|past|nach|später als|après|después del?|tras|dopo|depois del?",
    "before": r"before|prior to|previous to|earlier than|until|till|up to|vor|früher als|bis(?: zum?)?|avant"
    r"|jusqu['’](?:en|à|au)|antes del?|antes do|hasta|prima del?|fino al?|até",
    "since": r"since|starting(?: in| from)?|beginning(?: in| from)?|seit|ab|depuis|dès|à partir de|desde|a partir de"
    r"|dal|[从從]|自从?",
    "through": r"through|by|no later than|spätestens|bis einschließlich|bis ende",
}
_BEHIND_DATE = {
    "after": r"之后|之後|以后|以後|より後|이후",
    "before": r"之前|以前|より前|まで|이전|까지",
    "since": r"以来|以來|起|から|부터|(?:and|or) (?:later|after|newer)|onwards?\b|on(?=\s*(?:[,.?!]|$))"
    r"|(?:und|oder) später",
    "through": r"(?:and|or) (?:earlier|before|older)|(?:und|oder) früher",
    "not": r"以外",
}
_NOT = r"(?P<negated>(?:not|never|no|nicht|pas|不)\s+)?"
_IN = (
    r"(?:\s*(?:in|on|at|during|im|am|en|au|the|year|years|jahr|jahre[ns]?|dem|den|des|der|das|l['’]année|année"
    r"|em|dans|el|la|le|les|los|año|l['’]anno|il|anno))*"
)
_EDGE = (
    r"(?P<edge>\s*(?:the )?(?:(?P<end>end of|ende(?: des jahres)?|(?:la )?fin (?:de|du)|finales de|fines de)"
    r"|(?P<start>start of|beginning of|anfang|(?:le )?début (?:de|du)|principios de|comienzos de)))?"
)
_TO = re.compile(
    r"\s*(?:-|–|—|~|to|until|till|through|thru|up to|bis(?: zum?)?|à|au|a|al|hasta|jusqu['’](?:en|à|au)|到|至)\s*",
    re.IGNORECASE,
)
_AND = re.compile(r"\s*年?\s*(?:,|and|or|und|oder|et|ou|y|o|e|和|与|或|、)\s*(?:in|im|en)?\s*", re.IGNORECASE)
_BOTH = re.compile(r"[\s年]*[,，]?\s*(?:and|but|und|aber|et|mais|y|e|pero|但?和?|与)?\s*", re.IGNORECASE)
_UNITS = "年月日년월일"
# "The week before 8 May" is spoken of around that day.
_NEAR = load_words("stretches") | load_days("en")
_FLIPPED = {"before": "since", "after": "through", "since": "before", "through": "after", "not": "not"}


@cache
def _before_date() -> re.Pattern[str]:
    kinds = "|".join(rf"(?P<{kind}>{words})" for kind, words in _BEFORE_DATE.items())
    return re.compile(rf"(?:^|(?<=\W)|(?<=[\u3000-\u9fff])){_NOT}(?:{kinds}){_IN}{_EDGE}{_IN}\s*$", re.IGNORECASE)


@cache
def _behind_date() -> re.Pattern[str]:
    kinds = "|".join(rf"(?P<{kind}>{words})" for kind, words in _BEHIND_DATE.items())
    return re.compile(rf"[\s,年月日년월일]*(?:{kinds})", re.IGNORECASE)


class _Said(NamedTuple):
    """A date in a text, how the time that is asked about lies to it, and where the words of both begin and end.

    The relation is "" for a time in the date; with "not " before it, it is the contrary.
    """

    date: NamedDate
    start: int
    stop: int
    relation: str = ""


def asked_time(text: str) -> AskedTime:
    """Return the time that a question asks about.

    >>> asked_time("What did we eat after 2024?").inside
    [Period(start=datetime.date(2025, 1, 1), stop=None)]
    """
    inside: list[Time] = []
    outside: list[Time] = []
    dates = [*_dates(text)]
    ends = [0, *(mention.stop for mention in dates)]
    gaps = [text[end : mention.start] for end, mention in zip(ends, dates, strict=False)]
    said = [_related(text, mention, *near) for mention, *near in zip(dates, gaps, [*gaps[1:], ""], strict=False)]
    relation, is_range_end = "", False
    for number, mention in enumerate(said):
        if is_range_end:
            is_range_end = False
            continue
        before, relation = relation, mention.relation
        if not relation and number and before == "not" and _AND.fullmatch(gaps[number]):
            relation = "not"
        negated, _, relation = relation.rpartition(" ")
        other = said[number + 1] if number + 1 < len(said) else None
        if other and (
            _TO.fullmatch(gaps[number + 1].lstrip().lstrip(_UNITS))
            or (relation == "between" and _AND.fullmatch(gaps[number + 1]))
        ):
            times = [*_range(mention.date, other.date, after=relation == "after")]
            is_range_end = True
        elif other and _BOTH.fullmatch(text[mention.stop : other.start]) and (times := [*_overlap(mention, other)]):
            is_range_end = True
        else:
            times = [*_lying(mention.date, relation)]
        (outside if relation == "not" or negated else inside).extend(times)
        relation = "not" if negated else relation
    return AskedTime(inside, outside)


def _related(text: str, mention: _Said, gap: str, next_gap: str) -> _Said:
    """Return a date with its relation: its words stand in the gap before the date, or in the next one."""
    match, following = _behind_date().match(text, mention.stop), _before_date().search(next_gap)
    is_of_next = match and following and mention.stop + following.start() < match.end()  # "2020 and before 2023"
    if match is not None and match.lastgroup is not None and not is_of_next:
        return mention._replace(relation=match.lastgroup, stop=match.end())
    match = _before_date().search(gap)
    if match is None:
        return mention
    kind = next(name for name in _BEFORE_DATE if match[name])
    if mention.date.month and _is_near(gap[: match.start()].rstrip()):
        return mention
    if re.search(r"\bthe\s*$", gap, re.IGNORECASE) and mention.date.month is None:
        return mention  # "after the 2024 election"
    if match["negated"]:
        kind = f"not {kind}" if kind == "between" else _FLIPPED[kind]
    elif match["end"] and kind == "before":
        kind = "through"
    elif match["start"] and kind == "after":
        kind = "since"
    return mention._replace(relation=kind, start=mention.start - len(gap) + match.start())


def _is_near(before: str) -> bool:
    """Whether words end with a stretch of time, or a German weekday."""
    last = (WORD.findall(before.casefold()) or [""])[-1]
    return before.casefold().endswith(last) and (last in _NEAR or last[1:].endswith("tag"))


def _lying(said: NamedDate, relation: str) -> Iterator[Time]:
    if relation in ("", "between", "not"):
        yield said
    elif said.year is None:  # which year's, nobody knows
        if relation in ("since", "through"):
            yield said
    elif relation in ("after", "since"):
        yield Period(_after(said) if relation == "after" else _first(said), None)
    else:
        yield Period(None, _first(said) if relation == "before" else _after(said))


def _overlap(mention: _Said, other: _Said) -> Iterator[Time]:
    """Yield the times after one date and before the other, as of "after 2020 and before 2023"."""
    first, last = (mention, other) if mention.relation in ("after", "since") else (other, mention)
    if first.relation in ("after", "since") and last.relation in ("before", "through"):
        yield from _range(first.date, last.date, after=first.relation == "after", before=last.relation == "before")


def _range(first: NamedDate, last: NamedDate, *, after: bool = False, before: bool = False) -> Iterator[Time]:
    """Yield the times from one date to another: with `after` and `before` without these themselves."""
    if last.year is None and first.year is not None:
        last = last._replace(year=first.year + ((last.month or 12) < (first.month or 12)))
    if first.year is None and last.year is not None:
        first = first._replace(year=last.year - ((first.month or 0) > (last.month or (0 if before else 12))))
    if first.year is not None:
        start, stop = _after(first) if after else _first(first), _first(last) if before else _after(last)
        if start < stop:
            yield Period(start, stop)
    elif first.month and last.month:
        count = (last.month - first.month) % 12 + 1
        steps = range(after and not first.day, count - (before and not last.day))
        yield from (NamedDate(month=(first.month - 1 + step) % 12 + 1) for step in steps)


def _first(said: NamedDate) -> date:
    month = date(said.year or 1, said.month or 1, 1)
    return month + min(max(said.day or 1, 1), 31) * _ONE_DAY - _ONE_DAY


def _after(said: NamedDate) -> date:
    """Return the day after the last day of a date of a known year."""
    year = said.year or 1
    if said.day:
        return _first(said) + _ONE_DAY
    return date(year + 1, 1, 1) if said.month in (None, 12) else date(year, (said.month or 0) + 1, 1)


def named_dates(text: str) -> list[NamedDate]:
    return [mention.date for mention in _dates(text)]


def _dates(text: str) -> Iterator[_Said]:
    folded = text.casefold()
    if not any(map(str.isdecimal, text)) and not any(name in folded for name in _MONTHS):
        # Most questions have none: a tenth of a millisecond is much of what recall takes.
        return
    for match in _pattern().finditer(text):
        said = match.groupdict()
        year, month, day = (
            next((said[f"{letter}{n}"] for n in range(4) if said.get(f"{letter}{n}")), None) for letter in "ymd"
        )
        name = (said["name"] or "").casefold()
        if name and not (year or day) and (name not in _NAMES or (name in _AMBIGUOUS and not said["time"])):
            continue
        number = _MONTHS.get(name, int(month) if month else None)
        if number is None or 1 <= number <= 12:
            start = match.end("time") if said["time"] else match.start()
            yield _Said(NamedDate(int(year) if year else None, number, int(day) if day else None), start, match.end())


@cache
def _pattern() -> re.Pattern[str]:
    names = "|".join(sorted(_MONTHS, key=len, reverse=True))
    year, day = r"(?P<y{0}>(?:19|20)\d\d)", r"(?P<d{0}>[0-3]?\d)"
    forms = [
        rf"\b{day.format(0)}\.\s?(?P<m0>[01]?\d)\.\s?{year.format(0)}\b",
        rf"(?<![^\W\u2e80-\uffff]){year.format(1)}(?:[-年](?P<m1>[01]?\d)(?:[-月]{day.format(1)})?)?(?![0-9a-z])",
        rf"(?:\b(?P<time>{_TIME_WORDS})\s+)?(?:\b{day.format(2)}(?:st|nd|rd|th|er)?{_BETWEEN})?"
        rf"\b(?P<name>{names})\b\.?(?:\s+{day.format(3)}(?:st|nd|rd|th)?(?!\d))?(?:{_BETWEEN}{year.format(2)}\b)?",
    ]
    return re.compile("|".join(forms), re.IGNORECASE)
