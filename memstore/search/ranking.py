"""Ranking: every unit of a user by the weighted sum of its signals. The whole configuration is one table. Pure.

A weighted sum of normalised scores beats reciprocal rank fusion by 2.5 points of evidence recall on LoCoMo's dev half.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from memstore.models import Tier, Unit, UnitKey
from memstore.providers import Vectors
from memstore.search import signals
from memstore.search.query_analysis import asks_for_assistant_words, asks_for_overview
from memstore.search.signals import Corpus, Floats
from memstore.store.arrays import TIERS, Arrays, Rows

# What each signal counts; `signals` says what each is, why it is there and what it is worth.
WEIGHTS: Mapping[str, float] = {
    "semantic": 1.0,  # cosine of the question and "Speaker: text"
    "semantic_around": 1.0,  # the same of the unit with its neighbours; the two share, by the unit's length
    "lexical": 0.45,  # BM25, divided by the question's best
    "lexical_around": 0.45,  # the same of the unit with its neighbours; the two share likewise
    "speaker": 0.2,  # the only name in the question is this unit's speaker
    "date": 0.35,  # said in the month or year that the question names; twice for the day
    "role": 0.4,  # said by a person: most of what is asked for later, but where an assistant's words are
    "brevity": 0.08,  # leaves room for others
    "question": 0.15,  # -1 for what only asks for what the next one says
    "answers": 0.4,  # where those or an overview are asked for: the score, but for the role, of what one answers
}
ROUGHLY = 1e-3  # more than a score with cosines in 32 bits can be wrong
BUILT_AT_ONCE = 20
LATEST = 20


@dataclass(frozen=True, slots=True)
class Candidate:
    """A unit, with what each signal adds to its score."""

    unit: Unit
    parts: Mapping[str, float]

    @property
    def score(self) -> float:
        """The sum of the parts."""
        return round(sum(self.parts.values()), 6)


@dataclass(frozen=True, slots=True)
class Ranking:
    """Candidates by score. Few of them are ever looked at, so they are built then: `build` takes their places.

    `also` are the places of those that were asked for whatever their score is.
    """

    tiers: Sequence[Tier]
    build: Callable[[Sequence[int]], Sequence[Candidate]]
    also: Sequence[int] = ()

    def of(self, *tiers: Tier) -> Iterator[Candidate]:
        """Give the candidates of some tiers, the best first."""
        places = (place for place, tier in enumerate(self.tiers) if tier in tiers)
        while some := list(islice(places, BUILT_AT_ONCE)):
            yield from self.build(some)

    def first(self, most: int, best: float) -> Ranking:
        """Give the first candidates alone, their scores in proportion: the first one's is `best`."""
        found = self.build(range(min(most, len(self.tiers))))
        if not found or found[0].score <= 0:
            return NOTHING
        scale = best / found[0].score
        level = [
            replace(one, parts={name: round(scale * part, 6) for name, part in one.parts.items()}) for one in found
        ]
        return Ranking([one.unit.tier for one in level], lambda places: [level[place] for place in places])

    def of_those_asked_for(self) -> Sequence[Candidate]:
        """Give the candidates that were asked for."""
        return self.build(self.also)


NOTHING = Ranking((), lambda _: ())


@dataclass(frozen=True, slots=True)
class QueryFeatures:
    """What ranking uses of a query: the text, its vector (None without an embedder), its terms and their hashes.

    `mark` is the hash of the term that questions have.
    """

    text: str
    vector: Vectors | None
    terms: Mapping[str, int]
    mark: int = 0


