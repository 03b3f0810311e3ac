"""What a message asserts in its author's own words: its sentences, and those worth keeping as they were said.

Left out is code, quoted text, "translate this: …" with what follows, and a part that somebody plays ("act as if I
were …"). Every character that stays keeps its place.

A logistic sum of features says what a sentence is worth as a fact, from 0 to 1. The weights were fitted on
LoCoMo's dev half (does a gold fact say the same?) and rounded (docs/reference/measurements.md). Nothing is
rewritten: a sentence that begins with "it" or "they" takes the one before it, or is left out.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import NamedTuple

from memstore.derive.chunking import sentences
from memstore.derive.rules.pack import Language
from memstore.store.tokenize import terms

MOST_SENTENCES = 1000  # of a message; longer ones are pastes, and their ends are not read
MAX_SENTENCE_LENGTH = 600  # characters of a sentence; longer ones are pastes, not statements
_SIGNS = {ord(sign): "'" for sign in "’‘ʼ`´"}
_UNSAID = re.compile(
    r"```.*?(?:```|\Z)|~~~.*?(?:~~~|\Z)|`[^`\n]{1,200}`|^[ \t]{0,3}>[^\n]*|\[[^\[\]\n]{0,400}\]|https?://\S+",
    re.DOTALL | re.MULTILINE,
)
_QUOTED = re.compile(r"[\"“”„«]((?:[^\"“”„«»\n]|\n(?!\s*\n)){0,500})[\"“”»]")
# What somebody else wrote, as programs mark it: a mail behind its header, a letter behind its greeting, a transcript.
_GREETINGS = (
    "Dear|Hi|Hello|Hey|Hallo|Liebe[rs]?|Lieber|Sehr geehrte[rs]?|Cher|Chère|Bonjour|Hola|Estimad[oa]"  # of a letter
)
_HEADERS = "From|To|Subject|Sent|Von|An|Betreff|De|Para|Asunto|Objet"
_PASTED = re.compile(
    r"^[^\n]{0,120}\b(?:wrote|schrieb|a écrit|escribió) ?:\s"
    rf"|^(?:{_HEADERS}): [^\n]*\n"
    r"|^-{2,} ?(?:Original|Forwarded|Ursprüngliche|Weitergeleitete)\b[^\n]*"
    rf"|(?<=\n)(?:{_GREETINGS})\b[^\n.?!]{{0,60}}[,!]?[ \t]*\n"
    r"|^(?:User|Assistant|Human|AI|Bot|System|ChatGPT) ?: ",
    re.MULTILINE,
)
# In single quotation marks, which are apostrophes too.
_SINGLE = re.compile(
    r"(?<![\w'])'(?!(?:cause|cuz|em|til|tis|twas|bout|n|s|d)\b)(?=[^\s'])((?:[^'\n]|'(?=\w)){1,300}?[.!?,]?)'(?![\w'])",
    re.IGNORECASE,
)
_GAP = re.compile(r"\s{6,}")
_NICKNAME = re.compile(r"\S+(?: \S+)?")  # in quotation marks no speech: call me "Sam"
_ITEM = re.compile(r"(?<=[:\w,;)])[ \t]*\n\s{0,9}(?:[-*•]|\d{1,2}[.)])[ \t]+")
_ASKS = re.compile(r"(?<!\bok)(?<!\bokay)[?？][\"')»”\s]*$")  # "…, ok?" asks for nothing
_NOT_PROSE = re.compile(r"[\\{}<>|]|==|\w_\w|\w\(\w*\)|^\s*(?:import|from|def|class|return) \w")


class Sentence(NamedTuple):
    """The characters of a message that are one sentence; `asks` if its last clause does."""

    start: int
    stop: int
    asks: bool


@dataclass(frozen=True)
class Utterance:
    """A message as the rules read it; `speaker` is the subject of its facts, None for "The user"."""

    text: str
    role: str
    speaker: str | None
    occurred_at: datetime

    @property
    def subject(self) -> str:
        """Whom the speaker's facts are about."""
        return self.speaker or "The user"

    @cached_property
    def clean_text(self) -> str:
        """The text with blanks for what its author does not say, every character in its place."""
        text = _UNSAID.sub(_blank, self.text).translate(_SIGNS)
        if pasted := _PASTED.search(text):
            text = text[: pasted.start()].ljust(len(text))
        for quoted in (_QUOTED, _SINGLE):
            text = quoted.sub(lambda found: f" {found[1]} " if _NICKNAME.fullmatch(found[1]) else _blank(found), text)
        return _ITEM.sub(
            lambda found: ("," if found.string[found.start() - 1] not in ":,;" else " ").ljust(len(found[0])), text
        )

    def asserted(self, language: Language | None) -> list[Sentence]:
        """Return the sentences that are read; of a language without a file nobody knows which are not meant."""
        text = self.clean_text
        if language is not None:
            text = _without_text_to_work_on(text, language)
        found = [
            Sentence(start, stop, _ASKS.search(text, max(start, stop - 20), stop) is not None)
            for start, stop in sentences(text)[:MOST_SENTENCES]
            if stop - start <= MAX_SENTENCE_LENGTH and not _NOT_PROSE.search(text, start, stop)
        ]
        if language is None:
            return found
        asks_for_text = language.patterns["asks_for_text"]
        found = [one for one in found if not asks_for_text.search(text, one.start, one.stop)]
        taken_back = language.patterns["taken_back"]
        return [
            one
            for place, one in enumerate(found)
            if not (place + 1 < len(found) and taken_back.match(text, found[place + 1].start, found[place + 1].stop))
        ]


