"""Ranking for users of whom too much is stored to keep it in the process: the database finds candidates.

Each leg is asked for its best. What stands beside these may be found too ("Yes, in Porto!" by the question before it),
so they come back as arrays with their neighbours and those of the neighbours, and the same code ranks them. Of speakers
it knows those of the candidates alone, and of a silence what lies between two units of one role.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from uuid import UUID

import numpy as np

from memstore.models import Key
from memstore.providers import Vectors
from memstore.retrieve.question import Question
from memstore.retrieve.rank import LATEST, Asked, Ranking, rank
from memstore.retrieve.signals import B, Corpus, idf, saturated
from memstore.store import items, postings, vector_indexes
from memstore.store.arrays import Arrays, Rows
from memstore.store.database import Transaction
from memstore.store.items import Filters, Version
from memstore.store.postings import Matches
from memstore.waiting import in_thread

LEG = 100  # units that each leg finds, before their neighbours are added: what is beyond, ranking puts beyond 200
FILTERED = 1000  # units that the index gives, to be filtered: enough for filters that let a tenth through
ROUNDS = (1000, 10_000, 100_000)  # units that are filtered, the best ones first, until enough are let through


@dataclass(frozen=True, slots=True)
class Sought:
    """What is looked for: of what the filters show the best `depth` units of each tier, or of all `together`.

    The first unit of each item in `also` is ranked whatever its score is.
    """

    filters: Filters
    depth: int
    also: Sequence[UUID]
    together: bool


@dataclass(frozen=True, slots=True)
class Scanned:
    """What the legs found, with neighbours: arrays, how many steps each row is from what was found, and the corpus."""

    arrays: Arrays
    steps: Rows
    corpus: Corpus


async def scanned(scope: Transaction, question: Question, version: Version, sought: Sought) -> Scanned | None:
    """Give what the legs found, and the first unit of each item that is wanted; None where there is nothing."""
    filters, units, length = sought.filters, version.units, version.unit_length
    if filters.as_of is not None:
        units, length = await items.corpus_as_of(scope, filters.as_of)
    matches = await postings.matches(scope, list(question.terms.values()), version.posted, filters.as_of)
    corpus = Corpus(units, length, matches.holding)
    most = max(LEG, sought.depth // 2)
    numbers = await _shown(scope, filters, await in_thread(best, matches, corpus), most)
    keys = [Key(item_id, 0) for item_id in sought.also]
    if question.vector is None:
        keys += await items.latest(scope, filters, LATEST)
    else:
        keys += await _nearest(scope, question.vector, question.model, filters, version, most)
    found = await items.around(scope, question.model, keys, numbers, filters.as_of)
    return None if found is None else Scanned(*found, corpus)


def ranked(found: Scanned, question: Asked, sought: Sought) -> Ranking:
    """Rank what the legs found and, of what stands beside it, what the filters show. Pure."""
    filters, also = sought.filters, found.arrays.first_rows(sought.also)
    far = 0 if filters.tags is not None else items.BESIDE  # neighbours' tags are not known
    shown = np.flatnonzero(found.steps <= far)
    if not filters.everything:
        shown = np.intersect1d(shown, found.arrays.seen_through(**filters.on_columns()))
    return rank(found.arrays, question, found.corpus, sought.depth, shown, also, together=sought.together)


async def _shown(scope: Transaction, filters: Filters, numbers: Rows, count: int) -> list[int]:
    """Give the first `count` of the units that a filter lets through."""
    ordered: list[int] = numbers.tolist()
    if filters.everything:
        return ordered[:count]
    found: list[int] = []
    for start, stop in pairwise((0, *ROUNDS, len(ordered))):
        some = ordered[start:stop]
        if some and len(found) < count:
            passing = {number for number, _ in await items.shown(scope, filters, numbers=some)}
            found += [number for number in some if number in passing]
    return found[:count]


async def _nearest(
    scope: Transaction, query: Vectors, model: UUID, filters: Filters, version: Version, count: int
) -> list[Key]:
    """Give the units nearest to a vector: by the index where there is one, and enough of what it finds is shown."""
    if version.units > scope.cache.most_units and await vector_indexes.is_ready(scope, model):
        if filters.everything:
            return await vector_indexes.nearest(scope, query, model, count)
        near = await vector_indexes.nearest(scope, query, model, FILTERED)
        passing = {key for _, key in await items.shown(scope, filters, keys=near)}
        if len(passing) >= count:
            return [key for key in near if key in passing][:count]
    return list(await items.nearest(scope, query, model, filters, count))


def best(matches: Matches, corpus: Corpus) -> Rows:
    """Give the numbers of units by BM25, the highest first, by the terms whose holders are known. Pure."""
    some = [(matches.holding[term], found) for term, found in matches.postings.items() if len(found)]
    if not some:
        return np.empty(0, dtype=np.intp)
    added = [
        idf(holding, corpus.units) * saturated(found.counts, found.lengths, corpus.mean_length, B)
        for holding, found in some
    ]
    scores = np.bincount(np.concatenate([found.numbers for _, found in some]), np.concatenate(added))
    numbers = np.flatnonzero(scores)
    return numbers[np.lexsort((-numbers, -scores[numbers]))]
