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

from memstore.language import WORD, load_days, load_phrases, load_words, number_words

_NAMES = number_words("months")
_MONTHS = _NAMES | number_words("short_months")
_TO = load_words("date_to") | {"-", "–", "—", "~", "到", "至"}
_AND, _OR = load_words("date_and") | {"", "、", "和", "与", "但"}, load_words("date_or") | {"或"}


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
        joint = _joint(gaps[number])
        if not relation and number and before == "not" and joint in _AND | _OR:
            relation = "not"
        negated, _, relation = relation.rpartition(" ")
        other = said[number + 1] if number + 1 < len(said) else None
        joint = _joint(gaps[number + 1]) if other else ""
        if other and (joint in _TO or (relation == "between" and joint in _AND | _OR)):
            times = [*_range(mention.date, other.date, after=relation == "after")]
            is_range_end = True
        elif other and _joint(text[mention.stop : other.start]) in _AND and (times := [*_overlap(mention, other)]):
            is_range_end = True
        else:
            times = [*_lying(mention.date, relation)]
        (outside if relation == "not" or negated else inside).extend(times)
        relation = "not" if negated else relation
    return AskedTime(inside, outside)


def _joint(gap: str) -> str:
    """Return the words between two dates, without prepositions."""
    words = re.findall(r"[^\W年月日]+|[-–—~、]", gap.casefold())
    return " ".join(word for word in words if word not in load_words("date_prepositions"))


def _related(text: str, mention: _Said, gap: str, next_gap: str) -> _Said:
    """Return a date with its relation: its words stand in the gap before the date, or in the next one."""
    behind, following = _find_behind(text, mention.stop), _find_before(next_gap)
    is_of_next = behind and following and mention.stop + following[1] < behind[1]  # "2020 and before 2023"
    if behind and not is_of_next:
        return mention._replace(relation=behind[0], stop=behind[1])
    if (before := _find_before(gap)) is None:
        return mention
    kind, start = before
    words = gap[:start].casefold().split()
    if mention.date.month and _is_near(gap[:start].rstrip()):
        return mention
    if mention.date.month is None and gap.casefold().split()[-1:] == ["the"]:
        return mention  # "after the 2024 election"
    if words and words[-1] in ("not", "never", "no", "nicht", "pas"):
        flipped = {"before": "since", "after": "through", "since": "before", "through": "after", "not": "not"}
        kind, start = flipped.get(kind, "not between"), gap.casefold().rindex(words[-1], 0, start)
    return mention._replace(relation=kind, start=mention.start - len(gap) + start)


def _find_before(gap: str) -> tuple[str, int] | None:
    """Return how a period lies to the date behind these words, and where the words that say so begin."""
    phrases = {
        "not": load_phrases("date_not"),
        "between": load_phrases("date_between"),
        "after": load_phrases("date_after"),
        "before": load_phrases("date_before"),
        "since": load_phrases("date_since"),
        "through": load_phrases("date_through"),
    }
    found = [
        (match.start(), kind)
        for kind, pattern in phrases.items()
        for match in pattern.finditer(gap)
        if load_words("date_prepositions").issuperset(WORD.findall(gap[match.end() :].casefold()))
    ]
    # In Chinese nothing is between words.
    chinese = {"除": "not", "除了": "not", "不在": "not", "在": "between", "从": "since", "自从": "since"}
    found += [(len(gap) - len(words), kind) for words, kind in chinese.items() if gap.endswith(words)]
    return next(((kind, start) for start, kind in sorted(found)), None)


def _find_behind(text: str, stop: int) -> tuple[str, int] | None:
    """Return how a period lies to the date before these words, and where the words that say so end."""
    rest = text[stop:].lstrip(" ,年月日")
    chinese = {"之后": "after", "以后": "after", "之前": "before", "以前": "before", "以来": "since", "以外": "not"}
    for words, kind in chinese.items():
        if rest.startswith(words):
            return kind, len(text) - len(rest) + len(words)
    phrases = {"since": load_phrases("date_since_behind"), "through": load_phrases("date_through_behind")}
    for kind, pattern in phrases.items():
        if match := pattern.match(rest):
            return kind, len(text) - len(rest) + match.end()
    return None


def _is_near(before: str) -> bool:
    """Whether words end with a stretch of time or a weekday: "the week before 8 May" is spoken of around that day."""
    last = (WORD.findall(before.casefold()) or [""])[-1]
    is_stretch = last in load_words("stretches") | load_days("en") or last[1:].endswith("tag")
    return before.casefold().endswith(last) and is_stretch


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


def _range(first: NamedDate, last: NamedDate, *, after: bool, before: bool = False) -> Iterator[Time]:
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
    return date(said.year or 1, said.month or 1, 1) + timedelta(min(max(said.day or 1, 1), 31) - 1)


def _after(said: NamedDate) -> date:
    """Return the day after the last day of a date of a known year."""
    year = said.year or 1
    if said.day:
        return _first(said) + timedelta(1)
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
        # Words with another meaning are months only next to a number, or behind a word such as "in" or "since".
        is_ambiguous = name in ("may", "march", "mars", "august") and not said["time"]
        if name and not (year or day) and (name not in _NAMES or is_ambiguous):
            continue
        number = _MONTHS.get(name, int(month) if month else None)
        if number is None or 1 <= number <= 12:
            start = match.end("time") if said["time"] else match.start()
            yield _Said(NamedDate(int(year) if year else None, number, int(day) if day else None), start, match.end())


@cache
def _pattern() -> re.Pattern[str]:
    names = "|".join(sorted(_MONTHS, key=len, reverse=True))
    times = "|".join(sorted(load_words("before_months")))
    between = r"(?:,|\.)?\s+(?:of\s+|de[l]?\s+)?"
    year, day = r"(?P<y{0}>(?:19|20)\d\d)", r"(?P<d{0}>[0-3]?\d)"
    forms = [
        rf"\b{day.format(0)}\.\s?(?P<m0>[01]?\d)\.\s?{year.format(0)}\b",
        rf"(?<![^\W\u2e80-\uffff]){year.format(1)}(?:[-年](?P<m1>[01]?\d)(?:[-月]{day.format(1)})?)?(?![0-9a-z])",
        rf"(?:\b(?P<time>{times})\s+)?(?:\b{day.format(2)}(?:st|nd|rd|th|er)?{between})?"
        rf"\b(?P<name>{names})\b\.?(?:\s+{day.format(3)}(?:st|nd|rd|th)?(?!\d))?(?:{between}{year.format(2)}\b)?",
    ]
    return re.compile("|".join(forms), re.IGNORECASE)
