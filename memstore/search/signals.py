"""The signals of ranking: each a number for every unit of a user, from the question and what the process holds. Pure.

What each is worth: the points of evidence recall that ranking loses without it, on the dev halves of LoCoMo and BEAM,
which count the same, mean over all budgets. Both measure messages; one question of LoCoMo is 0.1 points.
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
from memstore.store.arrays import EPOCH, Arrays, Rows
from memstore.store.neighbours import REACH

Floats = NDArray[np.float64]
Holders = tuple[float, Rows, Floats]  # of a term: its weight, the units that have it, how often each has it
K1 = 1.2  # BM25: a word that is said again counts less and less
B, B_AROUND = 0.4, 0.75  # BM25: how much a long text counts less; short ones are all alike
MICROSECONDS_A_DAY = 86_400 * 10**6
HALF_TOKENS = 60  # a unit of so many tokens stands half for itself
CHARACTERS = 4  # of a token, about
TABLE = 2**17  # sums of terms by unit that are made at once: a megabyte stays in a processor's cache
HEADER_TOKENS = 10  # the day and the speaker before a unit, when it is given


@dataclass(frozen=True, slots=True)
class Corpus:
    """What BM25 has to know of all units of the user: how many they are, how long in all.

    `holding` says how many have each term of the question, by hash, where the arrays hold some of the units only.
    """

    units: int
    length: int
    holding: Mapping[int, int] | None = None

    @property
    def mean_length(self) -> float:
        """The mean length of a unit, in terms."""
        return max(self.length / max(1, self.units), 1e-9)


def idf(holding: int, units: int) -> float:
    """Give the weight of a term that so many of all units have (Lucene's, never negative)."""
    return math.log(1 + (max(units, holding) - holding + 0.5) / (holding + 0.5))


def saturated(counts: Floats, lengths: Floats, mean_length: float, b: float) -> Floats:
    """Give how much units of these lengths, in terms, are about a term that they have so many times (BM25)."""
    about: Floats = counts * (K1 + 1) / (counts + K1 * (1 - b + b * lengths / mean_length))
    return about


def share_around(arrays: Arrays) -> Floats:
    """Give how much of each unit's score is its neighbourhood's: the shorter it is, the less it says alone.

    "Yes, in Porto!" is found by the question before it. What is around is worth 3.8 points, 4.3 on LoCoMo; that long
    units stand for themselves is 0.6 of them. 40 to 80 tokens are a plateau.
    """
    share: Floats = HALF_TOKENS / (arrays.characters / CHARACTERS + HALF_TOKENS)
    return share


def cosines(arrays: Arrays, query: Vectors, rows: Rows) -> Floats:
    """Give the cosine of each unit with a vector: to 12 places for those rows that are embedded, 0 for all others."""
    scores = np.zeros(len(arrays))
    if not arrays.vectors:
        return scores
    embedded, vectors = arrays.vectors_of(rows)
    exact, asked = vectors.astype(np.float64), query.astype(np.float64)
    lengths = np.sqrt(np.vecdot(exact, exact) * np.vecdot(asked, asked))
    scores[embedded] = np.round(np.vecdot(exact, asked) / np.maximum(lengths, 1e-30), 12)
    return scores


def rough_cosines(arrays: Arrays, query: Vectors) -> Floats:
    """Give the cosine of each unit with a vector, to 5 places; 0 for those that are not embedded."""
    scores = np.zeros(len(arrays))
    if arrays.vectors:
        # Not `block @ query`: BLAS would start threads beside those of the encoder, of which a small machine has few.
        scores[arrays.embedded] = np.concatenate([np.vecdot(block, query) for block in arrays.vectors])
    return scores


def cosines_around(arrays: Arrays, own: Floats, rows: Rows | slice) -> Floats:
    """Give the cosine of the question with the mean vector of each of the rows and its neighbours, weighed by nearness.

    `own` are the cosines of all rows; no vector is read. Worth 1.1 points beside the lexical one; that it is a cosine
    and no mean of cosines, so that neighbours of one subject count less than scattered ones, nearly all of them.
    """
    mean: Floats = (arrays.nearness[:, rows] * np.append(own, 0.0)[arrays.around[:, rows]]).sum(axis=0)
    return mean


def lexical(arrays: Arrays, asked: Mapping[str, int], corpus: Corpus, shown: Rows) -> tuple[Floats, Floats]:
    """Give BM25 of each unit, and of each with its neighbours as one text; of the best that is shown either is 1.

    `asked` are the terms of the question and their hashes.
    Exact words are what an embedder loses: names, numbers, things of one's own. Worth 5 points, cosines 5.4; the
    second of them 2.2, as talk is in pieces. Speakers' names are not looked for in it: most neighbourhoods have them.
    """
    found: dict[str, Holders] = {}
    for term, number in asked.items():
        rows, counts = arrays.having(number)
        if len(rows):
            holding = len(rows) if corpus.holding is None else corpus.holding[number]
            found[term] = idf(holding, corpus.units), rows, counts
    unnamed = [holders for term, holders in found.items() if term not in arrays.terms_of_names]
    own = _bm25(arrays, [*found.values()], corpus.mean_length)
    return _by_best(own, shown), _by_best(_bm25_around(arrays, unnamed, corpus.mean_length), shown)


def _bm25(arrays: Arrays, terms: Sequence[Holders], mean_length: float) -> Floats:
    if not terms:
        return np.zeros(len(arrays))
    weights, rows, counts = _entries(terms)
    about: Floats = weights * saturated(counts, arrays.lengths[rows], mean_length, B)
    return np.bincount(rows, about, len(arrays)).astype(np.float64, copy=False)


def _bm25_around(arrays: Arrays, terms: Sequence[Holders], mean_length: float) -> Floats:
    """Give BM25 of each unit with its neighbours as one text; several terms at once, where units are few."""
    width = len(arrays) + 1  # the last one is of neighbours that there are not
    around = np.zeros(width)
    at_once = max(1, TABLE // width)
    for start in range(0, len(terms), at_once):
        some = terms[start : start + at_once]
        places, rows, counts = _entries([(place, rows, counts) for place, (_, rows, counts) in enumerate(some)])
        cells = arrays.around[:, rows] + places * width
        sums = np.bincount(cells.ravel(), np.tile(counts, len(cells)), len(some) * width)
        there = np.flatnonzero(sums.reshape(-1, width)[:, :-1])
        place, row = np.divmod(there, width - 1)
        weights = np.array([weight for weight, _, _ in some])[place]
        about = saturated(sums[place * width + row], arrays.lengths_around[row], mean_length, B_AROUND)
        around += np.bincount(row, weights * about, width)
    return around[:-1]


def _entries(terms: Sequence[tuple[float, Rows, Floats]]) -> tuple[NDArray[Any], Rows, Floats]:
    """Give the units that have terms and how often, one term after the other, beside what is told of each term."""
    told, units = np.array([one for one, _, _ in terms]), [rows for _, rows, _ in terms]
    return (
        np.repeat(told, [*map(len, units)]),
        np.concatenate(units),
        np.concatenate([counts for _, _, counts in terms]),
    )


def _by_best(scores: Floats, shown: Rows) -> Floats:
    best = scores[shown].max(initial=0.0)
    return scores / best if best > 0 else np.zeros_like(scores)


def speaker(arrays: Arrays, text: str) -> Floats:
    """Give 1 for what the speaker said whom the question names, where it names one alone.

    Worth 0.9 points, and 9 on those of LoCoMo that need several messages; it costs questions that mistake one speaker
    for the other 2.
    """
    named = named_speaker(text, arrays.named)
    if named is None:
        return np.zeros(len(arrays))
    said: Floats = (arrays.voices == arrays.named.index(named)).astype(np.float64)
    return said


def named_speaker(query: str, names: Iterable[str]) -> str | None:
    """Give the speaker whom the question names, where it names exactly one."""
    named = {name for name in names if re.search(rf"\b{re.escape(name)}\b", query, re.IGNORECASE)}
    return named.pop() if len(named) == 1 else None


def date(arrays: Arrays, text: str) -> Floats:
    """Give 1 for what was said in a month, or a year, that the question names, and 2 for the very day.

    Worth 0.6 points, nearly all on LoCoMo.
    """
    scores = np.zeros(len(arrays))
    dates = named_dates(text)
    if not dates:
        return scores
    days = np.datetime64(EPOCH.replace(tzinfo=None), "D") + arrays.times // MICROSECONDS_A_DAY
    months = days.astype("M8[M]")
    of_year, of_month = months.astype(np.int64) // 12 + 1970, months.astype(np.int64) % 12 + 1
    of_day = (days - months.astype("M8[D]")).astype(np.int64) + 1
    for one in dates:
        pairs = ((one.year, of_year), (one.month, of_month))
        fits = np.logical_and.reduce([values == asked for asked, values in pairs if asked is not None])
        scores = np.maximum(scores, fits.astype(np.float64) + (fits & (of_day == one.day)))
    return scores


def brevity(arrays: Arrays) -> Floats:
    """Give how much room a unit leaves for others: the logarithm of how much shorter than 60 tokens it is when given.

    Worth 1.3 points, nearly all on BEAM: as good an answer in half the words leaves room for another. Weights of 0.06
    to 0.1 are a plateau.
    """
    given = arrays.characters / CHARACTERS + HEADER_TOKENS
    room: Floats = np.log(HALF_TOKENS / given)
    return room


def question(arrays: Arrays, mark: int) -> Floats:
    """Give -1 for a question after which the same role speaks next, less for a long one; `mark` is its term.

    The answer is what is looked for, and has the question beside it. Worth 0.4 points, all on LoCoMo, and 5 on those
    that need several messages. Who asks an assistant says what they want, so these questions count in full.
    """
    asking = arrays.having(mark)[0]
    following = np.append(arrays.seqs, -1)[arrays.around[REACH + 1, asking]]
    answered = asking[following == arrays.seqs[asking] + 1]
    scores = np.zeros(len(arrays))
    scores[answered] = -share_around(arrays)[answered]
    return scores


def role(arrays: Arrays) -> Floats:
    """Give 1 for what a person said, and for facts and summaries, which are made of it.

    Assistants write most of the words, and repeat what they are told; most of what is asked for later a person said
    first. Worth 6.8 points: 13 on BEAM at 100,000 tokens, 17 at a million; 0.4 to 0.6 are a plateau. It is a prior, not
    a filter.
    """
    return arrays.by_person


def answers(arrays: Arrays, scores: Floats) -> Floats:
    """Give for what an assistant said the score of the best unit of what it answers; `scores` are of all units, or 0.

    For questions that ask for an overview, or for an assistant's words (`asks`): what was worked out is in answers,
    whose words are not those of the question. Worth 0.2 points, 0.7 on BEAM at 100,000 and a million tokens, where
    overviews are a ninth of what is asked; for all questions it is worth nothing more. Of users whose candidates come
    from the database an answer counts only where it is a candidate itself.
    """
    messages, answered = arrays.answered
    best = np.zeros(len(arrays) + 1)
    np.maximum.at(best, messages, scores)
    best[-1] = 0.0  # where -1 leads
    return best[answered]
