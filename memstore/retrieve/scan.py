"""Candidates from the database, for users whose units are not held in this process and for filters by tags.

Every leg is asked for its best; what they found comes back as small arrays, with the neighbours that ranking needs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

import numpy as np

from memstore.models import Key
from memstore.providers import Vectors
from memstore.retrieve.rank import idf, saturated
from memstore.store import items, postings, vector_indexes
from memstore.store.arrays import Arrays, Rows
from memstore.store.database import Transaction
from memstore.store.items import Filters, Version
from memstore.store.postings import Matches

LATEST = 20


@dataclass(frozen=True, slots=True)
class Scanned:
    """Units that may be recalled, as rows of arrays in which their neighbours stand too, and the corpus they are of.

    `holding` is how many of the corpus' units have each of the terms asked for.
    """

    arrays: Arrays
    rows: Rows
    units: int
    length: int
    holding: list[int]


async def scanned(
    scope: Transaction,
    model: UUID,
    query: Vectors | None,
    terms: Sequence[int],
    filters: Filters,
    version: Version,
    depth: int,
    also: Sequence[UUID] = (),
) -> Scanned | None:
    """Give the units that a leg finds among its `depth` best, and the first one of each item in `also`."""
    units, length = version.units, version.unit_length
    if filters.as_of is not None:
        units, length = await items.corpus_as_of(scope, filters.as_of)
    posted = version.posted if filters.everything else 0  # postings know nothing of filters
    matches = await postings.matches(scope, terms, posted, filters.values())
    numbers = best(matches, units, length / max(1, units), depth)
    keys = [*await items.latest(scope, filters, LATEST), *(Key(item_id, 0) for item_id in also)]
    if query is not None:
        keys += await _nearest(scope, query, model, filters, version, depth)
    found = await items.around(scope, model, keys, numbers, filters.as_of)
    if found is None:
        return None
    return Scanned(*found, units, length, [matches.holding[term] for term in terms])


async def _nearest(
    scope: Transaction, query: Vectors, model: UUID, filters: Filters, version: Version, depth: int
) -> list[Key]:
    indexed = filters.everything and version.units > scope.cache.most_units
    if indexed and await vector_indexes.is_ready(scope, model):
        return await vector_indexes.nearest(scope, query, model, depth)
    return list(await items.nearest(scope, query, model, filters, depth))


def best(matches: Matches, units: int, mean_length: float, count: int) -> list[int]:
    """Give the numbers of the units with the highest BM25, by the terms whose holders are known. Pure."""
    some = [(matches.holding[term], found) for term, found in matches.postings.items() if len(found)]
    if not some:
        return []
    units = max(units, *(holding for holding, _ in some))
    numbers = np.concatenate([found.numbers for _, found in some])
    added = [
        saturated(idf(holding, units), found.counts, found.lengths, max(mean_length, 1e-9)) for holding, found in some
    ]
    scores = np.bincount(numbers, np.concatenate(added))
    rows = np.flatnonzero(scores)
    if len(rows) > count:
        rows = rows[scores[rows] >= np.partition(scores[rows], -count)[-count]]
    chosen: list[int] = rows[np.lexsort((-rows, -scores[rows]))][:count].tolist()
    return chosen
