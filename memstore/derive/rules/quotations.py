"""Sentences worth keeping, told as they were said: `Alice: "We signed the lease in Cork."`

A logistic sum of features says what a sentence is worth as a fact, from 0 to 1. The weights were fitted on
LoCoMo's dev half (does a gold fact say the same?) and rounded (docs/reference/facts.md). Nothing is rewritten: what
begins with an "it" or a "they" takes the sentence before it, or is left out.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from memstore.derive.rules.pack import Language
from memstore.derive.rules.utterances import Sentence, Utterance, clauses_of
from memstore.store.tokenize import terms

THRESHOLD = 0.168
REPEATED = 0.4  # what the second-best of a message is worth beside the best, the third beside the second …
# To an assistant people speak of themselves seldom and shortly: what is no request is mostly worth keeping.
TO_ASSISTANT = 3.5  # times the worth
REPEATED_TO_ASSISTANT = 0.9
BRIEF = 80  # words of a message; in what is longer a sentence without "I" and "my" may be from anywhere
SHORTEST, MOST_WORDS = 3, 60  # words
FEW = 5  # words, below which a sentence takes the one before it
WHOLE = 12  # words up to which a sentence is told whole, and a longer one by its clauses
WHOLE_TO_ASSISTANT = 40
MOST_JOINED = 24  # words of a sentence with the one before it
ALIKE = 0.8  # share of stems that two sentences of one message have in common when they say the same
LOOKED_BACK = 50  # sentences, so that the time of a long message grows with its length only

# The weight of each sign; those that depend on the language stand in its file under the same names.
WEIGHTS: Mapping[str, float] = {
    "always": -2.3,
    "share of words that mean something": 0.9,
    "words that mean something, of twelve": 2.2,
    "words, of forty": 1.0,
    "a name": 0.7,
    "under five words": -0.7,
    "of something else than the speaker": -0.7,
    "a date": 0.5,
    "a decision or a beginning": 0.4,
    "going on now": 0.7,
    "we": -0.3,
    "what it is about stands before": -0.7,
    "thinks or knows": -0.5,
    "waits or will see": -0.7,
    "praise or greeting": -1.0,
    "mood": -0.4,
    "you": -0.5,
    "something of the speaker's": 0.5,
    "can or would": -0.4,
    "things": -0.6,
    "what the speaker did": 0.4,
    "open end": -0.5,
}
_NAME = re.compile(r"(?<=[\w,;:'’)] )(?!I\b)[A-Z][\w'’-]+")
_UNPARTED = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_WORD = re.compile(r"\w[\w'’-]*")


class Quotation(NamedTuple):
    """The characters `start` to `stop` of a message, and what they are worth."""

    start: int
    stop: int
    worth: float


def quotations(
    utterance: Utterance, sentences: Sequence[Sentence], language: Language | None, *, to_friend: bool
) -> list[Quotation]:
    """Return the sentences of a message with what each is worth; `to_friend`: it is said to no assistant."""
    found: list[Quotation] = []
    stems: list[set[str]] = []
    last: Sentence | None = None
    brief = len(utterance.text.split()) <= BRIEF
    for sentence in sentences:
        if language and language.patterns["unmeant"].search(utterance.clean_text, sentence.start, sentence.stop):
            last = None
            continue
        for start, stop, asked in _pieces(utterance.clean_text, sentence, language, to_friend=to_friend):
            begins = [start]
            if not to_friend and language and start <= sentence.start + 9:  # a clause further on has its own subject
                begins = _begins(utterance.clean_text, start, stop, last, language)
            for begin in (found[-1].start if found and one < found[-1].stop else one for one in begins):
                words = " ".join(utterance.clean_text[begin:stop].split())
                if asked or _states(words, language, to_friend=to_friend, brief=brief):
                    break
            else:
                continue
            mine = set(terms(words))
            alike = any(len(mine & other) >= ALIKE * max(1, len(mine | other)) for other in stems[-LOOKED_BACK:])
            stems.append(mine)
            if alike:
                continue
            if found and found[-1].stop > begin:
                found.pop()
            found.append(Quotation(begin, stop, _worth(words, language)))
        last = sentence
    repeated = REPEATED if to_friend else REPEATED_TO_ASSISTANT
    worths = _ranked([one.worth if to_friend else min(1.0, one.worth * TO_ASSISTANT) for one in found], repeated)
    return [one._replace(worth=worth) for one, worth in zip(found, worths, strict=True)]


def _begins(text: str, start: int, stop: int, last: Sentence | None, language: Language) -> list[int]:
    """Return where words may begin: with the sentence that they lean on, or alone if they can be understood so."""
    leans = language.patterns["leans"].match(text, start, stop) is not None
    few = len(text[start:stop].split()) < FEW and not _asks_for(text[start:stop], language)
    joins = (leans or few) and last and not last.asks and len(text[last.start : stop].split()) <= MOST_JOINED
    alone = [] if leans else [start]
    return [_begin(text, last.start, last.stop, language), *alone] if last and joins else alone


def _pieces(
    text: str, sentence: Sentence, language: Language | None, *, to_friend: bool
) -> Iterator[tuple[int, int, bool]]:
    """Return a sentence whole, or its clauses where it is long or asks; and whether one leans on what is asked."""
    start, stop = _begin(text, sentence.start, sentence.stop, language), sentence.stop
    asks_for = language is not None and not to_friend and _asks_for(text[start:stop], language)
    most = WHOLE if to_friend else WHOLE_TO_ASSISTANT
    if language is None or not (sentence.asks or asks_for or len(text[start:stop].split()) > most):
        if not sentence.asks:
            yield start, stop, False
        return
    clauses = list(clauses_of(text, start, stop, language))
    for first, last in clauses[:-1] if sentence.asks else clauses:
        leans = first > start and not to_friend and language.patterns["leans_on"].search(text, first, last) is not None
        leans = leans and len(text[start:last].split()) <= MOST_JOINED
        asked = bool(leans and asks_for and not _asks_for(text[first:last], language))
        asked = asked and language.patterns["of_speaker"].search(text, start, first) is not None
        first = start if leans and (asked or not asks_for) else first
        yield _begin(text, first, last, language), last, asked


def _asks_for(words: str, language: Language) -> bool:
    patterns = language.patterns
    return patterns["request"].search(words) is not None or patterns["no_statement"].match(words) is not None


def _begin(text: str, place: int, stop: int, language: Language | None) -> int:
    """Return where words begin behind what only leads into them."""
    if language:
        found = language.patterns["greets"].match(text, place, stop)
        place = found.end() if found else place
    found = _WORD.search(text, place, stop)
    return found.start() if found else stop


def _states(words: str, language: Language | None, *, to_friend: bool, brief: bool) -> bool:
    if not SHORTEST <= _count(words) <= MOST_WORDS:
        return False
    if language is None:
        return to_friend or bool(_NAME.search(words)) or any(letter.isdigit() for letter in words)
    patterns = language.patterns
    if patterns["no_statement"].match(words) or patterns["unmeant"].search(words):
        return False
    if to_friend:
        return True
    own = patterns["of_speaker"].search(words) is not None
    own = own or (brief and bool(patterns["of_life"].search(words)))
    return own and not patterns["request"].search(words)


def _count(words: str) -> int:
    """Return how many words there are, about: what is written without blanks has two letters a word."""
    return len(words.split()) + len(_UNPARTED.findall(words)) // 2


def _worth(words: str, language: Language | None) -> float:
    total = sum(WEIGHTS[name] * amount for name, amount in features(words, language))
    return 1 / (1 + math.exp(-total))


def features(words: str, language: Language | None) -> Iterator[tuple[str, float]]:
    """Return what is to be seen in a sentence, and how much of it."""
    count, stems = _count(words), len(terms(words))
    yield "always", 1.0
    yield "share of words that mean something", min(1.0, stems / max(1, count))
    yield "words that mean something, of twelve", min(12, stems) / 12
    yield "words, of forty", min(40, count) / 40
    yield from (
        (name, 1.0)
        for name, there in (
            ("a name", bool(_NAME.search(words))),
            ("under five words", count < 5),
        )
        if there
    )
    if language is not None:
        if not language.patterns["of_speaker"].search(words):
            yield "of something else than the speaker", 1.0
        yield from ((name, 1.0) for name, pattern in language.signs.items() if pattern.search(words))


def _ranked(worths: Sequence[float], repeated: float) -> list[float]:
    """Return the worths of one message's sentences: what is said second adds less to what is said first."""
    order = sorted(range(len(worths)), key=lambda place: (-worths[place], place))
    result = [0.0] * len(worths)
    for rank, place in enumerate(order):
        result[place] = worths[place] * repeated**rank
    return result
