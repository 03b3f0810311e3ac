"""Ranking: every chunk of a user by the weighted sum of its signals. The whole configuration is one table. Pure.

To add a signal, write its function in `signals`, name it in `WEIGHTS`, and call it in `rank`. If it needs more of a
chunk than the arrays of `UserIndex` have, make that a term of the chunk in `store.tokenize.TEXT_TERMS`, and raise
`TOKENIZER_VERSION`: the next derivation makes the terms of stored chunks anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from memstore.models import Chunk, Tier
from memstore.providers import Vectors
from memstore.search import questions, signals
from memstore.search.signals import Corpus, Floats
from memstore.store.user_index import TIERS, Rows, UserIndex

# Worth: the points of evidence recall that ranking loses without the signal, on the data sets LoCoMo and BEAM (their
# halves for development), mean over all budgets. A weighted sum of scores beats reciprocal rank fusion by 2.5 points.
WEIGHTS: Mapping[str, float] = {
    # Cosine of the question and "Speaker: text"; worth 5.4.
    "semantic": 1.0,
    # The same of the chunk with its neighbours; the two share, by the chunk's length. Worth 1.1 more.
    "semantic_neighbours": 1.0,
    # BM25, divided by the question's best: exact words are what an embedder loses. Worth 5.
    "lexical": 0.45,
    # The same of the chunk with its neighbours, as talk is in pieces; the two share likewise. Worth 2.2.
    "lexical_neighbours": 0.45,
    # The only name in the question is this chunk's speaker. Worth 0.9; 9 where LoCoMo needs several messages.
    "speaker": 0.2,
    # Said in the month or year that the question names; twice for the day. Worth 0.6, nearly all on LoCoMo.
    "date": 0.35,
    # Said by a person: most of what is asked for later, but where an assistant's words are. Worth 6.8; 13 on BEAM.
    "role": 0.4,
    # Leaves room for others. Worth 1.3, nearly all on BEAM; 0.06 to 0.1 are a plateau.
    "brevity": 0.08,
    # -1 for what only asks for what the next one says. Worth 0.4, all on LoCoMo.
    "is_question": 0.15,
    # Only for questions about the assistant's words or for an overview: the score (without `role`) of the message that
    # a chunk answers. Worth 1.2 on BEAM 100K; 0.6 to 0.8 are a plateau.
    "answered_message": 0.65,
    # Only for other questions, which are about one event: said by a person near the best hit. Worth 0.1 in LoCoMo's
    # contexts, nothing on BEAM; more of it, or near more hits than one, costs BEAM more than it gives.
    "same_session": 0.05,
}
# In place of those where several things are asked for: their words are not those of the question.
LIST_WEIGHTS: Mapping[str, float] = {**WEIGHTS, "lexical": 0.38, "speaker": 0.3, "is_question": 0.2}
# And where the topic stands all over a talk: from many places a little each.
OVERVIEW_WEIGHTS: Mapping[str, float] = {**LIST_WEIGHTS, "brevity": 0.2, "answered_message": 0.8}
NEWEST = 20


@dataclass(frozen=True, slots=True)
class RankedChunk:
    chunk: Chunk
    parts: Mapping[str, float]

    @property
    def score(self) -> float:
        return round(sum(self.parts.values()), 6)


@dataclass(frozen=True, slots=True)
class RankedChunks:
    """The chunks that a ranking is of: the `allowed` rows of an index, and the figures of all the user's chunks.

    `cosines` are the rough ones of all rows with the question; None without its vector.
    """

    index: UserIndex
    corpus: Corpus
    allowed: Rows
    cosines: Floats | None


@dataclass(frozen=True, slots=True)
class Ranking:
    """Candidates by score. Few of them are ever looked at, so they are built then: `build` takes their places.

    `best_lexical` are the best scores by words, alone and with neighbours, of which the parts are shares.
    """

    tiers: Sequence[Tier]
    build: Callable[[Sequence[int]], Sequence[RankedChunk]]
    ranked: RankedChunks | None = None
    best_lexical: tuple[float, float] = (0.0, 0.0)

    def of_tiers(self, *tiers: Tier) -> Iterator[RankedChunk]:
        places = (place for place, tier in enumerate(self.tiers) if tier in tiers)
        while batch := list(islice(places, 20)):
            yield from self.build(batch)


EMPTY_RANKING = Ranking((), lambda _: ())


@dataclass(frozen=True, slots=True)
class QueryFeatures:
    """What ranking uses of a query: the text, its vector (None without an embedder), its terms and their hashes.

    `text_terms` are the hashes of `TEXT_TERMS`. Of a question without known words the vector says little.
    """

    text: str
    vector: Vectors | None
    terms: Mapping[str, int]
    text_terms: Mapping[str, int] = field(default_factory=dict)
    has_known_words: bool = True


def rank(index: UserIndex, features: QueryFeatures, corpus: Corpus, depth: int, allowed: Rows | None = None) -> Ranking:
    """Rank the `depth` best chunks of each tier, in one order.

    Only `allowed` ones, in order, may be found; the others are neighbours of theirs. Of equal chunks those said last
    come first, then the smaller id.
    """
    # Cosines are computed twice: of all chunks in 32 bits to see which may be among the best, of those in 64 bits. So
    # the last bits of a sum, which depend on how a matrix is laid out, decide nothing.
    allowed = np.arange(len(index)) if allowed is None else allowed
    rough_cosines = None if features.vector is None else signals.rough_cosines(index, features.vector)
    ranked = RankedChunks(index, corpus, allowed, rough_cosines)
    neighbour_weight = signals.neighbour_weight(index)
    weights = WEIGHTS
    if questions.asks_for_overview_or_order(features.text):
        weights = OVERVIEW_WEIGHTS
    elif questions.asks_for_list(features.text):
        weights = LIST_WEIGHTS
    lexical, lexical_neighbours, best_lexical = signals.lexical(index, features.terms, corpus, allowed)
    values = {
        "lexical": (1 - neighbour_weight) * lexical,
        "lexical_neighbours": neighbour_weight * lexical_neighbours,
        "speaker": signals.speaker(index, features.text),
        "date": signals.date(index, features.text),
    }
    # By words alone nearly all chunks are nothing to the question: the latest are there for one that matches nothing.
    if features.vector is None:
        latest = allowed[_order(index, allowed, np.zeros(len(allowed)))[:NEWEST]]
        allowed = np.union1d(allowed[_sum(values, weights)[allowed] > 0], latest)
    asks_assistant = questions.asks_for_assistant_words(features.text)
    values["role"] = np.zeros(len(index)) if asks_assistant else index.by_person
    values["brevity"] = signals.brevity(index)
    values["is_question"] = signals.is_question(index, features.text_terms.get("?", 0))
    values["answered_message"] = np.zeros(len(index))
    boosts_answers = asks_assistant or questions.asks_for_overview(features.text)
    rough = values.copy()
    if rough_cosines is not None:
        rough |= _semantic(index, rough_cosines, neighbour_weight, slice(None))
    if boosts_answers:
        rough["answered_message"] = _answers(index, rough, slice(None), weights)
    best = rows = _best(index, _sum(rough, weights), allowed, depth)
    if boosts_answers:
        rows = np.union1d(best, signals.answered_rows(index, best))
    exact = {name: of_all[rows] for name, of_all in values.items()}
    if features.vector is not None:
        beside = np.zeros(len(index) + 1, dtype=np.bool_)
        beside[index.neighbours[:, rows]] = True
        cosines = signals.cosines(index, features.vector, np.flatnonzero(beside[:-1]))
        exact |= _semantic(index, cosines, neighbour_weight, rows)
    if boosts_answers:
        exact["answered_message"] = _answers(index, exact, rows, weights)
    chosen = np.isin(rows, best) if boosts_answers else slice(None)
    parts = {name: np.round(weight * exact[name][chosen], 6) for name, weight in weights.items() if name in exact}
    rows = rows[chosen]
    is_of_one_event = weights is WEIGHTS and not boosts_answers and len(rows) > 0
    parts["same_session"] = np.zeros(len(rows))
    if is_of_one_event:
        total = np.round(sum(parts.values()), 9)
        highest = rows[total == total.max()]
        first = highest[_order(index, highest, np.zeros(len(highest)))[0]]
        parts["same_session"] = np.round(weights["same_session"] * signals.same_session(index, first, rows), 6)
    if features.vector is None or not features.has_known_words:
        parts["lexical"] -= _lead_without_words(index, rows, values, parts, only_words=features.vector is None)
    return replace(_ranking(index, rows, parts, depth), ranked=ranked, best_lexical=best_lexical)


def _lead_without_words(
    index: UserIndex, rows: Rows, values: Mapping[str, Floats], parts: Mapping[str, Floats], *, only_words: bool
) -> Floats:
    """Return by how much chunks without any of the question's words score more than those by which they are found.

    "Sure." does not come before the only message with a number. What no signal finds, `only_words`, comes last.
    """
    has_words = values["lexical"][rows] > 0
    scores = np.round(np.sum([*parts.values()], axis=0), 6)
    if not has_words.any():
        return np.zeros(len(rows))
    of_holders = np.full(len(index) + 1, -np.inf)
    of_holders[rows[has_words]] = scores[has_words]
    most = of_holders[index.neighbours[:, rows]].max(axis=0)
    if only_words:
        without_vector = ("lexical", "lexical_neighbours", "speaker", "date")
        is_found = np.logical_or.reduce([values[name][rows] > 0 for name in without_vector])
        most[~is_found] = scores[is_found].min() - 1e-6
    leads = ~has_words & np.isfinite(most) & (scores >= most)
    lead: Floats = np.where(leads, np.round(scores - np.where(leads, most, 0) + 1e-6, 6), 0.0)
    return lead


def _answers(
    index: UserIndex, values: Mapping[str, Floats], rows: Rows | slice, weights: Mapping[str, float]
) -> Floats:
    return signals.answers(index, _sum(values, weights) - weights["role"] * values["role"], rows)


def _semantic(index: UserIndex, cosines: Floats, neighbour_weight: Floats, rows: Rows | slice) -> dict[str, Floats]:
    context = signals.neighbour_cosines(index, cosines, rows)
    return {
        "semantic": (1 - neighbour_weight)[rows] * np.maximum(cosines[rows], 0.0),
        "semantic_neighbours": neighbour_weight[rows] * np.maximum(context, 0.0),
    }


def _sum(values: Mapping[str, Floats], weights: Mapping[str, float]) -> Floats:
    """Return the scores: added in the order of the weights, so that every sum is rounded alike."""
    first, *rest = (weight * values[name] for name, weight in weights.items() if name in values)
    total: Floats = sum(rest, first)
    return total


def _best(index: UserIndex, scores: Floats, allowed: Rows, depth: int) -> Rows:
    best = []
    for places in _by_tier(index.tiers[allowed]):
        rows = allowed[places]
        if len(rows) > depth:
            of_these = scores[rows]
            # More than a score with cosines in 32 bits can be wrong.
            rows = rows[of_these >= np.partition(of_these, -depth)[-depth] - 1e-3]
        best.append(rows)
    return np.concatenate(best)


def _by_tier(tiers: NDArray[np.int16]) -> list[Rows]:
    return [(tiers == tier).nonzero()[0] for tier in range(1, len(TIERS) + 1)]


def _order(index: UserIndex, rows: Rows, scores: Floats) -> Rows:
    return np.lexsort((index.rank[rows], -index.times[rows], -scores))


def _ranking(index: UserIndex, rows: Rows, parts: Mapping[str, Floats], depth: int) -> Ranking:
    order = _order(index, rows, np.round(np.sum([*parts.values()], axis=0), 9))
    kept = np.sort(np.concatenate([places[:depth] for places in _by_tier(index.tiers[rows[order]])]))
    order = order[kept]
    tiers = index.tiers[rows[order]]

    def build(places: Sequence[int]) -> list[RankedChunk]:
        chosen = order[list(places)]
        values = zip(*(values[chosen].tolist() for values in parts.values()), strict=True)
        chunks = index.chunks(rows[chosen])
        return [
            RankedChunk(chunk, dict(zip(parts, chunk_values, strict=True)))
            for chunk, chunk_values in zip(chunks, values, strict=True)
        ]

    return Ranking([TIERS[tier - 1] for tier in tiers.tolist()], build)


def best_of_each(candidates: Iterable[RankedChunk]) -> Iterator[RankedChunk]:
    seen: set[UUID] = set()
    for candidate in candidates:
        if candidate.chunk.item_id not in seen:
            seen.add(candidate.chunk.item_id)
            yield candidate
