"""What the reader says of the tokens of a message, and the notes that follow. Pure.

Each token has logits for every label. Neighbouring tokens that are worth keeping are a note; its labels are those of
its tokens on average.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from memstore.language import compile_phrases, load_words
from memstore.language.sentences import sentences

TYPES = [
    "constraint", "instruction", "identity", "relation", "preference", "plan", "task", "decision", "event",
    "possession",
]  # fmt: skip
ATTRIBUTES = [
    "allergy", "condition", "medicine", "diet", "name", "age", "origin", "residence", "job", "employer", "language",
    "education", "family", "partner", "friend", "pet", "birthday", "phone", "email", "address", "likes", "dislikes",
    "habit", "hobby", "goal", "appointment", "trip", "purchase", "vehicle", "device", "size", "budget", "project",
    "deadline", "decision", "answer_style", "other",
]  # fmt: skip
RELATIONS = ["replaces", "ends", "same", "refines", "independent"]
# What becomes of a word in the plain sentence: "live" is inflected to "lives".
KEEP, DELETE, INFLECT = range(3)
# Labels of one logit each. `kept`: worth keeping; `begins`: a note begins here; `any`: of the first token, whether the
# message has a note; `value`: of the attribute; `subject`: names whom or what it is about; `speaker`: it is about who
# speaks; `ends`: something else no longer holds; `holds`: the value is true now, not denied or over; `leans`: it is
# understood only with what stands before it.
BINARY = ("kept", "begins", "any", "value", "subject", "speaker", "ends", "holds", "leans")
MAX_WINDOW_TOKENS, MAX_BEFORE_TOKENS = 220, 40
_EDGE = re.compile(r"[.,;:!?\n()\"“”]+(?=\s|$)|[\n\"“”(]| [-–—] ")
_WORD = r"\w+(?:['’]t\b)?|['’](?:m|re|ve|ll|d|s)\b|[^\w\s]"  # "I'm" is two
WORD = re.compile(_WORD)
NAMED_WORD = re.compile(rf"\{{NAME\}}(?:['’]?s\b)?|{_WORD}")
FIRST_PERSON = compile_phrases(
    "I, i, im, ive, me, my, mine, myself, we, us, our, ours, ich, mich, mir, mein*, wir, uns, unser*", ignore_case=False
)
_MANGLED_VERB = re.compile(
    r"\{NAME\} (?:no longer|never|always|also|still|often|only|really) (?!can|could|must|may|will|would|had|was)"
    r"[a-z]+(?<!s)(?<!ed)\b"
    r"|\b(?:(?:does|did|wo|ca)(?:n['’]t| not)|cannot|will|must|should) (?!always|this|has\b)[a-z]+[^s\W]s\b"
)

Logits = Mapping[str, NDArray[Any]]
Places = Sequence[tuple[int, int]]


class ReaderInput(NamedTuple):
    """A message, what was said just before it, and whether it is said to a friend and not to an assistant."""

    before: str
    text: str
    to_friend: bool = False


class Pair(NamedTuple):
    """A statement, and a later one by the same person or about the same people."""

    earlier: str
    later: str


class Stretch(NamedTuple):
    start: int
    stop: int


@dataclass(frozen=True, slots=True)
class Note:
    """Words of a message that are worth keeping, with what they say.

    `score` is the mean logit of its tokens, and `gate` that of its message having any note. `confidence` is the
    probability that follows. `values` and `subject` are places in the message, `subject` None for who speaks.
    `sentence` says it in plain words, with {NAME} for who speaks.
    """

    start: int
    stop: int
    score: float
    gate: float
    type: str
    attribute: str
    values: tuple[Stretch, ...]
    subject: Stretch | None
    of_speaker: bool
    ends: bool
    holds: bool = True
    leans: bool = False
    sentence: str | None = None
    confidence: float = 0.0
    attribute_share: float = 0.0

    @property
    def value(self) -> Stretch | None:
        return max(self.values, key=lambda each: each.stop - each.start, default=None)


def sizes(phrases: Sequence[str]) -> dict[str, int]:
    several = {"type": len(TYPES), "attribute": len(ATTRIBUTES), "edit": 3, "phrase": len(phrases) + 1}
    return {**dict.fromkeys(BINARY, 1), **several}


def probability(score: float, gate: float, line: Sequence[float]) -> float:
    """Return the probability, to two digits, that a note is worth keeping; `line` are the weights of both, and of 1."""
    return round(float(sigmoid(line[0] * score + line[1] * gate + line[2])), 2)


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def stretches(kept: NDArray[Any], begins: NDArray[Any]) -> Iterator[tuple[int, int]]:
    """Return the first and last token of each stretch that is worth keeping; without any, of those that hardly are."""
    likely = np.flatnonzero(kept >= 0.25)
    first = last = -1
    for token in (likely if likely.size else np.flatnonzero(kept >= 0.1)).tolist():
        if first >= 0 and (token - last > 5 or begins[token] >= 0.5):
            yield first, last
            first = -1
        first, last = (token if first < 0 else first), token
    if first >= 0:
        yield first, last


def notes_of(text: str, places: Places, logits: Logits, phrases: Sequence[str]) -> Iterator[Note]:
    """Return the notes of a window; `places` are the characters of its tokens, `logits` has a row for each of them."""
    kept, begins = logits["kept"][:, 0], sigmoid(logits["begins"][:, 0])
    gate = float(logits["any"][0])
    for first, last in stretches(sigmoid(kept), begins):
        rows = slice(first, last + 1)
        start, stop = _whole_words(text, places[first][0], places[last][1])
        start, stop = _whole_clauses(text, start, stop)
        if len(text[start:stop].split()) < 2:
            continue
        mean = {name: each[rows].mean(axis=0) for name, each in logits.items() if name not in ("any", "edit", "phrase")}
        of_speaker = bool(mean["speaker"][0] >= 0)
        shares = np.exp(_log_softmax(mean["attribute"]))
        subjects = () if of_speaker else _marked(text, places, logits["subject"][:, 0], first, last)
        yield Note(
            start,
            stop,
            float(mean["kept"][0]),
            gate,
            TYPES[int(mean["type"].argmax())],
            ATTRIBUTES[int(mean["attribute"].argmax())],
            _marked(text, places, logits["value"][:, 0], first, last),
            max(subjects, key=lambda each: each.stop - each.start, default=None),
            of_speaker,
            bool(mean["ends"][0] >= 0),
            bool(mean["holds"][0] >= 0),
            bool(mean["leans"][0] >= 0),
            _sentence(text[start:stop], start, places, logits["edit"], logits["phrase"], phrases),
            attribute_share=round(float(shares.max()), 2),
        )


def _whole_words(text: str, start: int, stop: int) -> tuple[int, int]:
    while start and text[start - 1].isalnum() and text[start].isalnum():
        start -= 1
    while stop < len(text) and text[stop].isalnum() and text[stop - 1].isalnum():
        stop += 1
    return start, stop


def _whole_clauses(text: str, start: int, stop: int) -> tuple[int, int]:
    """Return a stretch with the few words that its clauses lack, without signs and conjunctions at its ends."""
    start, stop = _without_edges(text, start, stop)
    near = max(0, start - 60), min(len(text), stop + 60)
    begin = max((edge.end() for edge in _EDGE.finditer(text, near[0], start)), default=start if near[0] else 0)
    edge = _EDGE.search(text, stop, near[1])
    end = edge.start() if edge else stop if near[1] < len(text) else len(text)
    start = begin if len(text[begin:start].split()) <= 2 else start
    stop = end if len(text[stop:end].split()) <= 4 else stop
    return _without_edges(text, start, stop)


def _without_edges(text: str, start: int, stop: int) -> tuple[int, int]:
    words = text[start:stop]
    begin = re.match(r"(?:[\s,;:.!?)\-–]|(?i:and|but|so|und|aber)\b)+", words)
    dangling = r"(?<![\s,;:(\-–])(?:[\s,;:(\-–]|\b(?i:and|but|so|und|aber|because|weil|for|the|a|to|with))+$"
    end = re.search(dangling, words)
    return start + begin.end() if begin else start, start + end.start() if end else stop


def _marked(text: str, places: Places, logits: NDArray[Any], first: int, last: int) -> tuple[Stretch, ...]:
    runs = groupby(range(first, last + 1), key=lambda token: bool(logits[token] >= 0))
    marked = [[*tokens] for is_marked, tokens in runs if is_marked]
    return tuple(Stretch(*_whole_words(text, places[run[0]][0], places[run[-1]][1])) for run in marked)


def _sentence(
    quote: str, begin: int, places: Places, edits: NDArray[Any], before: NDArray[Any], phrases: Sequence[str]
) -> str | None:
    """Return a quote in plain words, None where one of its edits is not sure."""
    if len(sentences(quote)) > 1 or '"' in quote:  # who quotes is quoted
        return None
    edits, before = _log_softmax(edits), _log_softmax(before)
    parts: list[str] = []
    doubt, token = 0.0, 0
    names = 1  # of the speaker, in the sentence
    for match in WORD.finditer(quote):
        while token < len(places) and places[token][1] <= begin + match.start():
            token += 1
        if token == len(places):
            break
        edit, phrase = int(edits[token].argmax()), int(before[token].argmax())
        doubt = min(doubt, float(edits[token, edit]), float(before[token, phrase]))
        spaced = match.start() == 0 or quote[match.start() - 1].isspace()
        opens = match.start() == 0 and edit != DELETE and match[0][0].isupper()
        if opens and phrase and phrases[phrase - 1].endswith(("{NAME}'s", "{NAME}’s", "{NAME}s")):
            phrase, names = 0, 0  # a name is nobody's
        if phrase:
            parts.append(f" {phrases[phrase - 1]}")
            spaced = True
        if edit != DELETE:
            word = match[0] if edit == KEEP else inflected(match[0])
            spaced = spaced or (edit == INFLECT and match[0][0] in "'’")
            parts.append(f" {word}" if spaced and (word.isalnum() or len(word) > 1 or word in "(€$£") else word)
    text = "".join(parts).strip(" ,;:-–.")
    # Inflected twice.
    text = re.sub(r"\b(does(?:n't| not)|can(?:'t|not)?|must|should|will) has\b", r"\1 have", text)
    if doubt < np.log(0.6) or text.count("{NAME}") != names or FIRST_PERSON.search(text) or text.endswith("{NAME}"):
        return None
    has_two_articles = re.search(r"\{NAME\}['’]?s (?i:the|an?|my|der|die|das|ein|eine)\b", text)
    if has_two_articles or _MANGLED_VERB.search(text):
        return None
    return f"{text[0].upper()}{text[1:]}."


def _log_softmax(logits: NDArray[Any]) -> Any:
    shifted = logits - logits.max(axis=-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))


_IRREGULAR = {
    "i": "i",
    "am": "is", "'m": "is", "'re": "is", "'ve": "has", "'ll": "will", "are": "is",
    "have": "has", "do": "does", "don't": "doesn't",
    "dont": "doesn't", "haven't": "hasn't", "havent": "hasn't", "aren't": "isn't", "were": "was", "go": "goes",
    "bin": "ist", "habe": "hat", "hab": "hat", "werde": "wird", "kann": "kann", "muss": "muss", "darf": "darf",
    "nehme": "nimmt", "esse": "isst", "fahre": "fährt", "lese": "liest", "spreche": "spricht", "gebe": "gibt",
    "sehe": "sieht", "schlafe": "schläft", "trage": "trägt", "treffe": "trifft", "helfe": "hilft", "lasse": "lässt",
    "vertrage": "verträgt", "mag": "mag", "will": "will", "soll": "soll", "weiß": "weiß",
}  # fmt: skip


def inflected(word: str) -> str:
    word = word.casefold().replace("’", "'")
    if word in _IRREGULAR:
        return _IRREGULAR[word]
    if re.search(r"(?:s|x|z|ch|sh)$", word):
        return f"{word}es"
    if re.search(r"[^aeiou]y$", word):
        return f"{word[:-1]}ies"
    return f"{word[:-1]}t" if word.endswith("e") and word in load_words("verbs_of_e") else f"{word}s"
