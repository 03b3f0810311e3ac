"""How the tables of slots are written: rows of an attribute, a value and a pattern, with words that many rows share.

In a pattern `<S:live/lives>` is a subject with its verb, of the first person and of the third; `<V>` is a value and
`<T>` a thing, which run to where the language says that they end; `<word>` is a list of the language's. A row whose
value is "" takes what `<V>` caught; `{t}` in its attribute is what `<T>` caught. An attribute with a "!" is said by a
verb of change: "this week I moved" is no temporary state. A "~" says that a known date moves.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from itertools import count
from typing import NamedTuple

from memstore.ingest.rules.until import NOT_SINCE

_GROUP = re.compile(r"\(\?P<(who|v|t)>")
_FLAGS = re.IGNORECASE
_STOP = r"(?<!\bdr)(?<!\bprof)(?<!\bmr)(?<!\bmrs)(?<!\bms)(?<!\bst)\."  # "at Dr. Weber's"
_MACRO = re.compile(r"<S:([^<>]*(?:<\w+>[^<>]*)*)>|(?<!\?P)<(\w+)>")


class SlotRule(NamedTuple):
    """One row: `pattern` may have the groups who, v and t."""

    attribute: str
    value: str
    pattern: re.Pattern[str]
    lasting: bool  # nothing that is said of a time beside it makes it temporary
    moves: bool


class Subject(NamedTuple):
    """Who may be spoken of: patterns of the first person, of kin and names, and of the adverbs around a verb."""

    first: str
    inverted: str  # the first person after its verb, where a language has that order
    third: str
    adverbs: str


class Contrast(NamedTuple):
    """How a language says "not this but that": the pattern and what it is replaced by, so that only that is left."""

    pattern: re.Pattern[str]
    left: str | Callable[[re.Match[str]], str]


class Grammar(NamedTuple):
    """All that is known of one language."""

    rules: tuple[SlotRule, ...]
    unreal: re.Pattern[str]  # of a clause: would, perhaps
    doubtful: re.Pattern[str]  # of a sentence: if, I wish, imagine
    reported: re.Pattern[str]  # she said, he thinks
    subordinate: re.Pattern[str]  # right before a subject: the town where I live
    temporary: re.Pattern[str]
    corrects: re.Pattern[str]  # at the start of a clause: sorry, I meant
    meant: re.Pattern[str]  # a correction of a bare value, caught as v: "sorry, I meant Tuesday"
    also: re.Pattern[str]
    no_value: re.Pattern[str]  # at the start of a value: this, it, my
    article: re.Pattern[str]
    next_clause: re.Pattern[str]
    asks: re.Pattern[str]  # at the start of a clause: write a letter that says …
    contrasts: tuple[Contrast, ...] = ()
    hearsay: re.Pattern[str] = re.compile(r"(?!)")  # "The doctor says" before what is said of the speaker's health
    wishes: tuple[SlotRule, ...] = ()  # what somebody wants, which for all other rules is unreal


Row = tuple[str, str, str]


def table(rows: tuple[Row, ...], subject: Subject, ends: str, words: Mapping[str, str]) -> tuple[SlotRule, ...]:
    """Compile the rows of a language; `ends` are the words before which a value or a thing is over."""
    over = rf"(?=\s*(?:[,;:!?()…\"“”«»]|{_STOP}|\s[–—-]\s|$)|\s+(?:{ends})(?!\w))"

    def spelled_out(pattern: str) -> str:
        return _MACRO.sub(replaced, pattern)

    def replaced(macro: re.Match[str]) -> str:
        if macro[1] is not None:
            first, _, third = (spelled_out(part) for part in macro[1].partition("/"))
            return _with_subject(subject, first, third, spelled_out(subject.third))
        if macro[2] in ("V", "T"):
            return rf"(?P<{macro[2].lower()}>[^\s,;:.!?()…\"“”«»](?:[^,;:!?()…\"“”«»]{{0,60}}?)){over}"
        return f"(?:{spelled_out(words[macro[2]])})"

    def compiled(pattern: str) -> re.Pattern[str]:
        numbers = count()  # a group may stand in several branches of a pattern: who, who1, …
        pattern = _GROUP.sub(lambda group: f"(?P<{group[1]}{next(numbers)}>", spelled_out(pattern))
        return re.compile(rf"(?<!\w)(?:{pattern})(?!\w)", _FLAGS)

    return tuple(
        SlotRule(attribute.strip("!~"), value, compiled(pattern), attribute.endswith(("!", "~")), attribute[-1] == "~")
        for attribute, value, pattern in rows
    )


def caught(found: re.Match[str], group: str) -> str | None:
    """Give what a group of a row caught, in whichever branch of its pattern."""
    return next((text for name, text in found.groupdict().items() if text and name.startswith(group)), None)


def _with_subject(subject: Subject, first: str, third: str, others: str) -> str:
    forms = [rf"{subject.first}{subject.adverbs}(?:{first})"]
    if subject.inverted:
        forms.append(rf"(?:{first}) {subject.inverted}")
    if third:
        forms.append(rf"(?P<who>{others}){subject.adverbs or ' '}(?:{third})")
    return rf"(?:{'|'.join(forms)}){subject.adverbs}".replace("  ", " ")


def for_a_while(pattern: str) -> re.Pattern[str]:
    """Compile words that say that something holds for a while, but not since then."""
    return words(rf"{NOT_SINCE}(?:{pattern})")


def words(pattern: str) -> re.Pattern[str]:
    """Compile a pattern of whole words, without regard to case."""
    return re.compile(rf"(?<!\w)(?:{pattern})(?!\w)", _FLAGS)
