"""Extractive summaries: the sentences that together say most of a segment, chosen and not written. Pure arithmetic.

The sentences chosen should cover the segment: every other one should share words with one of them, and the stems,
names and numbers of it should occur in them, those that come back more. So what repeats is worth nothing, and what
holds names, dates, numbers or decisions more. `benchmarks/summaries.py` measures what that gives.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from math import log1p

import numpy as np
from numpy.typing import NDArray

from memstore.derive.summaries.hierarchy import EMPTY_SUMMARY, TOOL, Line, Segment, format_lines
from memstore.models import Summary
from memstore.providers import TokenCounter
from memstore.store.tokenize import terms

STEMS = 2.0  # the weight of stems beside that of similarity; 1 to 10 are equal within half a point, 0 loses three
NAMES = 2.0  # of names and numbers: of those in gold summaries, 0 keeps 48 % at 80 tokens, 0.5 71, 2 82, 4 84
MAX_SENTENCES = 400  # chosen from: the time is quadratic, and one message may have tens of thousands
CALL_SCORE = -0.5  # of the line of a call: it comes after all that was said, and where nobody spoke it stands alone
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


class ExtractiveSummarizer:
    """Makes summaries of the sentences that say most."""

    batch_size = 512
    uses_llm = False
    recipe = "extractive/5"

    def __init__(self, counter: TokenCounter) -> None:
        self.counter = counter

    def start_session(self) -> None:
        """Return None: no model is asked."""

    def summarize(self, segments: Sequence[tuple[Segment, object]], tokens: int) -> list[Summary]:
        """Return a summary of at most `tokens` tokens for each segment."""
        return [
            segment.make_summary(abridge(segment.lines(), tokens, self.counter), self.recipe, self.counter)
            for segment, _ in segments
        ]


def abridge(lines: Sequence[Line], limit: int, counter: TokenCounter) -> str:
    """Return the lines that say most, in order, as a text of at most `limit` tokens."""
    lines = top_lines(lines)
    costs = [counter.count(f"{line}\n") for line in lines]
    # Who speaks is part of what a line says, and no news in another one: "I agree, Alice!" names nobody.
    speakers = {word for line in lines for word in line.speaker.lower().split()}
    names = [
        {name for name in find_mentions(line.text) if not any(word.startswith(name) for word in speakers)}
        for line in lines
    ]
    scores = [CALL_SCORE if line.speaker == TOOL else score_sentence(line.text) for line in lines]
    choice = prepare_choice([str(line) for line in lines], costs, scores, names)
    best, room, fullest = EMPTY_SUMMARY, limit, 0
    while room > 0:  # choose again with what the count shows of the costs
        places = choice.within(room)
        text = format_lines([lines[place] for place in places])
        tokens = counter.count(text)
        if not places or fullest >= tokens:
            break
        if tokens <= limit:
            best, fullest = text, tokens
        if tokens == limit:
            break
        room += limit - tokens
    return best


def top_lines(lines: Sequence[Line]) -> list[Line]:
    """Return the lines that may be chosen from, in order."""
    return [lines[place] for place in top_sentences([line.text for line in lines])]


def top_sentences(sentences: Sequence[str]) -> list[int]:
    """Return the indices, ascending, of the `MAX_SENTENCES` sentences with the highest scores."""
    if len(sentences) <= MAX_SENTENCES:
        return list(range(len(sentences)))
    scores = [score_sentence(sentence) for sentence in sentences]
    return sorted(sorted(range(len(sentences)), key=lambda place: (-scores[place], place))[:MAX_SENTENCES])


def score_sentence(sentence: str) -> float:
    """Return how much a summary should want this sentence for what it holds, from -1 to 1.

    Up for dates, numbers, names, decisions and what one says of oneself; down for questions, greetings, praise and
    sentences of fewer than five words. English and German; in other languages only numbers, names and questions count.
    """
    score = 0.15 * bool(_NUMBER.search(sentence)) + 0.2 * bool(_WHEN.search(sentence))
    score += 0.2 * bool(_DECISION.search(sentence)) + 0.15 * bool(_FIRST_PERSON.search(sentence))
    score += 0.1 * min(2, len(_NAME.findall(sentence)))
    score -= 0.5 * sentence.rstrip("\"'”’)»* ").endswith(("?", "？", "؟"))
    score -= 0.4 * bool(_PLEASANTRY.match(sentence))
    score -= 0.3 * (sentence.isascii() and len(_WORD.findall(sentence)) < 5)
    return max(-1.0, min(1.0, score))


def find_mentions(sentence: str) -> set[str]:
    """Return the names and numbers in a sentence, lower-cased; the word that begins it is no name."""
    names = {name.lower().removesuffix("'s").removesuffix("’s") for name in _NAME.findall(sentence)}
    return names | set(_NUMBERS.findall(sentence))


@dataclass(frozen=True, slots=True)
class Choice:
    """Sentences prepared for choosing with any limit: arrays with a row for each."""

    similarity: NDArray[np.float64]
    words: NDArray[np.float64]
    weights: NDArray[np.float64]
    costs: NDArray[np.int_]

    def within(self, limit: int) -> list[int]:
        """Return the indices, ascending, of the sentences that together say most within `limit`."""
        chosen: list[int] = []
        covered = np.zeros(len(self.costs))
        unsaid = np.ones(self.words.shape[1], dtype=bool)
        left = np.ones(len(self.costs), dtype=bool)
        news = self.words.sum(axis=1)  # the words of each that no chosen one has
        while (left := left & (self.costs <= limit)).any():
            gains = np.maximum(0, self.similarity - covered).mean(axis=1) + news
            # Rounded: the last bits of a sum differ between machines, and must not decide.
            values = np.where(left, np.round(gains * self.weights, 7), 0)
            best = int(values.argmax())
            if values[best] <= 0:
                break
            chosen.append(best)
            left[best] = False
            limit -= int(self.costs[best])
            covered = np.maximum(covered, self.similarity[best])
            said = np.flatnonzero(unsaid & (self.words[best] > 0))
            news = news - self.words[:, said].sum(axis=1)
            unsaid[said] = False
        return sorted(chosen)


def choose_sentences(sentences: Sequence[str], costs: Sequence[int], limit: int, scores: Sequence[float]) -> list[int]:
    """Return the indices, ascending, of the sentences that together say most within `limit` tokens.

    Their order matters only between equals. A sentence that adds nothing is left out even if it fits. O(n²).
    """
    return prepare_choice(sentences, costs, scores, [find_mentions(sentence) for sentence in sentences]).within(limit)


def prepare_choice(
    sentences: Sequence[str], costs: Sequence[int], scores: Sequence[float], names: Sequence[Collection[str]]
) -> Choice:
    """Return sentences prepared for choosing, by their tokens, their `score_sentence` and their names."""
    stems = _weigh_words([terms(sentence) for sentence in sentences])
    directions = stems / np.maximum(np.linalg.norm(stems, axis=1, keepdims=True), np.finfo(float).tiny)
    similarity = np.einsum("ij,kj->ik", directions, directions)  # BLAS would leave threads spinning
    np.fill_diagonal(similarity, 1)  # a sentence without a stem is like itself
    tokens = np.asarray(costs, dtype=np.int_)
    return Choice(
        similarity=similarity,
        words=np.hstack([STEMS * stems, NAMES * _weigh_words(names)]),
        weights=np.maximum(_LEAST, 0.5 + np.asarray(scores, dtype=np.float64)) / np.maximum(1, tokens),
        costs=tokens,
    )


def _weigh_words(sentences: Sequence[Collection[str]]) -> NDArray[np.float64]:
    """Return a row for each sentence, a column for each word: the word's share of the whole where it occurs, else 0."""
    frequency = Counter(word for words in sentences for word in words)
    columns = {word: column for column, word in enumerate(frequency)}
    shares = np.zeros((len(sentences), len(columns)))
    for row, words in zip(shares, sentences, strict=True):
        for word in words:
            row[columns[word]] = log1p(frequency[word])
    return shares / max(1.0, sum(map(log1p, frequency.values())))
