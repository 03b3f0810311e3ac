"""The signals of ranking: each a number for every chunk of a user. Pure.

`ranking.WEIGHTS` says what each counts and what it is worth.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memstore.providers import Vectors
from memstore.search.dates import asked_time
from memstore.store.user_index import NEIGHBOURS_PER_SIDE, POSTGRES_EPOCH, Rows, UserIndex

Floats = NDArray[np.float64]
# Of a term: its weight, the chunks that have it, how often each has it.
Posting = tuple[float, Rows, Floats]
BM25_K1 = 1.2
# How much a long text counts less; short ones are all alike.
BM25_B, BM25_B_AROUND = 0.4, 0.75
# A chunk of so many tokens stands half for itself; 40 to 80 are a plateau.
HALF_TOKENS = 60
CHARS_PER_TOKEN = 4


@dataclass(frozen=True, slots=True)
class Corpus:
    """BM25's figures of all chunks that are searched: how many they are, and how long in all.

    `holding` says how many have each term of the question, where the index holds only some of the chunks.
    """

    chunks: int
    length: int
    holding: Mapping[str, int] | None = None

    @property
    def mean_length(self) -> float:
        return max(self.length / max(1, self.chunks), 1e-9)


def idf(holding: int, chunks: int) -> float:
    """Return the weight of a term that so many of all chunks have (Lucene's, never negative)."""
    return math.log(1 + (max(chunks, holding) - holding + 0.5) / (holding + 0.5))


def saturate(counts: Floats, lengths: Floats, mean_length: float, b: float) -> Floats:
    """Return how much chunks of these lengths are about a term that they have so many times (BM25)."""
    about: Floats = counts * (BM25_K1 + 1) / (counts + BM25_K1 * (1 - b + b * lengths / mean_length))
    return about


def neighbour_weight(index: UserIndex) -> Floats:
    """Return which share of a chunk's score is its neighbourhood's: the shorter it is, the less it says alone.

    "Yes, in Porto!" is found by the question before it.
    """
    share: Floats = HALF_TOKENS / (index.characters / CHARS_PER_TOKEN + HALF_TOKENS)
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


def neighbour_cosines(index: UserIndex, scores: Floats, rows: Rows | slice) -> Floats:
    """Return the cosine of the question with the mean vector of each row and its neighbours, weighed by nearness.

    `scores` are the cosines of all rows. A cosine, and no mean of cosines: neighbours of one subject count less than
    scattered ones.
    """
    mean: Floats = (index.neighbour_kernel[:, rows] * np.append(scores, 0.0)[index.neighbours[:, rows]]).sum(axis=0)
    return mean


def lexical(
    index: UserIndex, terms: Mapping[str, int], corpus: Corpus, allowed: Rows
) -> tuple[Floats, Floats, tuple[float, float]]:
    """Return BM25 of each chunk, and of each with its neighbours as one text, by the best allowed ones; and these.

    `terms` are the question's, with their hashes. Speakers' names do not count in the second: most neighbourhoods have
    them.
    """
    postings: dict[str, Posting] = {}
    for term, number in terms.items():
        rows, counts = index.rows_with_term(number)
        if len(rows):
            holding = len(rows) if corpus.holding is None else corpus.holding[term]
            postings[term] = idf(holding, corpus.chunks), rows, counts
    unnamed = [posting for term, posting in postings.items() if term not in index.speaker_terms]
    scores = _bm25(index, [*postings.values()], corpus.mean_length)
    around = _neighbour_bm25(index, unnamed, corpus.mean_length)
    best, best_around = (float(values[allowed].max(initial=0.0)) for values in (scores, around))
    return _by_best(scores, best), _by_best(around, best_around), (best, best_around)


def _bm25(index: UserIndex, terms: Sequence[Posting], mean_length: float) -> Floats:
    if not terms:
        return np.zeros(len(index))
    weights, rows, counts = _entries(terms)
    about: Floats = weights * saturate(counts, index.lengths[rows], mean_length, BM25_B)
    return np.bincount(rows, about, len(index)).astype(np.float64, copy=False)


def _neighbour_bm25(index: UserIndex, terms: Sequence[Posting], mean_length: float) -> Floats:
    # The last one is of neighbours that there are not.
    width = len(index) + 1
    total = np.zeros(width)
    # A megabyte stays in a processor's cache.
    at_once = max(1, 2**17 // width)
    for start in range(0, len(terms), at_once):
        batch = terms[start : start + at_once]
        places, rows, counts = _entries([(place, rows, counts) for place, (_, rows, counts) in enumerate(batch)])
        cells = index.neighbours[:, rows] + places * width
        sums = np.bincount(cells.ravel(), np.tile(counts, len(cells)), len(batch) * width)
        there = np.flatnonzero(sums.reshape(-1, width)[:, :-1])
        place, row = np.divmod(there, width - 1)
        weights = np.array([weight for weight, _, _ in batch])[place]
        about = saturate(sums[place * width + row], index.lengths_with_neighbours[row], mean_length, BM25_B_AROUND)
        total += np.bincount(row, weights * about, width)
    return total[:-1]


def _entries(terms: Sequence[tuple[float, Rows, Floats]]) -> tuple[NDArray[Any], Rows, Floats]:
    """Return the postings of all terms, one after the other: the first member of each term, its rows, its counts."""
    firsts, rows, counts = zip(*terms, strict=True)
    return np.repeat(np.array(firsts), [*map(len, rows)]), np.concatenate(rows), np.concatenate(counts)


def _by_best(scores: Floats, best: float) -> Floats:
    return scores / best if best > 0 else np.zeros_like(scores)


def speaker(index: UserIndex, text: str) -> Floats:
    """Return 1 for what the speaker said whom the question names, where it names exactly one."""
    names = enumerate(index.speaker_names)
    named = [place for place, name in names if re.search(rf"\b{re.escape(name)}\b", text, re.IGNORECASE)]
    if len(named) != 1:
        return np.zeros(len(index))
    said: Floats = (index.speaker_ids == named[0]).astype(np.float64)
    return said


def date(index: UserIndex, text: str) -> Floats:
    """Return 1 for what was said in the time that the question asks about, and 2 for the very day that it names."""
    asked = asked_time(text)
    if not asked.inside and not asked.outside:
        return np.zeros(len(index))
    return asked.scores(np.datetime64(POSTGRES_EPOCH.replace(tzinfo=None), "D") + index.times // (86_400 * 10**6))


def brevity(index: UserIndex) -> Floats:
    """Return the logarithm of how much shorter than 60 tokens a chunk is in a context: it leaves room for others."""
    in_context = index.characters / CHARS_PER_TOKEN + 10  # with its header
    room: Floats = np.log(HALF_TOKENS / in_context)
    return room


def is_question(index: UserIndex, term: int) -> Floats:
    """Return -1 for a question after which the same role speaks next, less for a long one.

    `term` is the hash of "?", a term of every text that asks. The answer is looked for, and its chunk comes with the
    question before it. Questions to an assistant say what somebody wants, so they count in full.
    """
    asking = index.rows_with_term(term)[0]
    following = np.append(index.seqs, -1)[index.neighbours[NEIGHBOURS_PER_SIDE + 1, asking]]
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
    # Of chunks that answer nothing, whose `answered` is -1.
    best[-1] = 0.0
    return best[answered[rows]]


def answered_rows(index: UserIndex, rows: Rows) -> Rows:
    messages, answered = index.messages_and_answered
    asked = answered[rows]
    return np.flatnonzero(np.isin(messages, asked[asked >= 0]))


def same_session(index: UserIndex, best: int, rows: Rows) -> Floats:
    """Return 1 for what a person said soon before or after the best hit in its session, less the longer either is.

    A question names one event, and asks for another that was spoken of together with it.
    """
    session, short = index.sessions, neighbour_weight(index)
    steps = np.abs(index.seqs[rows] - index.seqs[best])
    beside = (session[rows] == session[best]) & (session[best] > 0) & (steps > 0) & (steps <= 8)
    near: Floats = beside * index.by_person[rows] * short[rows] * short[best]
    return near