def rank(
    arrays: Arrays,
    features: QueryFeatures,
    corpus: Corpus,
    depth: int,
    shown: Rows | None = None,
    also: Rows | None = None,
    *,
    together: bool = False,
) -> Ranking:
    """Rank units: the `depth` best ones of each tier, or of all `together`, and those in `also`, in one order.

    `shown` are those that may be found, in order; the others are only neighbours of theirs. Cosines are computed twice:
    of all units in 32 bits to see which may be among the best, of those in 64 bits. So the last bits of a sum, which
    depend on how a matrix is laid out, decide nothing. Of equal units those said last come first, then the lesser name.
    """
    every = np.arange(len(arrays))
    shown = every if shown is None else shown
    also = every[:0] if also is None else also
    around = signals.share_around(arrays)
    shares = {"semantic": 1 - around, "semantic_around": around, "lexical": 1 - around, "lexical_around": around}
    known = _known(arrays, features, corpus, shown, shares)
    if features.vector is None:  # by words alone nearly all units are nothing to the question
        shown = _matching(arrays, known, shown)
    asks_assistant = asks_for_assistant_words(features.text)
    role = np.zeros(len(arrays)) if asks_assistant else signals.role(arrays)
    known |= {"role": role, "brevity": signals.brevity(arrays)}
    known["question"] = signals.question(arrays, features.mark)
    for_answers = asks_assistant or asks_for_overview(features.text)
    rough = _sum(known)
    if features.vector is not None:
        rough += _sum(_semantic(arrays, signals.rough_cosines(arrays, features.vector), shares, slice(None)))
    if for_answers:
        rough += WEIGHTS["answers"] * signals.answers(arrays, rough - WEIGHTS["role"] * known["role"])
    rows = np.union1d(_best(arrays, rough, shown, depth, together), also)
    near = np.union1d(rows, _answered(arrays, rows)) if for_answers else rows
    found = _exact(arrays, features, known, shares, near)
    found["answers"] = _answers(arrays, found, near) if for_answers else np.zeros(len(near))
    places = np.searchsorted(near, rows)
    parts = {name: found[name][places] for name in WEIGHTS if name in found}
    return _ranking(arrays, rows, parts, depth, also, together)


def _known(
    arrays: Arrays, features: QueryFeatures, corpus: Corpus, shown: Rows, shares: Mapping[str, Floats]
) -> dict[str, Floats]:
    """Give what depends on the question and needs no vector."""
    lexical, lexical_around = signals.lexical(arrays, features.terms, corpus, shown)
    return {
        "lexical": shares["lexical"] * lexical,
        "lexical_around": shares["lexical_around"] * lexical_around,
        "speaker": signals.speaker(arrays, features.text),
        "date": signals.date(arrays, features.text),
    }


def _exact(
    arrays: Arrays, features: QueryFeatures, known: Mapping[str, Floats], shares: Mapping[str, Floats], rows: Rows
) -> dict[str, Floats]:
    found = {name: values[rows] for name, values in known.items()}
    if features.vector is not None:
        beside = np.unique(arrays.around[:, rows])
        cosines = signals.cosines(arrays, features.vector, beside[beside < len(arrays)])
        found |= _semantic(arrays, cosines, shares, rows)
    return found


def _answered(arrays: Arrays, rows: Rows) -> Rows:
    """Give the units of what the rows answer."""
    messages, answered = arrays.answered
    wanted = np.zeros(len(arrays) + 1, dtype=np.bool_)
    wanted[answered[rows]] = True
    wanted[-1] = False  # where -1 leads
    return np.flatnonzero(wanted[messages])


def _answers(arrays: Arrays, found: Mapping[str, Floats], rows: Rows) -> Floats:
    scores = np.zeros(len(arrays))
    scores[rows] = _sum(found) - WEIGHTS["role"] * found["role"]
    return signals.answers(arrays, scores)[rows]


def _semantic(arrays: Arrays, cosines: Floats, shares: Mapping[str, Floats], rows: Rows | slice) -> dict[str, Floats]:
    around = signals.cosines_around(arrays, cosines, rows)
    both = {"semantic": cosines[rows], "semantic_around": around}
    return {name: shares[name][rows] * np.maximum(values, 0.0) for name, values in both.items()}


