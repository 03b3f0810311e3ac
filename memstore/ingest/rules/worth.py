"""What a statement is worth as a fact, from 0 to 1: how likely it is to be noted, by what it shows.

A logistic sum of signs that can be seen in one statement. The weights were fitted on LoCoMo's dev half (does a gold
fact say the same?) and rounded; fitted on four of its conversations they choose nearly as well for the fifth
(docs/reference/facts.md).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence

from memstore.ingest.rules.standalone import Standing, Talk
from memstore.ingest.rules.word_lists import WEEKDAYS
from memstore.store.terms import terms

OPERATING_POINT = 0.22
REPEATED = 0.5  # what the second-best statement of a message is worth beside the best, the third beside the second …
SURE = 1.0  # what a precise rule trusts and what stays true
ANSWER = 0.3  # a short answer with its question

# The weight of each sign. Without any one of them the measure falls by less than a point: none decides alone.
WEIGHTS: Mapping[str, float] = {
    "always": -1.6,
    "share of words that mean something": 1.8,
    "words that mean something, of twelve": 1.0,
    "confidence of a precise rule": 1.2,
    "a name": 0.8,
    "a date": 0.5,
    "a decision or a beginning": 0.5,
    "going on now": 0.4,
    "after a question": 0.3,
    "of something else than the speaker": -1.0,
    "the subject is left out": -1.0,
    "we": -0.8,
    "what it is about stands before": -0.6,
    "thinks or knows": -0.6,
    "waits or will see": -0.6,
    "praise or greeting": -0.5,
    "mood": -0.5,
    "under five words": -0.5,
    "open end": -0.4,
}


def of_statement(standing: Standing, talk: Talk, confidence: float) -> float:
    """Give the worth of a statement; `confidence` is that of the precise rule that fits it, 0 for none."""
    total = sum(WEIGHTS[name] * amount for name, amount in signs(standing, talk, confidence))
    return 1 / (1 + math.exp(-total))


def needs_antecedent(plain: str) -> bool:
    """Whether what the words are about was named before them."""
    return bool(_CUES["what it is about stands before"].match(plain))


def ranked(worths: Sequence[float]) -> list[float]:
    """Give the worths of one message's statements beside each other: what is said second adds less to what is first."""
    order = sorted(range(len(worths)), key=lambda place: (-worths[place], place))
    result = [0.0] * len(worths)
    for rank, place in enumerate(order):
        result[place] = worths[place] * (1 if worths[place] == SURE else REPEATED**rank)
    return result


def signs(standing: Standing, talk: Talk, confidence: float) -> Iterator[tuple[str, float]]:
    """Give what is to be seen in a statement, and how much of it."""
    words, stems = len(standing.text.split()), len(terms(standing.plain))
    yield "always", 1.0
    yield "share of words that mean something", min(1.0, stems / max(1, words))
    yield "words that mean something, of twelve", min(12, stems) / 12
    yield "confidence of a precise rule", confidence
    seen = {
        "of something else than the speaker": not standing.named,
        "we": standing.of_us,
        "the subject is left out": standing.left_out,
        "under five words": words < 5,
        "after a question": talk.question is not None,
        **{name: bool(pattern.search(standing.plain)) for name, pattern in _CUES.items()},
    }
    yield from ((name, 1.0) for name, there in seen.items() if there)


def _cue(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


_CUES: Mapping[str, re.Pattern[str]] = {
    "praise or greeting": _cue(
        r"^(?:I am )?(?:that's|that is|that (?:was|must|sounds)|glad|happy (?:for|to hear)|proud of|I hope|hope"
        r"|sounds|good|nice|cool|great|wow|here's|here is)\b"
    ),
    "mood": _cue(
        r"\b(?:is|am|was|are) (?:\w+ )?(?:glad|happy|excited|proud|sure|grateful|thankful|sorry|here|there|curious"
        r"|thrilled|stoked|ready|lucky|done|back|fine|ok|good)\b"
    ),
    "what it is about stands before": _cue(r"^(?:it|that|this|they|these|those|he|she|there)\b"),
    "thinks or knows": _cue(r"^I (?:think|know|guess|bet|see|hope|agree|understand|mean|hear|heard|feel you)\b"),
    "waits or will see": _cue(r"can't wait|\bI will (?:let|keep|do|be|see|try)|\b(?:talk|hear|chat)\b"),
    "a name": re.compile(r"(?<=[\w,;:'’)] )(?!I\b)[A-Z][\w'’-]+"),
    "open end": _cue(
        r"\b(?:it|them|that|this|there|here|one|stuff|things?|something)$|^I (?:\w+ )?(?:love|like|enjoy|hate) (?:it"
        r"|that|this)\b"
    ),
    "going on now": _cue(
        r"^I (?:(?:just|also|still|currently) )?(?:am|have been) (?:(?:just|also|still|currently) )?\w+ing\b"
    ),
    "a date": _cue(
        r"\b(?:yesterday|today|tomorrow|tonight|(?:last|next|this|every) (?:night|week\w*|month|year|summer|winter"
        rf"|fall|spring|\w+day)|ago|(?:{WEEKDAYS})day|january|february|march|april|june|july"
        r"|august|september|october|november|december|since|the other day|recently|(?:19|20)\d\d)\b"
    ),
    "a decision or a beginning": _cue(
        r"\b(?:decid|chose|signed up|start(?:ed|ing)|joined|bought|moved|booked|agreed|quit|adopted)\w*\b"
    ),
}
