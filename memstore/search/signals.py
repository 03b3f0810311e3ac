"""The signals of ranking: each a number for every chunk of a user. Pure.

`ranking.WEIGHTS` says what each counts and what it is worth.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from babel import Locale
from numpy.typing import NDArray

from memstore.providers import Vectors
from memstore.store.tokenize import terms
from memstore.store.user_index import NEIGHBOURS, POSTGRES_EPOCH, Rows, UserIndex

Floats = NDArray[np.float64]
Posting = tuple[float, Rows, Floats]  # of a term: its weight, the chunks that have it, how often each has it
K1 = 1.2  # BM25: a word that is said again counts less and less
B, B_AROUND = 0.4, 0.75  # BM25: how much a long text counts less; short ones are all alike
MICROSECONDS_A_DAY = 86_400 * 10**6
HALF_TOKENS = 60  # a chunk of so many tokens stands half for itself; 40 to 80 are a plateau
CHARACTERS = 4  # of a token, about
TABLE = 2**17  # sums of terms by chunk that are made at once: a megabyte stays in a processor's cache
HEADER_TOKENS = 10  # the day and the speaker before a chunk, in a context


@dataclass(frozen=True, slots=True)
class Corpus:
    """BM25's figures of all chunks of the user: how many they are, and how long in all.

    `holding` says how many have each term of the question, by hash, where the index holds only some of the chunks.
    """

    chunks: int
    length: int
    holding: Mapping[int, int] | None = None

    @property
    def mean_length(self) -> float:
        """The mean length of a chunk, in terms."""
        return max(self.length / max(1, self.chunks), 1e-9)


def idf(holding: int, chunks: int) -> float:
    """Return the weight of a term that so many of all chunks have (Lucene's, never negative)."""
    return math.log(1 + (max(chunks, holding) - holding + 0.5) / (holding + 0.5))


def saturate(counts: Floats, lengths: Floats, mean_length: float, b: float) -> Floats:
    """Return how much chunks of these lengths are about a term that they have so many times (BM25)."""
    about: Floats = counts * (K1 + 1) / (counts + K1 * (1 - b + b * lengths / mean_length))
    return about


def neighbour_weight(index: UserIndex) -> Floats:
    """Return which share of a chunk's score is its neighbourhood's: the shorter it is, the less it says alone.

    "Yes, in Porto!" is found by the question before it.
    """
    share: Floats = HALF_TOKENS / (index.characters / CHARACTERS + HALF_TOKENS)
    return share


def cosines(index: UserIndex, query: Vectors, rows: Rows) -> Floats:
    """Return the cosine of each chunk with a vector: to 12 places for those rows that are embedded, 0 for others."""
    scores = np.zeros(len(index))
    if not index.vectors:
        return scores
    there, vectors = index.vectors_at(rows)
    embedded = rows[there]
    exact, asked = vectors.astype(np.float64), query.astype(np.float64)
    lengths = np.sqrt(np.vecdot(exact, exact) * np.vecdot(asked, asked))
    scores[embedded] = np.round(np.vecdot(exact, asked) / np.maximum(lengths, 1e-30), 12)
    return scores


def rough_cosines(index: UserIndex, query: Vectors) -> Floats:
    """Return the cosine of each chunk with a vector, to 5 places; 0 for those that are not embedded."""
    scores = np.zeros(len(index))
    if index.vectors:
        # Not `block @ query`: BLAS would start threads, which compete with the encoder's on a small machine.
        scores[index.embedded] = np.concatenate([np.vecdot(block, query) for block in index.vectors])
    return scores


def neighbour_cosines(index: UserIndex, own: Floats, rows: Rows | slice) -> Floats:
    """Return the cosine of the question with the mean vector of each row and its neighbours, weighed by nearness.

    `own` are the cosines of all rows. A cosine, and no mean of cosines: neighbours of one subject count less than
    scattered ones.
    """
    mean: Floats = (index.neighbour_kernel[:, rows] * np.append(own, 0.0)[index.neighbours[:, rows]]).sum(axis=0)
    return mean


def lexical(index: UserIndex, terms: Mapping[str, int], corpus: Corpus, allowed: Rows) -> tuple[Floats, Floats]:
    """Return BM25 of each chunk, and of each with its neighbours as one text; of the best allowed one either is 1.

    `terms` are the question's, with their hashes. Speakers' names do not count in the second: most neighbourhoods have
    them.
    """
    postings: dict[str, Posting] = {}
    for term, number in terms.items():
        rows, counts = index.rows_with_term(number)
        if len(rows):
            holding = len(rows) if corpus.holding is None else corpus.holding[number]
            postings[term] = idf(holding, corpus.chunks), rows, counts
    unnamed = [posting for term, posting in postings.items() if term not in index.speaker_terms]
    own = _bm25(index, [*postings.values()], corpus.mean_length)
    return _by_best(own, allowed), _by_best(_neighbour_bm25(index, unnamed, corpus.mean_length), allowed)


def _bm25(index: UserIndex, terms: Sequence[Posting], mean_length: float) -> Floats:
    if not terms:
        return np.zeros(len(index))
    weights, rows, counts = _entries(terms)
    about: Floats = weights * saturate(counts, index.lengths[rows], mean_length, B)
    return np.bincount(rows, about, len(index)).astype(np.float64, copy=False)


def _neighbour_bm25(index: UserIndex, terms: Sequence[Posting], mean_length: float) -> Floats:
    width = len(index) + 1  # the last one is of neighbours that there are not
    total = np.zeros(width)
    at_once = max(1, TABLE // width)
    for start in range(0, len(terms), at_once):
        some = terms[start : start + at_once]
        places, rows, counts = _entries([(place, rows, counts) for place, (_, rows, counts) in enumerate(some)])
        cells = index.neighbours[:, rows] + places * width
        sums = np.bincount(cells.ravel(), np.tile(counts, len(cells)), len(some) * width)
        there = np.flatnonzero(sums.reshape(-1, width)[:, :-1])
        place, row = np.divmod(there, width - 1)
        weights = np.array([weight for weight, _, _ in some])[place]
        about = saturate(sums[place * width + row], index.lengths_with_neighbours[row], mean_length, B_AROUND)
        total += np.bincount(row, weights * about, width)
    return total[:-1]


def _entries(terms: Sequence[tuple[float, Rows, Floats]]) -> tuple[NDArray[Any], Rows, Floats]:
    """Return the postings of all terms, one after the other: the first member of each term, its rows, its counts."""
    firsts, rows, counts = zip(*terms, strict=True)
    return np.repeat(np.array(firsts), [*map(len, rows)]), np.concatenate(rows), np.concatenate(counts)


def _by_best(scores: Floats, allowed: Rows) -> Floats:
    best = scores[allowed].max(initial=0.0)
    return scores / best if best > 0 else np.zeros_like(scores)


def speaker(index: UserIndex, text: str) -> Floats:
    """Return 1 for what the speaker said whom the question names, where it names exactly one."""
    name = _only_name(text, index.speaker_names)
    if name is None:
        return np.zeros(len(index))
    said: Floats = (index.speaker_ids == index.speaker_names.index(name)).astype(np.float64)
    return said


def _only_name(text: str, names: Iterable[str]) -> str | None:
    named = {name for name in names if re.search(rf"\b{re.escape(name)}\b", text, re.IGNORECASE)}
    return named.pop() if len(named) == 1 else None


def date(index: UserIndex, text: str) -> Floats:
    """Return 1 for what was said in a month, or a year, that the question names, and 2 for the very day."""
    scores = np.zeros(len(index))
    dates = named_dates(text)
    if not dates:
        return scores
    days = np.datetime64(POSTGRES_EPOCH.replace(tzinfo=None), "D") + index.times // MICROSECONDS_A_DAY
    months = days.astype("M8[M]")
    years, months_of_year = months.astype(np.int64) // 12 + 1970, months.astype(np.int64) % 12 + 1
    days_of_month = (days - months.astype("M8[D]")).astype(np.int64) + 1
    for named in dates:
        pairs = ((named.year, years), (named.month, months_of_year))
        fits = np.logical_and.reduce([values == wanted for wanted, values in pairs if wanted is not None])
        scores = np.maximum(scores, fits.astype(np.float64) + (fits & (days_of_month == named.day)))
    return scores


def brevity(index: UserIndex) -> Floats:
    """Return the logarithm of how much shorter than 60 tokens a chunk is in a context: it leaves room for others."""
    in_context = index.characters / CHARACTERS + HEADER_TOKENS
    room: Floats = np.log(HALF_TOKENS / in_context)
    return room


def is_question(index: UserIndex, term: int) -> Floats:
    """Return -1 for a question after which the same role speaks next, less for a long one.

    `term` is the hash of `QUESTION_MARK_TERM`, a term of every text that asks. The answer is looked for, and its chunk
    comes with the question before it. Questions to an assistant say what somebody wants, so they count in full.
    """
    asking = index.rows_with_term(term)[0]
    following = np.append(index.seqs, -1)[index.neighbours[NEIGHBOURS + 1, asking]]
    answered = asking[following == index.seqs[asking] + 1]
    scores = np.zeros(len(index))
    scores[answered] = -neighbour_weight(index)[answered]
    return scores


def answers(index: UserIndex, scores: Floats, rows: Rows | slice) -> Floats:
    """Return, for each of an assistant's rows, the best score among the chunks of the message it answers; else 0.

    Results are in answers, whose words differ from those of a question about them. `scores` are the rows'.
    """
    messages, answered = index.messages_and_answered
    best = np.zeros(len(index) + 1)
    np.maximum.at(best, messages[rows], scores)
    best[-1] = 0.0  # of chunks that answer nothing, whose `answered` is -1
    return best[answered[rows]]


def answered_rows(index: UserIndex, rows: Rows) -> Rows:
    """Return the chunks of what the rows answer."""
    messages, answered = index.messages_and_answered
    asked = answered[rows]
    return np.flatnonzero(np.isin(messages, asked[asked >= 0]))


# What a question asks for.


_OVERVIEW = re.compile(
    r"\b(?:summar(?:y|i[sz]e|ies)|overview|recap\b|sum (?:\w+ )?up\b)"
    r"|zusammenfass|\bfass\w*\b[^.?!]{1,80}\bzusammen\b|überblick",
    re.IGNORECASE,
)
_TELL = r"say|tell|recommend|suggest|advise|mention|propose|explain|list|write|give|answer|show|warn|come up with"
_TOLD = (
    r"said|told|recommended|suggested|advised|mentioned|proposed|explained|listed|wrote|written|given|answered|shown"
    r"|warned|c[ao]me up with"
)
_GESAGT = r"gesagt|empfohlen|vorgeschlagen|geraten|genannt|erwähnt|erklärt|geschrieben|aufgelistet|gegeben|gezeigt"
_DIT = r"dit|(?:recommand|conseill|suggér|propos|expliqu|mentionn|donn)ée?s?"
_WORDS_OF_ASSISTANT = re.compile(
    rf"\bdid you (?:\w+ )?(?:{_TELL})\b|\byou(?:'ve|'d)? (?:(?:once|just|already|then|had|have) )?(?:{_TOLD})\b"
    rf"|\b(?:du|(?-i:Sie))\b[^.?!]{{0,60}}\b(?:{_GESAGT})\b"
    r"|\b(?:tu (?:m'|nous )?(?:as|avais)|as-tu|vous (?:m'|nous )?(?:avez|aviez)|avez-vous)\b"
    rf"[^.?!]{{0,30}}\b(?:{_DIT})\b"
    r"|\b(?:dijiste|recomendaste|sugeriste|aconsejaste|propusiste|explicaste|mencionaste|diste)\b"
    r"|\bhas (?:dicho|recomendado|sugerido|aconsejado|propuesto|explicado|mencionado|dado)\b"
    r"|你[^。？！?]{0,10}(?:推荐|建议|说过|说的|提到|告诉)",
    re.IGNORECASE,
)
# A plural just behind "which"; a count; all of something, or what two share; and what somebody has done so far.
_PLURAL = r"(?!(?:this|his|was|is|does|has|us|yes|always|\w*(?:ss|us|is))\b)[a-z]{3,}s"
_LIST = re.compile(
    rf"\b(?:what|which) (?:[\w+&/-]+ ){{0,3}}?(?:{_PLURAL}|people|children)\b"
    r"(?= (?:has|have|had|do|does|did|are|were|is|was|can|could|will|would|might|should|in|of|at|for|with|on|[a-z]+ed)"
    r"\b|[?]|$)"
    rf"|\b(?:what|which|who) (?:are|were|all)\b(?: [\w'’.-]+){{1,4}}? {_PLURAL}\b"
    r"|\b(?:what|which|where|who)(?: kinds?| types?| sorts?)?(?: of)?(?: [\w-]+){0,2} (?:has|have)\b"
    r"|\bhow (?:many|often)\b|\b(?:kinds|types|sorts) of\b|\b(?:both|in common|altogether|so far)\b"
    r"|\b(?:all|each|every) (?:of|the|my|his|her|their|our)\b|\b(?:list|name|enumerate) (?:all|every|some|my)\b"
    r"|\bwie (?:viele|oft)\b|\bwelche [\w-]+(?<!ung)(?<!heit)(?<!keit)(?:[snr]|en|e)\b(?= (?:haben|hat|sind|waren)\b)"
    r"|\bwelche [\w-]+(?<!ung)(?<!heit)(?<!keit)(?:s|n|er)\b|\bwas (?:alles|haben|hat)\b|\bwo überall\b"
    r"|\b(?:beide[nrms]?|sämtliche[nrms]?|gemeinsam|insgesamt|bisher)\b|\bwas für \w+(?:s|n|er)\b"
    r"|\balle[ns]? (?:die|der|den|mein|unser|sein|ihr)\w*\b|\b(?:liste|zähle?|nenne?)\b[^.?!]{0,60}\b(?:auf|alle)\b",
    re.IGNORECASE,
)

# The order of events, or how something went on: as of an overview, the topic stands all over a talk.
_COURSE = re.compile(
    r"\b(?:in (?:what|which)|the|chronological) order (?:in which|that|did|do|have|has|we|i)\b|\bchronolog"
    r"|\b(?:throughout|across|over) (?:all )?(?:of )?(?:our|my|these) (?:\w+ )?(?:conversation|session|chat|talk)s?\b"
    r"|\btimeline\b|\bover time\b|\bover the (?:last |past )?(?:\w+ )?(?:weeks|months|years)\b"
    r"|\bfrom (?:the )?(?:start|first|beginning) to (?:the )?(?:end|last)\b"
    r"|\bhow (?:has|have|did)\b[^.?!]{1,80}\b(?:develop|evolve|progress|unfold|change)(?:ed|d)?\b"
    r"|reihenfolge\b|\b(?:der reihe nach|nacheinander|mit der zeit|im (?:lauf|verlauf)\w*|zeitleiste)\b"
    r"|\bin (?:all )?unseren gesprächen\b|\büber die (?:letzten )?(?:wochen|monate|jahre)\b"
    r"|\bwie (?:hat|haben)\b[^.?!]{1,80}\b(?:entwickelt|verändert|gewandelt)\b",
    re.IGNORECASE,
)
# What is not the topic of such a question: "Can you give me a short summary of how".
_REQUEST = re.compile(
    r"^(?:[\w'’]+,? ){0,8}?(?:summar(?:y|ies|i[sz]e)|overview|recap|timeline|order|reihenfolge|zusammenfassung"
    r"|überblick|zusammen)\b,?(?: (?:of|on|in which|that|how|what|von|über|davon|der|die|wie|was)\b,?){0,3}(?= \S+ \S)",
    re.IGNORECASE,
)
# Terms of a request for what was said, whatever it was about: the latest turns and summaries answer that.
_NO_TOPIC = re.compile(
    r"chat|chronolog|convers|discuss|everyth|far|give|make|mention|messag|order|overview|pleas|quick|recap|session|short"
    r"|sum|summari|talk|tell|thing|timelin|today|write|yesterday"
    r"|bish|bitt|chronologisch|fass|gesproch|gesprach|gestern|gib|heut|kann|kurz|mach|reihenfolg|uberblick|unterhalt"
    r"|worub|zeitleist|zusamm|zusammenfass"
)


def asks_for_list(question: str) -> bool:
    """Return whether a question asks for several things or a count, by its form, in English or German.

    >>> [asks_for_list(one) for one in ("Which cities did we visit?", "Wie viele Katzen hat Eva?", "Where is my bus?")]
    [True, True, False]
    """
    return _LIST.search(question) is not None and _has_topic(question)


def asks_for_overview(question: str) -> bool:
    """Return whether a question asks for a summary of what was said, in English or German."""
    return _OVERVIEW.search(question) is not None


def asks_for_overview_or_order(question: str) -> bool:
    """Return whether a question asks for an overview, an order of events or the course of something, and of what.

    >>> questions = ("In what order did we visit them?", "Wie hat sich Ida entwickelt?", "Recap!")
    >>> [asks_for_overview_or_order(one) for one in questions]
    [True, True, False]
    """
    return (asks_for_overview(question) or _COURSE.search(question) is not None) and _has_topic(question)


def _has_topic(question: str) -> bool:
    return not all(map(_NO_TOPIC.fullmatch, terms(_REQUEST.sub("", question))))


def without_request(question: str) -> str:
    """Return the topic of a question for an overview or a course; any other question as it is.

    >>> without_request("Could you give me a short summary of how the garden changed?")
    'the garden changed'
    """
    return _REQUEST.sub("", question).strip(" ,.?!") if asks_for_overview_or_order(question) else question


def asks_for_assistant_words(question: str) -> bool:
    """Return whether a question asks for what an assistant said: "Which hotel did you recommend?"

    In English, German, French, Spanish and Chinese. To such a question an assistant's words are as likely an answer as
    a person's.
    """
    return _WORDS_OF_ASSISTANT.search(question) is not None


# Dates: "in May 2023", "am 8. Mai", "2023年5月", "on 2023-05-08". Only what needs no clock: "last week" is another one
# every week, and a store gives the same answer to the same question. Names of months are the Unicode CLDR's, by Babel.
_LANGUAGES = ("en", "de", "fr", "es")
# Words with another meaning: they are months only next to a number, or behind a word such as "in" or "since".
_AMBIGUOUS = ("may", "march", "mars", "august")
_TIME_WORDS = (
    "in|of|since|during|by|until|till|before|after|last|this|early|mid|late|from|through|im|seit|ab|bis|vom|letzten"
    "|diesen|en|de|depuis|avant|après|desde|hasta|antes|durante"
)
_BETWEEN = r"(?:,|\.)?\s+(?:of\s+|de[l]?\s+)?"


class NamedDate(NamedTuple):
    """A year, a month (1 to 12), a day, or some of them."""

    year: int | None = None
    month: int | None = None
    day: int | None = None


def named_dates(text: str) -> list[NamedDate]:
    """Return the dates that a text names, in their order."""
    months, folded = _months("abbreviated", "wide"), text.casefold()
    if not any(map(str.isdecimal, text)) and not any(name in folded for name in months):
        return []  # most questions: a tenth of a millisecond is much of what recall takes
    found = []
    for match in _pattern().finditer(text):
        said = match.groupdict()
        year, month, day = (next((said[f"{one}{n}"] for n in range(4) if said.get(f"{one}{n}")), None) for one in "ymd")
        name = (said["name"] or "").casefold()
        if name and not (year or day) and (name not in _months("wide") or (name in _AMBIGUOUS and not said["time"])):
            continue
        number = months.get(name, int(month) if month else None)
        if number is None or 1 <= number <= 12:
            found.append(NamedDate(int(year) if year else None, number, int(day) if day else None))
    return found


@cache
def _months(*widths: str) -> dict[str, int]:
    names = (Locale(language).months["format"][width].items() for language in _LANGUAGES for width in widths)
    return {name.casefold().rstrip("."): number for some in names for number, name in some}


@cache
def _pattern() -> re.Pattern[str]:
    names = "|".join(sorted(map(re.escape, _months("abbreviated", "wide")), key=len, reverse=True))
    year, day = r"(?P<y{0}>(?:19|20)\d\d)", r"(?P<d{0}>[0-3]?\d)"
    forms = [
        rf"\b{day.format(0)}\.\s?(?P<m0>[01]?\d)\.\s?{year.format(0)}\b",
        rf"(?<!\w){year.format(1)}(?:[-年](?P<m1>[01]?\d)(?:[-月]{day.format(1)})?)?(?![0-9a-z])",
        rf"(?:\b(?P<time>{_TIME_WORDS})\s+)?(?:\b{day.format(2)}(?:st|nd|rd|th|er)?{_BETWEEN})?"
        rf"\b(?P<name>{names})\b\.?(?:\s+{day.format(3)}(?:st|nd|rd|th)?(?!\d))?(?:{_BETWEEN}{year.format(2)}\b)?",
    ]
    return re.compile("|".join(forms), re.IGNORECASE)