def _without_text_to_work_on(text: str, language: Language) -> str:
    """Blank what is to be translated or mended, and all after a part that is played.

    A text that begins on a line of its own goes on to the end of the message, as letters have paragraphs.
    """
    part = language.patterns["plays_a_part"].search(text)
    text = text[: part.start()].ljust(len(text)) if part else text
    for found in language.patterns["text_to_work_on"].finditer(text):
        quoted = _GAP.match(text, found.end())  # where it was quoted, what stands behind that is the author's again
        own_line = text.find("\n", found.end()) == found.end()
        end = quoted.end() if quoted else -1 if own_line else text.find("\n\n", found.end())
        end = end if end >= 0 else len(text)
        text = f"{text[: found.start()]}{' ' * (end - found.start())}{text[end:]}"
    return text


def clauses_of(text: str, start: int, stop: int, language: Language) -> Iterator[tuple[int, int]]:
    """Return the clauses of a stretch of text that have a subject of their own, with what hangs on them."""
    begin = start
    for gap in language.patterns["gap"].finditer(text, start, stop):
        short = len(text[begin : gap.start()].split()) < 3  # "Tom and I", "Well, it …"
        hangs = language.patterns["hangs_on"].search(gap[0])  # "since I was nine"
        if not short and not hangs and language.patterns["opens"].match(text, gap.end(), stop):
            yield begin, gap.start()
            begin = gap.end()
    if begin < stop:
        yield begin, stop


def in_quotes(words: str) -> str:
    """Return words on one line without double quotation marks, which would end those that are put around them."""
    return " ".join(words.replace('"', "'").split())


def _blank(found: re.Match[str]) -> str:
    return re.sub(r"[^\n]", " ", found[0])