def _sum(found: Mapping[str, Floats]) -> Floats:
    """Give the scores: added in the order of `WEIGHTS`, so that every sum is rounded alike."""
    first, *others = (WEIGHTS[name] * found[name] for name in WEIGHTS if name in found)
    total: Floats = sum(others, first)
    return total


def _matching(arrays: Arrays, known: Mapping[str, Floats], shown: Rows) -> Rows:
    """Give the rows that match anything, and some of what was said last, for questions that match nothing."""
    return np.union1d(shown[_sum(known)[shown] > 0], shown[_order(arrays, shown, np.zeros(len(shown)))[:LATEST]])


def _best(arrays: Arrays, scores: Floats, shown: Rows, depth: int, together: bool) -> Rows:
    """Give the rows that may be among the best of their tier, or of all."""
    found = []
    for places in _parts(arrays.tiers[shown], together):
        rows = shown[places]
        if len(rows) > depth:
            of_these = scores[rows]
            rows = rows[of_these >= np.partition(of_these, -depth)[-depth] - ROUGHLY]
        found.append(rows)
    return np.concatenate(found)


def _parts(tiers: NDArray[np.int16], together: bool) -> list[Rows]:
    if together:
        return [np.arange(len(tiers))]
    return [np.flatnonzero(tiers == tier) for tier in range(1, len(TIERS) + 1)]


def _order(arrays: Arrays, rows: Rows, scores: Floats) -> Rows:
    return np.lexsort((arrays.rank[rows], -arrays.times[rows], -scores))


def _ranking(
    arrays: Arrays, rows: Rows, found: Mapping[str, Floats], depth: int, also: Rows, together: bool
) -> Ranking:
    parts = {name: np.round(WEIGHTS[name] * values, 6) for name, values in found.items()}
    order = _order(arrays, rows, np.round(np.sum([*parts.values()], axis=0), 9))
    tiers = arrays.tiers[rows[order]]
    wanted = np.isin(rows[order], also)
    kept = wanted.copy()
    for places in _parts(tiers, together):
        kept[places[:depth]] = True
    order, tiers, wanted = order[kept], tiers[kept], wanted[kept]

    def build(places: Sequence[int]) -> list[Candidate]:
        chosen = order[list(places)]
        values = zip(*(values[chosen].tolist() for values in parts.values()), strict=True)
        units = arrays.units(rows[chosen])
        return [Candidate(unit, dict(zip(parts, own, strict=True))) for unit, own in zip(units, values, strict=True)]

    return Ranking([TIERS[tier - 1] for tier in tiers.tolist()], build, np.flatnonzero(wanted).tolist())


def best_of_each(candidates: Iterable[Candidate]) -> Iterator[Candidate]:
    """Give only the best unit of each item, in the order given."""
    seen: set[UUID] = set()
    for candidate in candidates:
        if candidate.unit.item_id not in seen:
            seen.add(candidate.unit.item_id)
            yield candidate


def best_of_all(rankings: Iterable[Ranking]) -> Ranking:
    """Give every candidate of several rankings as the one has it in which it scores best, in one order. Pure.

    The greatest of the scores, and not their sum: a message that answers one part of a question says nothing about the
    others. Of equal ones those said last come first, then the lesser name.
    """
    found: dict[UnitKey, Candidate] = {}
    also: set[UnitKey] = set()
    for ranking in rankings:
        also |= {one.unit.key for one in ranking.of_those_asked_for()}
        for one in ranking.of(*Tier):
            known = found.get(one.unit.key)
            if known is None or one.score > known.score:
                found[one.unit.key] = one
    order = sorted(found.values(), key=lambda one: (-one.score, -one.unit.occurred_at.timestamp(), one.unit.key))
    return Ranking(
        [one.unit.tier for one in order],
        lambda places: [order[place] for place in places],
        [place for place, one in enumerate(order) if one.unit.key in also],
    )
