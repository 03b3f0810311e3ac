"""The signals of ranking: each a number for every chunk of a user. Pure.

`ranking.WEIGHTS` says what each counts and what it is worth.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memstore.providers import Vectors
from memstore.search.query_analysis import named_dates
from memstore.store.user_index import EPOCH, REACH, Rows, UserIndex

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
    """What BM25 has to know of all chunks of the user: how many they are, and how long in all.

    `holding` says how many have each term of the question, by hash, where the arrays hold only some of the chunks.
    """

    units: int
    length: int
    holding: Mapping[int, int] | None = None

    @property
    def mean_length(self) -> float:
        """The mean length of a chunk, in terms."""
        return max(self.length / max(1, self.units), 1e-9)


def idf(holding: int, units: int) -> float:
    """Return the weight of a term that so many of all chunks have (Lucene's, never negative)."""
    return math.log(1 + (max(units, holding) - holding + 0.5) / (holding + 0.5))


def saturated(counts: Floats, lengths: Floats, mean_length: float, b: float) -> Floats:
    """Return how much chunks of these lengths are about a term that they have so many times (BM25)."""
    about: Floats = counts * (K1 + 1) / (counts + K1 * (1 - b + b * lengths / mean_length))
    return about


def context_weight(arrays: UserIndex) -> Floats:
    """Return which share of a chunk's score is its neighbourhood's: the shorter it is, the less it says alone.

    "Yes, in Porto!" is found by the question before it.
    """
    share: Floats = HALF_TOKENS / (arrays.characters / CHARACTERS + HALF_TOKENS)
    return share


def cosines(arrays: UserIndex, query: Vectors, rows: Rows) -> Floats:
    """Return the cosine of each chunk with a vector: to 12 places for those rows that are embedded, 0 for others."""
    scores = np.zeros(len(arrays))
    if not arrays.vectors:
        return scores
    embedded, vectors = arrays.vectors_of(rows)
    exact, asked = vectors.astype(np.float64), query.astype(np.float64)
    lengths = np.sqrt(np.vecdot(exact, exact) * np.vecdot(asked, asked))
    scores[embedded] = np.round(np.vecdot(exact, asked) / np.maximum(lengths, 1e-30), 12)
    return scores


def rough_cosines(arrays: UserIndex, query: Vectors) -> Floats:
    """Return the cosine of each chunk with a vector, to 5 places; 0 for those that are not embedded."""
    scores = np.zeros(len(arrays))
    if arrays.vectors:
        # Not `block @ query`: BLAS would start threads beside those of the encoder, of which a small machine has few.
        scores[arrays.embedded] = np.concatenate([np.vecdot(block, query) for block in arrays.vectors])
    return scores


def context_cosines(arrays: UserIndex, own: Floats, rows: Rows | slice) -> Floats:
    """Return the cosine of the question with the mean vector of each row and its neighbours, weighed by nearness.

    `own` are the cosines of all rows. A cosine, and no mean of cosines: neighbours of one subject count less than
    scattered ones.
    """
    mean: Floats = (arrays.context_weights[:, rows] * np.append(own, 0.0)[arrays.neighbours[:, rows]]).sum(axis=0)
    return mean


def lexical(arrays: UserIndex, terms: Mapping[str, int], corpus: Corpus, visible: Rows) -> tuple[Floats, Floats]:
    """Return BM25 of each chunk, and of each with its neighbours as one text; of the best visible one either is 1.

    `terms` are the question's, with their hashes. Speakers' names do not count in the second: most neighbourhoods have
    them.
    """
    postings: dict[str, Posting] = {}
    for term, number in terms.items():
        rows, counts = arrays.having(number)
        if len(rows):
            holding = len(rows) if corpus.holding is None else corpus.holding[number]
            postings[term] = idf(holding, corpus.units), rows, counts
    unnamed = [posting for term, posting in postings.items() if term not in arrays.speaker_terms]
    own = _bm25(arrays, [*postings.values()], corpus.mean_length)
    return _by_best(own, visible), _by_best(_context_bm25(arrays, unnamed, corpus.mean_length), visible)


def _bm25(arrays: UserIndex, terms: Sequence[Posting], mean_length: float) -> Floats:
    if not terms:
        return np.zeros(len(arrays))
    weights, rows, counts = _entries(terms)
    about: Floats = weights * saturated(counts, arrays.lengths[rows], mean_length, B)
    return np.bincount(rows, about, len(arrays)).astype(np.float64, copy=False)


def _context_bm25(arrays: UserIndex, terms: Sequence[Posting], mean_length: float) -> Floats:
    width = len(arrays) + 1  # the last one is of neighbours that there are not
    total = np.zeros(width)
    at_once = max(1, TABLE // width)
    for start in range(0, len(terms), at_once):
        some = terms[start : start + at_once]
        places, rows, counts = _entries([(place, rows, counts) for place, (_, rows, counts) in enumerate(some)])
        cells = arrays.neighbours[:, rows] + places * width
        sums = np.bincount(cells.ravel(), np.tile(counts, len(cells)), len(some) * width)
        there = np.flatnonzero(sums.reshape(-1, width)[:, :-1])
        place, row = np.divmod(there, width - 1)
        weights = np.array([weight for weight, _, _ in some])[place]
        about = saturated(sums[place * width + row], arrays.lengths_of_context[row], mean_length, B_AROUND)
        total += np.bincount(row, weights * about, width)
    return total[:-1]


def _entries(terms: Sequence[tuple[float, Rows, Floats]]) -> tuple[NDArray[Any], Rows, Floats]:
    """Return the postings of all terms, one after the other: the first member of each term, its rows, its counts."""
    firsts, rows, counts = zip(*terms, strict=True)
    return np.repeat(np.array(firsts), [*map(len, rows)]), np.concatenate(rows), np.concatenate(counts)


def _by_best(scores: Floats, visible: Rows) -> Floats:
    best = scores[visible].max(initial=0.0)
    return scores / best if best > 0 else np.zeros_like(scores)


def speaker(arrays: UserIndex, text: str) -> Floats:
    """Return 1 for what the speaker said whom the question names, where it names exactly one."""
    name = _only_name(text, arrays.speaker_names)
    if name is None:
        return np.zeros(len(arrays))
    said: Floats = (arrays.speaker_ids == arrays.speaker_names.index(name)).astype(np.float64)
    return said


def _only_name(text: str, names: Iterable[str]) -> str | None:
    named = {name for name in names if re.search(rf"\b{re.escape(name)}\b", text, re.IGNORECASE)}
    return named.pop() if len(named) == 1 else None


def date(arrays: UserIndex, text: str) -> Floats:
    """Return 1 for what was said in a month, or a year, that the question names, and 2 for the very day."""
    scores = np.zeros(len(arrays))
    dates = named_dates(text)
    if not dates:
        return scores
    days = np.datetime64(EPOCH.replace(tzinfo=None), "D") + arrays.times // MICROSECONDS_A_DAY
    months = days.astype("M8[M]")
    years, months_of_year = months.astype(np.int64) // 12 + 1970, months.astype(np.int64) % 12 + 1
    days_of_month = (days - months.astype("M8[D]")).astype(np.int64) + 1
    for named in dates:
        pairs = ((named.year, years), (named.month, months_of_year))
        fits = np.logical_and.reduce([values == wanted for wanted, values in pairs if wanted is not None])
        scores = np.maximum(scores, fits.astype(np.float64) + (fits & (days_of_month == named.day)))
    return scores


def brevity(arrays: UserIndex) -> Floats:
    """Return the logarithm of how much shorter than 60 tokens a chunk is in a context: it leaves room for others."""
    in_context = arrays.characters / CHARACTERS + HEADER_TOKENS
    room: Floats = np.log(HALF_TOKENS / in_context)
    return room


def question(arrays: UserIndex, term: int) -> Floats:
    """Return -1 for a question after which the same role speaks next, less for a long one.

    `term` is the hash that every question has. The answer is what is looked for, and has the question beside it. Who
    asks an assistant says what they want, so these questions count in full.
    """
    asking = arrays.having(term)[0]
    following = np.append(arrays.seqs, -1)[arrays.neighbours[REACH + 1, asking]]
    answered = asking[following == arrays.seqs[asking] + 1]
    scores = np.zeros(len(arrays))
    scores[answered] = -context_weight(arrays)[answered]
    return scores


def role(arrays: UserIndex) -> Floats:
    """Return 1 for what a person said, and for facts and summaries, which are made of it.

    Assistants write most of the words, and repeat what they are told. It is a prior, not a filter.
    """
    return arrays.by_person


def answer_boost(arrays: UserIndex, scores: Floats) -> Floats:
    """Return for what an assistant said the score of the best chunk of what it answers.

    For questions that ask for an overview, or for an assistant's words: what was worked out is in answers, whose words
    are not those of the question. `scores` are of all chunks, or 0.
    """
    messages, answered = arrays.answered
    best = np.zeros(len(arrays) + 1)
    np.maximum.at(best, messages, scores)
    best[-1] = 0.0  # where -1 leads
    return best[answered]
