"""Summaries without a model that writes: which sentences of a stretch say most of it. Pure arithmetic.

The sentences chosen should cover the stretch: every other one should share words with one of them, and the stems,
names and numbers of it should occur in them, those that come back more. So what repeats is worth nothing, and what
holds names, dates, numbers or decisions more. What that gives is measured by `benchmarks/summaries.py`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from math import log1p

import numpy as np
from numpy.typing import NDArray

from memstore.store.terms import terms

STEMS = 2.0  # the weight of stems beside that of likeness; 1 to 10 are equal within half a point, 0 loses three
NAMES = 2.0  # of names and numbers: of those in gold summaries, 0 keeps 48 % at 80 tokens, 0.5 71, 2 82, 4 84
MOST = 400  # sentences chosen from: the time is quadratic, and one message may have tens of thousands
_LEAST = 0.02  # of a greeting: chosen where there is nothing else

_NUMBER = re.compile(r"\d")
_NUMBERS = re.compile(r"\b\d+(?:[.,:]\d+)*\b")
_WHEN = re.compile(
    r"\b(?:yesterday|today|tomorrow|tonight|(?:last|next|this|every) (?:week|weekend|month|year|summer|winter)"
    r"|ago|(?:mon|tues|wednes|thurs|fri|satur|sun)day|january|february|march|april|june|july|august|september|october"
    r"|november|december|gestern|heute|morgen|(?:letzte|nächste)\w* (?:woche|monat|jahr)\w*|vor \w+ \w+|montag|dienstag"
    r"|mittwoch|donnerstag|freitag|samstag|sonntag|januar|februar|märz|mai|juni|juli|oktober|dezember)\b",
    re.IGNORECASE,
)
_DECISION = re.compile(
    r"\b(?:decid|agree|plan(?:s|ned|ning)?\b|going to|want(?:s|ed)? to|will\b|i'll|we'll|signed up|start(?:ed|ing)"
    r"|joined|bought|moved|booked|got (?:a|my|the)\b|prefer|allerg|favou?rite|never|always|must|need to"
    r"|entschied|beschlossen|vereinbar|geplant|vor\w* haben|werde\b|werden\b|möchte|bevorzug|immer|nie\b|muss\b)",
    re.IGNORECASE,
)
_FIRST_PERSON = re.compile(r"\b(?:i|i'm|i've|i'd|my|we|we're|we've|our|ich|mein\w*|wir|unser\w*)\b", re.IGNORECASE)
_NAME = re.compile(r"(?<=[\w,;:'’)] )(?!I\b)[A-Z][\w'’-]+")
_PLEASANTRY = re.compile(
    r"^\W*(?:hey|hi|hello|wow|thanks?|thank you|bye|see you|take care|good (?:to|morning|luck|night|point)|great|cool"
    r"|nice|awesome|amazing|congrat\w*|sounds|sure|yeah|yes|yep|no problem|that's|glad|so (?:glad|happy)|ok(?:ay)?"
    r"|absolutely|totally|definitely|keep|hallo|danke|tschüss|schön|super|klar|gern\w*|genau|alles (?:gute|klar))\b",
    re.IGNORECASE,
)
_WORD = re.compile(r"\w+")


def keeps(sentence: str) -> float:
    """Give how much a summary should want this sentence for what it holds, from -1 to 1; 0 for one like any other.

    Up for dates, numbers, names, decisions and what one says of oneself; down for questions, greetings, praise and
    sentences of fewer than five words. English and German; in other languages only numbers, names and questions count.
    """
    worth = 0.15 * bool(_NUMBER.search(sentence)) + 0.2 * bool(_WHEN.search(sentence))
    worth += 0.2 * bool(_DECISION.search(sentence)) + 0.15 * bool(_FIRST_PERSON.search(sentence))
    worth += 0.1 * min(2, len(_NAME.findall(sentence)))
    worth -= 0.5 * sentence.rstrip("\"'”’)»* ").endswith(("?", "？", "؟"))
    worth -= 0.4 * bool(_PLEASANTRY.match(sentence))
    worth -= 0.3 * (sentence.isascii() and len(_WORD.findall(sentence)) < 5)
    return max(-1.0, min(1.0, worth))


def most_telling(sentences: Sequence[str]) -> list[int]:
    """Give the indices, ascending, of at most `MOST` sentences: those that a summary should want most."""
    if len(sentences) <= MOST:
        return list(range(len(sentences)))
    worth = [keeps(one) for one in sentences]
    return sorted(sorted(range(len(sentences)), key=lambda place: (-worth[place], place))[:MOST])


def mentions(sentence: str) -> set[str]:
    """Give the names and numbers in a sentence, lower-cased; a word that begins it is no name for that."""
    return {found.lower().removesuffix("'s").removesuffix("’s") for found in _NAME.findall(sentence)} | set(
        _NUMBERS.findall(sentence)
    )


@dataclass(frozen=True, slots=True)
class Choice:
    """Sentences made ready to be chosen from, with any limit: arrays with a row for each."""

    likeness: NDArray[np.float64]
    holds: NDArray[np.float64]
    weights: NDArray[np.float64]
    costs: NDArray[np.int_]

    def within(self, limit: int) -> list[int]:
        """Give the indices, ascending, of the sentences that together say most within `limit`."""
        chosen: list[int] = []
        resembled = np.zeros(len(self.costs))
        unsaid = np.ones(self.holds.shape[1], dtype=bool)
        left = np.ones(len(self.costs), dtype=bool)
        words = self.holds.sum(axis=1)  # what each holds that no chosen one does
        while (left := left & (self.costs <= limit)).any():
            gains = np.maximum(0, self.likeness - resembled).mean(axis=1) + words
            # Rounded: the last bits of a sum differ between machines, and must not decide.
            values = np.where(left, np.round(gains * self.weights, 7), 0)
            best = int(values.argmax())
            if values[best] <= 0:
                break
            chosen.append(best)
            left[best] = False
            limit -= int(self.costs[best])
            resembled = np.maximum(resembled, self.likeness[best])
            said = np.flatnonzero(unsaid & (self.holds[best] > 0))
            words = words - self.holds[:, said].sum(axis=1)
            unsaid[said] = False
        return sorted(chosen)


def prepare(
    sentences: Sequence[str],
    costs: Sequence[int],
    bonus: Sequence[float] | None = None,
    names: Sequence[Collection[str]] | None = None,
) -> Choice:
    """Make sentences ready to be chosen from.

    `costs` are tokens; `bonus`, from -1 to 1, is what each sentence holds (`keeps` by default), `names` are those that
    it has (`mentions` by default). Raises ValueError where the lengths differ.
    """
    for given in (costs, bonus, names):
        if given is not None and len(given) != len(sentences):
            raise ValueError("Sentences, costs, bonus and names must be equally many")
    held = np.asarray([keeps(one) for one in sentences] if bonus is None else bonus, dtype=np.float64)
    stems = _occurrences([terms(sentence) for sentence in sentences])
    named = _occurrences([mentions(one) for one in sentences] if names is None else names)
    directions = stems / np.maximum(np.linalg.norm(stems, axis=1, keepdims=True), np.finfo(float).tiny)
    likeness = np.einsum("ij,kj->ik", directions, directions)  # BLAS would leave threads spinning
    np.fill_diagonal(likeness, 1)  # a sentence without a stem is like itself
    return Choice(
        likeness=likeness,
        holds=np.hstack([STEMS * stems, NAMES * named]),
        weights=np.maximum(_LEAST, 0.5 + held) / np.maximum(1, np.asarray(costs, dtype=np.int_)),
        costs=np.asarray(costs, dtype=np.int_),
    )


def choose(
    sentences: Sequence[str], costs: Sequence[int], limit: int, bonus: Sequence[float] | None = None
) -> list[int]:
    """Give the indices, ascending, of the sentences that together say most within `limit`; see `prepare`.

    Where a sentence stands does not matter, equals go by their order, and the same input gives the same choice. A
    sentence that adds nothing to those chosen is left out even where it fits. Time grows with the square of the number
    of sentences: 70 take 3 ms.
    """
    return prepare(sentences, costs, bonus).within(limit)


def _occurrences(found: Sequence[Collection[str]]) -> NDArray[np.float64]:
    """Give a row for each sentence, a column for each word: the word's share of the whole where it occurs, else 0."""
    frequency = Counter(word for each in found for word in each)
    columns = {word: column for column, word in enumerate(frequency)}
    shares = np.zeros((len(found), len(columns)))
    for row, each in zip(shares, found, strict=True):
        for word in each:
            row[columns[word]] = log1p(frequency[word])
    return shares / max(1.0, sum(map(log1p, frequency.values())))
