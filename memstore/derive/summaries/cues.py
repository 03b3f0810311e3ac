"""What makes a clause worth a place in a summary: its own words, and what it answers. English and German.

Sentences are cut into clauses where each says the same alone. Cues say how likely it is that an expert would tell a
clause: words that settle something, numbers, what it takes up of the turns before, and how it is answered.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby, pairwise
from math import exp

from memstore.language import (
    LETTERS,
    NUMBER,
    WORD,
    is_question,
    load_days,
    load_phrases,
    load_words,
)
from memstore.models import Role
from memstore.store.tokenize import terms

TOOL_SPEAKER = "Tool"
# Who proposes and says back; what it advises may not be what happens.
ASSISTANT_SPEAKER = Role.ASSISTANT.capitalize()

ECHO_TURNS = 6
# How likely it is that an expert would tell a decision in a clause, and a number, as logits by cue: two logistic
# regressions on 48 sessions with listed decisions and numbers (docs/reference/measurements.md). Cues without which as
# much is told are gone.
BIAS = (-1.6, -4.4)
WEIGHTS: dict[str, tuple[float, float]] = {
    "agrees": (1.0, 0.0),
    "date": (0.7, 1.2),
    "echo": (0.7, 0.4),
    "settles first": (0.6, -0.2),
    "6 stems or more": (0.5, 0.3),
    "8 to 12 words": (0.5, 0.2),
    "intends": (0.4, 0.3),
    "taken up": (0.4, -0.1),
    "before question": (0.3, 0.1),
    "closes": (0.3, 0.0),
    "chooses": (0.2, 0.6),
    "number": (-0.2, 2.4),
    "figure": (-0.2, 1.7),
    "self": (-0.4, -0.4),
    "assistant": (-0.4, -0.5),
    "is": (-0.8, -0.4),
    "start": (-1.1, 0.3),
}


# All but names are searched in lower-cased text, which takes half the time of ignoring case.
NAME = re.compile(r"(?<=[\w,;:'’)] )(?!I\b)[A-Z][\w'’-]+")
_CALENDAR = load_days("en", "de") | (load_words("months", "en", "de") - {"may"})
_DATES_AND_SUMS = _CALENDAR | load_words("currencies")
_UNITS = _DATES_AND_SUMS | load_words("units")
_WHEN = load_phrases("when", ignore_case=False)
_MATTERS = load_phrases("matters", ignore_case=False)
_FIRST_PERSON = load_phrases("first_person", ignore_case=False)
_PLEASANTRY = load_phrases("pleasantries", ignore_case=False, opens=True)
_FILLING = load_words("filling")
_SETTLES_FIRST = load_phrases("settles", ignore_case=False, opens=True)
_OPENING = load_phrases("openings", opens=True)
# All words of an agreement, and those of which it has one: "Yes! let's do that."
_AGREEING = load_words("agreeing")
_AGREES = load_phrases("agrees", ignore_case=False)
_CUES = {
    "chooses": load_phrases("choices", ignore_case=False),
    "intends": load_phrases("intentions", ignore_case=False),
    "is": load_phrases("states_of_things", ignore_case=False),
}
_SAYS_ALONE = {"filler", "echo", "number"}
_SETTLING = {"chooses", "settles first", "agrees"}


def score_sentence(sentence: str) -> float:
    """Return how much a summary should want this sentence for what it holds, from -1 to 1.

    Up for dates, numbers, names, decisions and what one says of oneself; down for questions, greetings, praise and
    sentences of fewer than five words. English and German; in other languages only numbers, names and questions count.
    """
    low, words = sentence.lower(), WORD.findall(sentence.lower())
    is_dated = not _CALENDAR.isdisjoint(words) or _WHEN.search(low) is not None
    score = 0.15 * bool(NUMBER.search(low)) + 0.2 * is_dated
    score += 0.2 * bool(_MATTERS.search(low)) + 0.15 * bool(_FIRST_PERSON.search(low))
    score += 0.1 * min(2, len(NAME.findall(sentence)))
    score -= 0.5 * is_question(low)
    score -= 0.4 * bool(_PLEASANTRY.match(low))
    score -= 0.3 * (sentence.isascii() and len(words) < 5)
    return max(-1.0, min(1.0, score))


@dataclass(eq=False)
class Clause:
    line: int  # the place of its sentence
    speaker: str
    text: str
    stems: Counter[str]
    needs: int | None  # the place of a clause without which it says nothing: what it goes on from, or answers
    cues: set[str]

    @cached_property
    def settles(self) -> bool:
        return self.speaker != ASSISTANT_SPEAKER and not _SETTLING.isdisjoint(self.cues)

    @property
    def is_empty(self) -> bool:
        """Whether it says nothing: "Oh well!"."""
        return self.needs is None and (not self.stems or "filler" in self.cues)

    @cached_property
    def values(self) -> tuple[float, float]:
        """The worth of its decision and of its number, each from 0 to 1."""
        if self.speaker == TOOL_SPEAKER or "question" in self.cues:
            return 0.0, 0.0
        weights = [WEIGHTS[cue] for cue in sorted(self.cues & WEIGHTS.keys())]
        decision, number = (sum(part) for part in zip(BIAS, *weights, strict=True))
        return max(0.0, _logistic(decision) - 0.05), 0.85 * _logistic(number)


def _logistic(value: float) -> float:
    return 1 / (1 + exp(-value))


def read_clauses(lines: Sequence[tuple[str, str]]) -> list[Clause]:
    turns = [list(turn) for _, turn in groupby(range(len(lines)), key=lambda number: lines[number][0])]
    parts = [_read_parts(*line) for line in lines]
    last_turn: dict[str, int] = {}
    for turn, numbers in enumerate(turns):
        last_turn |= {stem: turn for number in numbers for _, _, stems in parts[number] for stem in stems}
    names = terms(" ".join(sorted({speaker for speaker, _ in lines})))  # who speaks is no matter of the talk
    earlier_turn: dict[str, int] = {}  # the last turn that had a stem, until now
    clauses: list[Clause] = []
    start = 0
    asked: int | None = None
    offered: int | None = None  # a question with which the turn before ended, and what it proposed
    for turn, numbers in enumerate(turns):
        speaker = lines[numbers[0]][0]
        _mark_answered(clauses[start:], lines[numbers[0]][1].lower())
        of_turn = {"start"} if turn < 2 else set()
        if speaker == ASSISTANT_SPEAKER:
            of_turn.add("assistant")
        question: int | None = None
        proposal: int | None = None
        start, is_first = len(clauses), True
        for number in numbers:
            sentence = lines[number][1].lower()
            is_asked, is_filler = is_question(sentence), _has_only(sentence, _FILLING)
            for place, (text, alone, stems) in enumerate(parts[number]):
                low = text.lower().rstrip(" ,;")
                cues = {"question"} if is_asked else of_turn | _find_cues(low, stems)
                if stems and not is_asked:
                    said_stems = [stem for stem in stems if stem not in names]
                    echo = sum(turn - earlier_turn.get(stem, -ECHO_TURNS) < ECHO_TURNS for stem in said_stems)
                    comes_back = any(last_turn[stem] > turn for stem in said_stems)
                    cues |= {"closes"} if echo and not comes_back else set()
                    cues |= {"echo"} if echo >= 0.4 * len(stems) else set()
                cues |= {"settles first"} if not place and _SETTLES_FIRST.match(sentence) else set()
                cues |= {"filler"} if is_filler else set()
                needs = None if alone else len(clauses) - 1
                if is_first and speaker != ASSISTANT_SPEAKER and not is_asked:
                    about = question if question is not None else asked if asked is not None else offered
                    if about is not None and _AGREES.search(sentence) and _has_only(sentence, _AGREEING):
                        needs = about
                        cues.add("agrees")
                    elif asked is not None and alone and len(text.split()) < 3 and cues.isdisjoint(_SAYS_ALONE):
                        needs = asked
                clauses.append(Clause(number, speaker, text, stems, needs, cues))
                if not is_filler and not is_asked:
                    is_first = False
                    if proposal is None and speaker == ASSISTANT_SPEAKER:
                        proposal = len(clauses) - 1
            question = len(clauses) - 1 if is_asked else None
        earlier_turn.update((stem, turn) for clause in clauses[start:] for stem in clause.stems)
        asked, offered = question, proposal
    return clauses


def _read_parts(speaker: str, sentence: str) -> list[tuple[str, bool, Counter[str]]]:
    if speaker == TOOL_SPEAKER:
        return [(sentence, True, terms(sentence))]
    (first, alone), *rest = split_clauses(sentence)
    return [(text, alone, terms(text)) for text, alone in [(_without_opening(first), alone), *rest]]


def _without_opening(text: str) -> str:
    """Return a sentence without the words that only begin it: "Ok, fine, we take it." is "we take it."."""
    while opening := _OPENING.match(text):
        rest = text[opening.end() :]
        if not rest.startswith((",", ".", "!", "…")) or len(rest.split()) < 2:
            break
        text = rest.lstrip(" ,.!…")
    return text


def _find_cues(low: str, stems: Collection[str]) -> set[str]:
    cues = {name for name, pattern in _CUES.items() if pattern.search(low)}
    words = WORD.findall(low)
    cues |= {"number"} if NUMBER.search(low) else set()
    cues |= {"self"} if not {"i", "we", "ich", "wir"}.isdisjoint(words) else set()
    cues |= {"6 stems or more"} if len(stems) > 5 else set()
    cues |= {"8 to 12 words"} if 7 < len(words) < 13 else set()
    if "number" in cues:
        letters = set(LETTERS.findall(low))
        is_money = any(sign in low for sign in "€$£")
        cues |= {"date"} if is_money or not letters.isdisjoint(_DATES_AND_SUMS) else set()
        is_long = any(len(number) > 1 for number in NUMBER.findall(low))
        cues |= {"figure"} if is_long or is_money or "%" in low or not letters.isdisjoint(_UNITS) else set()
    return cues


def _mark_answered(clauses: Sequence[Clause], answer: str) -> None:
    """Mark the clauses of a turn that the next one takes up, agrees to or leaves behind."""
    stems = terms(answer)
    for clause in clauses:
        clause.cues.update({"before question"} if is_question(answer) else ())
        if clause.stems and 2 * len(stems.keys() & clause.stems.keys()) >= len(clause.stems):
            clause.cues.add("taken up")


def _has_only(text: str, words: frozenset[str]) -> bool:
    return words.issuperset(WORD.findall(text))


_CUT = re.compile(r"(?<=[,;])\s|\s(?=[–—-]+ )")
_JOINING = load_words("joining")
_WHOLE = load_phrases("reported", ignore_case=False)
_NOT = load_phrases("contrasts", ignore_case=False)


def split_clauses(sentence: str) -> list[tuple[str, bool]]:
    """Return the clauses of a sentence, and whether each can stand without the one before.

    Joined by spaces they are the sentence. A "not" or "but" stays with what it is of, and what somebody says, asks or
    does on a condition with that.
    """
    if is_question(sentence) or '"' in sentence or "“" in sentence:
        return [(sentence, True)]
    is_whole = bool(_WHOLE.search(sentence.lower()))
    cuts = [match.start() for match in _CUT.finditer(sentence)]
    clauses: list[tuple[str, bool]] = []
    start, alone = 0, True
    for cut, end in pairwise([*cuts, len(sentence)]):
        left, piece, rest = sentence[start:cut], sentence[cut:end].lower(), sentence[cut + 1 :]
        if len(left.split()) < 3 or len(rest.split()) < 2 or left.count("(") > left.count(")"):
            continue
        if _NOT.search(piece) or (is_whole and _WHOLE.search(piece)):
            continue
        clauses.append((left, alone))
        start = cut + 1
        alone = not (is_whole or _JOINING.isdisjoint(WORD.findall(piece)[:1])) and len(rest.split()) > 2
    return [*clauses, (sentence[start:], alone)]
