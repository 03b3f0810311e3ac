"""What makes a clause worth a place in a summary: its own words, and what it answers. English and German.

Sentences are cut into clauses where each says the same alone. Cues say how likely it is that an expert would tell a
clause: words that settle something, numbers, and what it takes up of the turns before.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from math import exp

from memstore.language import (
    NUMBER,
    WORD,
    compile_phrases,
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

# How likely it is that an expert would tell a decision in a clause, and a number: two logistic regressions on 48
# sessions with listed decisions and numbers (docs/reference/measurements.md), as logits by cue.
WEIGHTS: dict[str, tuple[float, float]] = {
    "recap": (1.2, 0.6),
    "agrees": (1.0, 0.0),
    "stays": (0.9, 0.2),
    "date": (0.7, 1.2),
    "echo": (0.7, 0.4),
    "number again": (0.6, 0.3),
    "thirteen words": (0.6, -0.1),
    "said first": (0.6, -0.2),
    "six stems": (0.5, 0.3),
    "eight words": (0.5, 0.2),
    "intends": (0.4, 0.3),
    "short echo": (0.4, 0.3),
    "concludes": (0.4, -0.3),
    "closes": (0.3, 0.0),
    "chooses": (0.2, 0.6),
    "long number": (-0.1, 0.5),
    "number": (-0.2, 2.4),
    "figure": (-0.2, 1.7),
    "one stem": (-0.3, -0.4),
    "others": (-0.4, -0.3),
    "self": (-0.4, -0.4),
    "assistant": (-0.4, -0.5),
    "later part": (-0.5, 0.2),
    "new": (-0.7, -0.2),
    "is": (-0.8, -0.4),
}


def _any(*words: str) -> re.Pattern[str]:
    return re.compile(rf"\b(?:{'|'.join(words)})\b")


def _phrases(text: str) -> re.Pattern[str]:
    return compile_phrases(text, ignore_case=False)


# All but names are searched in lower-cased text, which takes half the time of ignoring case.
NAME = re.compile(r"(?<=[\w,;:'’)] )(?!I\b)[A-Z][\w'’-]+")
_MONTH = f"(?:{'|'.join(sorted({name[:3] for name in load_words('months', 'en', 'de')}))})"
_DATE_OR_MONEY = re.compile(
    r"[€$£]\s?\d|\d\s?(?:[€$£]|(?:euros?|dollars?|pounds?)\b)"
    rf"|\b\d{{1,2}}(?:st|nd|rd|th)?\.? (?:of )?{_MONTH}|\b{_MONTH}\w* \d"
)
_FIGURE = re.compile(
    rf"{_DATE_OR_MONEY.pattern}|\d\s?(?:[%°]|(?:per ?cent|prozent|[ck]?m²?|mm|mg|k?g|grams?|gramm|[gm]b|ml|k|square"
    r"|times|hours?|minutes?|min|days?|weeks?|months?|years?|a (?:year|month|week|day|term)|pm|am|stunden?|minuten?"
    r"|tage|wochen?|monate?|jahre?|uhr)\b)|\d[.,:]\d|\b\d{1,2}(?:st|nd|rd|th)\b|\b\d{1,2}\. ?[a-zäöü]"
    r"|\b\d{2,}\b"
)
_CALENDAR = load_days("en", "de") | (load_words("months", "en", "de") - {"may"})
# A choice, and what follows from one.
_ACTS, _DOES = (f"(?:{'|'.join(sorted(load_words('acts', code)))})" for code in ("en", "de"))
_DOES += r"\w{0,3}"
_CHOOSES = _any(
    rf"(?:i|we)(?:['’](?:ll|d|m|re)| will| would| am| are)?(?: rather| just| also| only| now| then)? {_ACTS}",
    rf"i['’]?ll|we['’]?ll|let['’]?s|(?:ich|wir) (?:{_DOES}|will|wollen|werde\w*)|{_DOES} (?:ich|wir|das|den|die|es)",
)
_SAID_FIRST = re.compile(
    r"^\W*(?:yes|yeah|yep|ok(?:ay)?|fine|agree\w*|deal|doing that|done|exactly|perfect|ja|genau|gut|einverstanden|passt"
    r"|stimmt)\b|^\W*(?:(?:right|good|hm+|true|well|na|puh|ok|gut)\b\W*)*(?:so|then|also|dann|heißt)\b"
    r"|^\W*(?:ok(?:ay)? |so )*(?:no (?!idea|problem|worries|doubt)[\w-]+|keine? )"
)
# An assistant's turn that says back what was settled has a sentence that begins so.
_RECAP = re.compile(
    r"^\W*(?:noted|understood|so:|so (?:you|we|that)|to (?:sum up|recap)|in short|in summary|summary|recap|agreed"
    r"|settled|decided|for the (?:minutes|record)|then:|also:|also (?!\w+ (?:wollt|will))|dann (?:also|halte)|notiert"
    r"|verstanden|zusammengefasst|zusammenfassung|ich halte fest|festgehalten|protokoll|fazit|abgemacht)(?!\w)"
)
_UNSURE = _any(
    r"if|unless|would|(?:i|we)['’]d|could|should|may|might|maybe|perhaps|probably|guess|suppose|th(?:ink|ought)|believe|hope|wish|was",
    r"were|had|did|\w{2,}ed|wenn|falls|würd\w*|könnt\w*|wär\w*|hätt\w*|sollt\w*|vielleicht|wohl|glaub\w*|war\w*",
)
_CUES = {
    "figure": _phrases("twice *, zweimal *, dreimal *, three times *"),
    "stays": load_phrases("stays", ignore_case=False),
    "concludes": re.compile(
        r"^\W*(?:(?:ok(?:ay)?|right|good|fine|well|yes|ja|gut|na|and|und|but|aber)\b\W*)*(?:so|then|also|dann|heißt)\b"
        r"|[, ](?:then|so|dann|also)\b[.!]*$|\bthen\b|, (?:so|also|dann)\b"
    ),
    "intends": _any(
        r"(?:i|we|he|she|they|you)(?:['’]ll| will| can| am to|['’]m to)",
        r"will (?:be|do|put|take|make|come|write|ask|send|pay|call)",
        r"(?:i|we) (?:need|must)|needs? to|must|due|deadline|appointment|muss|müssen|soll|frist|termin",
        rf"{_DOES} (?:ich|wir)|(?:ich|wir) {_DOES}",
    ),
    "is": _phrases("is, are, it's, that's, was, were, there's, has, have, ist, sind, war, waren, hat, haben"),
    "others": _phrases(
        "he, she, they, his, her, my sister, my brother, my mother, my mum, my dad, my father, my wife, my husband"
        ", my son, my daughter, my neighbour, my boss, er, sie, mein* bruder, mein* schwester, mein* mutter, mein* mann"
        ", mein* frau, mein* sohn, mein* tochter, mein* nachbar*, mein* chef"
    ),
}


def score_sentence(sentence: str) -> float:
    """Return how much a summary should want this sentence for what it holds, from -1 to 1.

    Up for days, numbers, names and what one says of oneself; down for questions, greetings, praise and sentences of
    fewer than five words. English and German; in other languages only numbers, names and questions count.
    """
    low, words = sentence.lower(), WORD.findall(sentence.lower())
    score = 0.15 * bool(NUMBER.search(low)) + 0.2 * (not _CALENDAR.isdisjoint(words))
    score += 0.15 * bool(_phrases("i, my, we, our, ich, mein*, wir, unser*").search(low))
    score += 0.1 * min(2, len(NAME.findall(sentence)))
    score -= 0.5 * is_question(low)
    score -= 0.4 * bool(load_phrases("pleasantries", ignore_case=False, opens=True).match(low))
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
        decision, number = (sum(part) for part in zip((-1.6, -4.4), *weights, strict=True))
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
    counts = Counter(number for _, sentence in lines for number in NUMBER.findall(sentence))
    earlier_turn: dict[str, int] = {}  # the last turn that had a stem, until now
    clauses: list[Clause] = []
    start = 0
    asked: int | None = None
    offered: int | None = None  # a question with which the turn before ended, and what it proposed
    for turn, numbers in enumerate(turns):
        speaker = lines[numbers[0]][0]
        of_turn = {"assistant"} if speaker == ASSISTANT_SPEAKER else set[str]()
        if of_turn and any(_RECAP.match(lines[number][1].lower()) for number in numbers):
            of_turn.add("recap")
        question: int | None = None
        proposal: int | None = None
        start, is_first = len(clauses), True
        for number in numbers:
            sentence = lines[number][1].lower()
            is_asked, is_filler = is_question(sentence), _has_only(sentence, load_words("filling"))
            for place, (text, alone, stems) in enumerate(parts[number]):
                low = text.lower().rstrip(" ,;")
                cues = {"question"} if is_asked else of_turn | _find_cues(text, low, counts, stems)
                if stems and not is_asked:
                    said_stems = [stem for stem in stems if stem not in names]
                    echo = sum(turn - earlier_turn.get(stem, -6) < 6 for stem in said_stems)
                    comes_back = any(last_turn[stem] > turn for stem in said_stems)
                    cues |= _find_echo(echo / len(stems), len(WORD.findall(text)), comes_back)
                cues |= {"said first"} if not place and _SAID_FIRST.match(sentence) else set()
                cues |= {"later part"} if place else set()
                cues |= {"filler"} if is_filler else set()
                needs = None if alone else len(clauses) - 1
                if is_first and speaker != ASSISTANT_SPEAKER and not is_asked:
                    about = question if question is not None else asked if asked is not None else offered
                    agreeing = load_words("agreeing") | {"+1", "👍"}
                    says_alone = not cues.isdisjoint(("filler", "echo", "short echo", "number"))
                    if about is not None and _agrees(sentence) and _has_only(sentence, agreeing):
                        needs = about
                        cues.add("agrees")
                    elif asked is not None and alone and len(text.split()) < 3 and not says_alone:
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
    return [(text, alone, terms(text)) for text, alone in split_clauses(sentence)]


def _find_cues(text: str, low: str, counts: Mapping[str, int], stems: Collection[str]) -> set[str]:
    cues = {name for name, pattern in _CUES.items() if pattern.search(low)}
    words = set(WORD.findall(low))
    cues |= {"number"} if NUMBER.search(low) else set()
    cues |= {"self"} if not words.isdisjoint(("i", "we", "ich", "wir")) else set()
    cues |= {"chooses"} if _CHOOSES.search(low) and not _UNSURE.search(low) else set()
    cues |= {"one stem"} if len(stems) < 2 else {"six stems"} if len(stems) > 5 else set()
    count = len(WORD.findall(text))
    cues |= {"thirteen words"} if count > 12 else {"eight words"} if count > 7 else set()
    # Few have one.
    if "number" in cues:
        numbers = NUMBER.findall(low)
        cues |= {"date"} if _DATE_OR_MONEY.search(low) else set()
        cues |= {"figure"} if _FIGURE.search(low) else set()
        cues |= {"long number"} if any(len(number) > 2 for number in numbers) else set()
        cues |= {"number again"} if any(counts[number] > 1 for number in numbers) else set()
    return cues


def _find_echo(share: float, count: int, comes_back: bool) -> set[str]:
    cues = set() if comes_back else {"closes"} if share else {"new"}
    cues |= {"echo"} if share >= 0.4 else set()
    cues |= {"short echo"} if share and count < 7 else set()
    return cues


def _has_only(text: str, words: Collection[str]) -> bool:
    return all(word in words or re.fullmatch(r"hm+|(?:ha)+", word) for word in _spoken(text))


def _spoken(text: str) -> list[str]:
    return re.findall(r"\+1|👍|[^\W_]+", text)


def _agrees(text: str) -> bool:
    words = _spoken(text)
    has_sign = words == ["that"] or "+1" in words or "👍" in words
    return has_sign or load_phrases("agrees", ignore_case=False).search(text) is not None


_CUT = re.compile(
    r"(?<=[,;])\s(?=(?P<joined>(?:and|so|then|because|which|und|also|dann|da|denn|weil|i|we|they|he|she|it|there|you"
    r"|ich|wir|sie|er|es)\b)?)|\s(?=[–—-]+ )"
    r"|\s(?=(?:(?:and|und) (?:i|we|they|he|she|it|you|there|ich|wir|es)(?:['’]\w+)?|because|cos|weil) \w)",
    re.IGNORECASE,
)
_WHOLE = _phrases(
    "if, unless, whether, when, said, says, say, think, thinks, thought, told, wenn, falls, ob, dass, meint, sagt"
    ", sagte, glaubt"
)
_NOT = _phrases("no, not, never, none, cannot, *n't, dont, but, nicht, kein*, nie, aber, sondern")


def split_clauses(sentence: str) -> list[tuple[str, bool]]:
    """Return the clauses of a sentence, and whether each can stand without the one before.

    Joined by spaces they are the sentence. A "not" or "but" stays with what it is of, and what somebody says, asks or
    does on a condition with that.
    """
    if is_question(sentence) or '"' in sentence or "“" in sentence:
        return [(sentence, True)]
    is_whole = bool(_WHOLE.search(sentence.lower()))
    cuts = list(_CUT.finditer(sentence))
    ends = [*(cut.start() for cut in cuts), len(sentence)][1:]
    clauses: list[tuple[str, bool]] = []
    start, alone = 0, True
    for cut, end in zip(cuts, ends, strict=True):
        left, piece, rest = sentence[start : cut.start()], sentence[cut.end() : end].lower(), sentence[cut.end() :]
        if len(left.split()) < 3 or len(rest.split()) < 2 or left.count("(") > left.count(")"):
            continue
        if _phrases("because, cos, weil, denn").match(piece):
            if _NOT.search(left.lower()):
                continue
        elif (is_whole and _WHOLE.search(piece)) or _NOT.search(piece):
            continue
        clauses.append((left, alone))
        start, alone = cut.end(), bool(cut["joined"]) and not is_whole and len(rest.split()) > 2
    return [*clauses, (sentence[start:], alone)]
