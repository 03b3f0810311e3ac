"""How well what is stored fits a question: figures that are comparable between stores, sizes and embedders. Pure.

A cosine alone says little: in a store about one subject everything is near. So the best cosines are measured in
standard deviations above the mean cosine of the store's own chunks with each other. A small store has the mean of
stores in general; the more chunks it has, the more its own counts.
"""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np

from memstore.models import Tier
from memstore.search.questions import asks_for_overview_or_order
from memstore.search.ranking import QueryFeatures, Ranking
from memstore.search.signals import idf
from memstore.store.user_index import UserIndex

# The mean and the deviation of stores in general, and as how many pairs they count.
USUAL_MEAN, USUAL_DEVIATION, USUAL_PAIRS = 0.15, 0.13, 100


class QuestionMatch(NamedTuple):
    """What speaks for chunks as an answer to a question.

    `nearest` is the best cosine, `best_meaning` that of the best hit with its neighbours, both in deviations;
    `best_other` what its other signals add. Of the weight of the question's words `covered` is the share that one chunk
    with its neighbours has, and `unknown` that of words which none has; `rarest_unknown` is the greatest weight of such
    a word.
    """

    nearest: float
    best_meaning: float
    best_other: float
    covered: float
    unknown: float
    rarest_unknown: float
    names_speaker: bool
    asks_for_overview: bool
    chunks: int


def measure(ranking: Ranking, features: QueryFeatures) -> QuestionMatch | None:
    """Return how well what was ranked matches a question; None where nothing was."""
    best = next(ranking.of_tiers(*Tier), None)
    if best is None or ranking.ranked is None:
        return None
    index, corpus, allowed = ranking.ranked.index, ranking.ranked.corpus, ranking.ranked.allowed
    mean, deviation = _background(index)
    nearest = 0.0 if ranking.ranked.cosines is None else ranking.ranked.cosines[allowed].max()
    meaning = best.parts.get("semantic", 0.0) + best.parts.get("semantic_neighbours", 0.0)
    weights = np.zeros(len(features.terms))
    covered = np.zeros(len(index))
    is_allowed = np.zeros(len(index), dtype=np.bool_)
    is_allowed[allowed] = True
    is_known = np.zeros(len(features.terms), dtype=np.bool_)
    for place, (term, number) in enumerate(features.terms.items()):
        rows = index.rows_with_term(number)[0]
        holding = len(rows) if corpus.holding is None else corpus.holding.get(term, 0)
        weights[place], is_known[place] = idf(holding, corpus.chunks), is_allowed[rows].any()
        has_term = np.zeros(len(index) + 1)
        has_term[rows] = 1.0
        covered += weights[place] * has_term[index.neighbours].max(axis=0)[: len(index)]
    total = float(weights.sum()) or 1.0
    names = (rf"\b{re.escape(name)}\b" for name in index.speakers_of_messages if name)
    return QuestionMatch(
        nearest=float(nearest - mean) / deviation,
        best_meaning=(meaning - mean) / deviation,
        best_other=best.score - meaning,
        covered=float(covered[allowed].max()) / total,
        unknown=float(weights[~is_known].sum()) / total,
        rarest_unknown=float(weights[~is_known].max(initial=0.0)),
        names_speaker=any(re.search(name, features.text, re.IGNORECASE) for name in names),
        asks_for_overview=asks_for_overview_or_order(features.text),
        chunks=corpus.chunks,
    )


def _background(index: UserIndex) -> tuple[float, float]:
    """Return the mean cosine of chunks with each other and its deviation, of few chunks nearer to the usual ones."""
    mean, deviation, pairs = index.pair_cosines
    share = pairs / (pairs + USUAL_PAIRS)
    return share * mean + (1 - share) * USUAL_MEAN, max(share * deviation + (1 - share) * USUAL_DEVIATION, 1e-3)