THRESHOLD = 0.168
REPEATED = 0.4  # worth of a message's second-best sentence, as a share of the best one's, and so on
# To an assistant people speak of themselves seldom and shortly: mostly only requests are not worth keeping.
TO_ASSISTANT = 3.5  # times the worth
# Times that, for words with a sign of what lasts, and with one of what is so today alone.
LASTING = {(True, False): 1.5, (True, True): 0.25, (False, False): 0.25, (False, True): 0.05}
REPEATED_TO_ASSISTANT = 0.9
BRIEF = 80  # words of a message; in what is longer a sentence without "I" and "my" may be from anywhere
SHORTEST, MOST_WORDS = 3, 60  # words
MAX_WHOLE = 12  # words up to which a sentence is kept whole; of a longer one its clauses
MAX_WHOLE_TO_ASSISTANT = 40
SHORT_SENTENCE = 5  # words, below which a sentence may take the one before it
MOST_JOINED = 24  # words of a sentence with the one before it
SAME_SENTENCE = 0.8  # share of stems that two sentences of one message have in common when they say the same
LOOKED_BACK = 50  # sentences, so that the time of a long message grows with its length only

# The weight of each sign; those that depend on the language stand in its file under the same names.
WORTH_WEIGHTS: Mapping[str, float] = {
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
    "its subject stands before": -0.7,
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
_FIRST = re.compile(r"[@#$€£]?\w")  # "@writer", "$20": a mark that belongs to a quotation's first word


def type_of(words: str, types: Mapping[str, re.Pattern[str]]) -> str | None:
    """Return the type of one's own that has one of these words; `types` are patterns of words by name."""
    return next((name for name, pattern in types.items() if pattern.search(words)), None)


class Quotation(NamedTuple):
    """The characters `start` to `stop` of a message, and their worth."""

    start: int
    stop: int
    worth: float


def quotations(
    utterance: Utterance,
    sentences: Sequence[Sentence],
    language: Language | None,
    *,
    to_friend: bool,
    types: Mapping[str, re.Pattern[str]],
) -> list[Quotation]:
    """Return the sentences of a message with what each is worth; `to_friend`: it is said to no assistant.

    A sentence with a word of an own type that asks for nothing is worth most, whatever its subject.
    """
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
                if asked or _states(words, language, types, to_friend=to_friend, brief=brief):
                    break
            else:
                continue
            mine = set(terms(words))
            alike = any(
                len(mine & other) >= SAME_SENTENCE * max(1, len(mine | other)) for other in stems[-LOOKED_BACK:]
            )
            stems.append(mine)
            if alike:
                continue
            if found and found[-1].stop > begin:
                found.pop()
            found.append(Quotation(begin, stop, _worth(words, language, to_friend=to_friend)))
        last = sentence
    repeated = REPEATED if to_friend else REPEATED_TO_ASSISTANT
    worths = _rank([one.worth for one in found], repeated)
    return [
        one._replace(worth=1.0 if type_of(utterance.clean_text[one.start : one.stop], types) else worth)
        for one, worth in zip(found, worths, strict=True)
    ]


def _begins(text: str, start: int, stop: int, last: Sentence | None, language: Language) -> list[int]:
    """Return where words may begin: with the sentence that they lean on, or alone if they can be understood so."""
    leans = language.patterns["leans"].match(text, start, stop) is not None
    few = SHORTEST <= len(text[start:stop].split()) < SHORT_SENTENCE and not _asks_for(text[start:stop], language)
    joins = (leans or few) and last and not last.asks and len(text[last.start : stop].split()) <= MOST_JOINED
    alone = [] if leans else [start]
    if not (last and joins):
        return alone
    before = _begin(text, last.start, last.stop, language)
    return [before, *alone] if len(text[before : last.stop].split()) < SHORT_SENTENCE else [*alone, before]


def _pieces(
    text: str, sentence: Sentence, language: Language | None, *, to_friend: bool
) -> Iterator[tuple[int, int, bool]]:
    """Return a sentence whole, or its clauses where it is long or asks; and whether one leans on what is asked."""
    start, stop = _begin(text, sentence.start, sentence.stop, language), sentence.stop
    asks_for = language is not None and not to_friend and _asks_for(text[start:stop], language)
    most = MAX_WHOLE if to_friend else MAX_WHOLE_TO_ASSISTANT
    if language is None or not (sentence.asks or asks_for or len(text[start:stop].split()) > most):
        if not sentence.asks:
            yield start, stop, False
        return
    clauses = list(clauses_of(text, start, stop, language))
    for first, last in clauses[:-1] if sentence.asks else clauses:
        leans = first > start and not to_friend and language.patterns["leans_on"].search(text, first, last) is not None
        if first > start and asks_for and language.patterns["leans"].match(text, first, last):
            continue  # on what is asked
        leans = leans and len(text[start:last].split()) <= MOST_JOINED
        asked = bool(leans and asks_for and not _asks_for(text[first:last], language))
        asked = asked and language.patterns["of_speaker"].search(text, start, first) is not None
        first = start if leans and (asked or not asks_for) else first
        yield _begin(text, first, last, language), last, asked


def _asks_for(words: str, language: Language) -> bool:
    """Whether words ask for something now; a lasting wish is a statement."""
    patterns = language.patterns
    asks = patterns["request"].search(words) or patterns["no_statement"].match(words)
    return asks is not None and patterns["wish"].search(words) is None


def _begin(text: str, place: int, stop: int, language: Language | None) -> int:
    """Return where words begin behind what only leads into them."""
    if language:
        found = language.patterns["greets"].match(text, place, stop)
        place = found.end() if found else place
    found = _FIRST.search(text, place, stop)
    return found.start() if found else stop


def _states(
    words: str, language: Language | None, types: Mapping[str, re.Pattern[str]], *, to_friend: bool, brief: bool
) -> bool:
    if not SHORTEST <= _count(words) <= MOST_WORDS:
        return False
    if type_of(words, types):
        return language is None or not _asks_for(words, language)
    if language is None:
        return to_friend or bool(_NAME.search(words)) or any(letter.isdigit() for letter in words)
    patterns = language.patterns
    if to_friend:
        return patterns["no_statement"].match(words) is None
    own = any(patterns[name].search(words) for name in ("of_speaker", "wish")) or patterns["bare"].match(words)
    lasts = brief and not own and (patterns["of_life"].search(words) or _lasts(words, language))
    return bool(own or lasts) and not _asks_for(words, language)


def _count(words: str) -> int:
    """Return how many words there are, about. Scripts without blanks have two letters a word."""
    return len(words.split()) + len(_UNPARTED.findall(words)) // 2


def _lasts(words: str, language: Language) -> bool:
    return language.lasting is not None and language.lasting.search(words)


def _worth(words: str, language: Language | None, *, to_friend: bool) -> float:
    worth = 1 / (1 + math.exp(-sum(WORTH_WEIGHTS[name] * amount for name, amount in features(words, language))))
    if to_friend or language is None or language.lasting is None:
        return worth if to_friend else min(1.0, worth * TO_ASSISTANT)
    lasts = _lasts(words, language) or language.patterns["wish"].search(words) is not None
    passes = language.patterns["momentary"].search(words) is not None
    return min(1.0, worth * TO_ASSISTANT * LASTING[lasts, passes])


def features(words: str, language: Language | None) -> Iterator[tuple[str, float]]:
    """Return what is to be seen in a sentence, and how much of it."""
    count, stems = _count(words), len(terms(words))
    yield "always", 1.0
    yield "share of words that mean something", min(1.0, stems / max(1, count))
    yield "words that mean something, of twelve", min(12, stems) / 12
    yield "words, of forty", min(40, count) / 40
    yield "a name", float(_NAME.search(words) is not None)
    yield "under five words", float(count < 5)
    if language is not None:
        if not language.patterns["of_speaker"].search(words):
            yield "of something else than the speaker", 1.0
        yield from ((name, 1.0) for name, pattern in language.signs.items() if pattern.search(words))


def _rank(worths: Sequence[float], repeated: float) -> list[float]:
    """Return the worths of one message's sentences: the second-best counts less than the best."""
    order = sorted(range(len(worths)), key=lambda place: (-worths[place], place))
    result = [0.0] * len(worths)
    for rank, place in enumerate(order):
        result[place] = worths[place] * repeated**rank
    return result
