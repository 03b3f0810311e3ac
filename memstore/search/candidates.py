"""A query's candidates: every unit of the user ranked in this process, or those that indexes find in the database.

The units of most users are held as arrays in the process. Of a user with too many of them the database finds the best
by words and by vector. What stands beside these may be relevant too ("Yes, in Porto!" by the question before it), so
they come back as arrays with their neighbours and those of the neighbours, and the same code ranks them. It then knows
the speakers of the candidates alone, and the silences between two units of one role.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from uuid import UUID

import numpy as np

from memstore._compat import to_thread
from memstore.models import Tier, UnitKey
from memstore.providers import Vectors
from memstore.search.query import Query
from memstore.search.ranking import LATEST, NOTHING, QueryFeatures, Ranking, best_of_all, rank
from memstore.search.signals import B, Corpus, idf, saturated
from memstore.store import items, postings, vector_indexes
from memstore.store.arrays import Arrays, Rows
from memstore.store.database import Transaction
from memstore.store.items import Filters, Version
from memstore.store.postings import Matches

DEPTH = 200  # units, of each tier or of all, that are ranked exactly
OF_A_SUBQUERY = 5  # units that count of what a subquery finds; 10 are worth the same
PER_INDEX = 100  # units that each index finds, before their neighbours are added; others rank below 200
FILTERED = 1000  # units that the vector index gives, to be filtered: enough for filters that let a tenth through
ROUNDS = (1000, 10_000, 100_000)  # units that are filtered, the best ones first, until enough are let through


@dataclass(frozen=True, slots=True)
class SearchSpec:
    """What is searched: the best `depth` units that the filters let through, of each tier or `across_tiers`.

    The first unit of each item in `include_ids` is ranked whatever its score is.
    """

    filters: Filters
    depth: int
    include_ids: Sequence[UUID]
    across_tiers: bool


@dataclass(frozen=True, slots=True)
class IndexCandidates:
    """What the indexes found, with neighbours: arrays, the distance of each row from what was found, and the corpus."""

    arrays: Arrays
    distances: Rows
    corpus: Corpus


async def rank_candidates(
    scope: Transaction,
    query: Query,
    filters: Filters,
    depth: int = DEPTH,
    include_ids: Sequence[UUID] = (),
    *,
    version: Version | None,
    across_tiers: bool = False,
) -> Ranking:
    """Rank the best units of each tier, or `across_tiers`, and the first one of each item in `include_ids`.

    `version` is that of the user's units that was read before; None where the user has none. The query is one for that
    version: whatever model is active since, it is compared only with vectors of its own.
    """
    spec = SearchSpec(filters, depth, include_ids, across_tiers)
    whole = await _rank_query(scope, query, version, spec)
    if not query.subqueries or not whole.tiers:
        return whole
    best = next(whole.of(*Tier)).score
    parts = [await _rank_query(scope, subquery, version, spec) for subquery in query.subqueries]
    return best_of_all([whole, *(part.first(OF_A_SUBQUERY, best) for part in parts)])


async def _rank_query(scope: Transaction, query: Query, version: Version | None, spec: SearchSpec) -> Ranking:
    if version is None:  # nothing is stored of the user, or no longer
        scope.cache.forget(scope.user_id)
        return NOTHING
    if version.units > scope.cache.most_units:
        return await _rank_by_indexes(scope, query, version, spec)
    arrays = await items.arrays(scope, query.model, version.version)
    if arrays is None:
        return NOTHING
    query = await query.for_speakers(arrays.tellers)
    tags = spec.filters.tags
    tagged = None if tags is None else await items.tagged(scope, tags)
    return await to_thread(_rank_arrays, arrays, version, query, spec, tagged)


def _rank_arrays(
    arrays: Arrays, version: Version, query: Query, spec: SearchSpec, tagged: Sequence[UUID] | None
) -> Ranking:
    filters, corpus = spec.filters, Corpus(version.units, version.unit_length)
    if filters.as_of is not None:
        arrays = arrays.known_at(filters.as_of)
        corpus = Corpus(len(arrays), int(arrays.lengths.sum()))
    shown: Rows | None = None
    if not filters.everything:
        shown = arrays.seen_through(**filters.on_columns())
    if tagged is not None:
        shown = np.intersect1d(
            np.arange(len(arrays)) if shown is None else shown, arrays.whole_items(arrays.first_rows(tagged))
        )
    include = arrays.first_rows(spec.include_ids)
    return rank(arrays, query, corpus, spec.depth, shown, include, together=spec.across_tiers)


async def _rank_by_indexes(scope: Transaction, query: Query, version: Version, spec: SearchSpec) -> Ranking:
    found = await search_indexes(scope, query, version, spec)
    if found is None:
        return NOTHING
    again = await query.for_speakers(scope.cache.hear(scope.user_id, query.model, found.arrays.tellers))
    if again is not query:  # it names a speaker who is found for the first time
        found = await search_indexes(scope, again, version, spec) or found
    return await to_thread(_rank_found, found, again, spec)


async def search_indexes(
    scope: Transaction, query: Query, version: Version, spec: SearchSpec
) -> IndexCandidates | None:
    """Return what the indexes find, and the first unit of each item that is wanted; None where there is nothing."""
    filters, units, length = spec.filters, version.units, version.unit_length
    if filters.as_of is not None:
        units, length = await items.corpus_as_of(scope, filters.as_of)
    matches = await postings.matches(scope, list(query.terms.values()), version.posted, filters.as_of)
    corpus = Corpus(units, length, matches.holding)
    count = max(PER_INDEX, spec.depth // 2)
    numbers = await _shown(scope, filters, await to_thread(best_by_words, matches, corpus), count)
    keys = [UnitKey(item_id, 0) for item_id in spec.include_ids]
    if query.vector is None:
        keys += await items.latest(scope, filters, LATEST)
    else:
        keys += await _nearest(scope, query.vector, query.model, filters, version, count)
    found = await items.around(scope, query.model, keys, numbers, filters.as_of)
    return None if found is None else IndexCandidates(*found, corpus)


def _rank_found(found: IndexCandidates, features: QueryFeatures, spec: SearchSpec) -> Ranking:
    filters, include = spec.filters, found.arrays.first_rows(spec.include_ids)
    far = 0 if filters.tags is not None else items.BESIDE  # neighbours' tags are not known
    shown = np.flatnonzero(found.distances <= far)
    if not filters.everything:
        shown = np.intersect1d(shown, found.arrays.seen_through(**filters.on_columns()))
    return rank(found.arrays, features, found.corpus, spec.depth, shown, include, together=spec.across_tiers)


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
) -> list[UnitKey]:
    """Give the units nearest to a vector: by the index where there is one, and enough of what it finds is shown."""
    if version.units > scope.cache.most_units and await vector_indexes.is_ready(scope, model):
        if filters.everything:
            return await vector_indexes.nearest(scope, query, model, count)
        near = await vector_indexes.nearest(scope, query, model, FILTERED)
        passing = {key for _, key in await items.shown(scope, filters, keys=near)}
        if len(passing) >= count:
            return [key for key in near if key in passing][:count]
    return list(await items.nearest(scope, query, model, filters, count))


def best_by_words(matches: Matches, corpus: Corpus) -> Rows:
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
