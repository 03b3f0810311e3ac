"""The legs of recall over a user's arrays: the same candidates and signals as from the database, without a scan. Pure.

Cosines are computed twice: of all units in 32 bits to see which may be the nearest, of those in 64 bits. So the last
bits of a sum, which depend on how a matrix is laid out, decide nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from memstore.models import Role, Tier
from memstore.providers import Vectors
from memstore.retrieve.rank import HALF_LIFE_DAYS, WEIGHTS, Candidate, Ranking, idf, named_speaker, saturated
from memstore.store.arrays import ROLES, TIERS, Arrays, Rows

Floats = NDArray[np.float64]
MESSAGES, USER = TIERS.index(Tier.MESSAGES) + 1, ROLES.index(Role.USER) + 1
MICROSECONDS_A_DAY = 86_400e6
COARSE = 1e-4  # more than the cosine of two unit vectors can be wrong in 32 bits


def lexical(
    arrays: Arrays,
    terms: Sequence[int],
    units: int,
    mean_length: float,
    holding: Sequence[int] | None = None,
    shown: Rows | None = None,
) -> Floats:
    """Give BM25 of each unit as `rank.bm25` does: 0 without any of the terms, 1 for the best of those shown.

    `holding` says how many units have each term, where the arrays have not all.
    """
    entries = [np.flatnonzero(arrays.terms == term) for term in terms]
    matching = np.zeros(len(arrays), dtype=np.bool_)
    for found in entries:
        matching[arrays.holders[found]] = True
    units = max(units, int(np.count_nonzero(matching)))
    scores = np.zeros(len(arrays))
    for place, found in enumerate(entries):
        holders = arrays.holders[found]
        having = len(found) if holding is None else min(holding[place], units)
        counts = arrays.frequencies[found].astype(np.float64)
        scores[holders] += saturated(idf(having, units), counts, arrays.lengths[holders], max(mean_length, 1e-9))
    best = scores[slice(None) if shown is None else shown].max(initial=0.0)
    return scores / best if best > 0 else scores


def highest(arrays: Arrays, scores: Floats, count: int) -> Rows:
    """Give the rows with the highest scores above 0; of equal ones those with the greater name."""
    rows = np.flatnonzero(scores)
    if len(rows) > count:
        rows = rows[scores[rows] >= np.partition(scores[rows], -count)[-count]]
    return rows[np.lexsort((-arrays.rank[rows], -scores[rows]))][:count]


def nearest(arrays: Arrays, query: Vectors, count: int) -> Rows:
    """Give the rows of the vectors nearest to one, exactly; of equal ones those with the lesser name."""
    if not arrays.vectors:
        return np.empty(0, dtype=np.intp)
    # Not `block @ query`: BLAS would start threads beside those of the encoder, of which a small machine has few.
    coarse = np.concatenate([np.vecdot(block, query) for block in arrays.vectors])
    rows = arrays.embedded
    if len(rows) > count:
        rows = rows[coarse >= np.partition(coarse, -count)[-count] - COARSE]
    exact = cosines(arrays, query, rows)[rows]
    return rows[np.lexsort((arrays.rank[rows], -exact))][:count]


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


def latest(arrays: Arrays, count: int) -> Rows:
    """Give the rows of what was said last."""
    times = arrays.times
    rows = np.arange(len(arrays))
    if len(rows) > count:
        rows = np.flatnonzero(times >= np.partition(times, -count)[-count])
    numbers = arrays.records["seq"][rows]
    return rows[np.lexsort((arrays.rank[rows], -numbers, numbers < 0, -times[rows]))][:count]


def first_chunks(arrays: Arrays, items: Iterable[UUID]) -> Rows:
    """Give the rows of the first chunks of items, where they are there."""
    found = [arrays.find(item) for item in items]
    return np.array([row for row in found if row is not None], dtype=np.intp)


def ranked(arrays: Arrays, rows: Rows, query: str, semantic: Floats, lexical: Floats) -> Ranking:
    """Rank units as `rank.ranked` does, with the signals that `rank` gives to each."""
    records, times = arrays.records[rows], arrays.times[rows]
    ages = (times.max() - times if len(times) else times) / MICROSECONDS_A_DAY
    speakers = [arrays.speakers[row] for row in rows.tolist()]
    named = named_speaker(query, {speaker for speaker in speakers if speaker})
    said = (records["tier"] != MESSAGES) | (records["role"] == USER)
    signals = {
        "semantic": np.maximum(semantic[rows], 0.0),
        "lexical": lexical[rows],
        "speaker": np.array([named is not None and speaker == named for speaker in speakers], dtype=np.float64),
        "role": said.astype(np.float64),
        "recency": np.power(0.5, ages / HALF_LIFE_DAYS),
    }
    scores = sum(np.round(weight * signals[name], 6) for name, weight in WEIGHTS.items())
    order = np.lexsort((arrays.rank[rows], -times, -np.round(scores, 9)))

    def build(places: Sequence[int]) -> list[Candidate]:
        chosen = order[places]
        values = zip(*(values[chosen].tolist() for values in signals.values()), strict=True)
        units = arrays.units(rows[chosen])
        return [Candidate(unit, dict(zip(signals, own, strict=True))) for unit, own in zip(units, values, strict=True)]

    return Ranking([TIERS[tier - 1] for tier in records["tier"][order].tolist()], build)
