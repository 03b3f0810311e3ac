"""A query's candidates, and the hits that they become.

The chunks of most users are held as arrays in this process, and all are ranked. Of a user with too many of them the
database's indexes find the best by words and by vector. What stands beside these may be relevant too ("Yes, in Porto!"
by the question before it), so they come as arrays with their neighbours, and the same code ranks them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import islice, pairwise, takewhile
from typing import Any
from uuid import UUID

import numpy as np

from memstore._compat import to_thread
from memstore.models import ChunkKey, Hit, Message, Tier
from memstore.providers import Vectors
from memstore.search.query import Query, QueryBuilder
from memstore.search.ranking import LATEST, NOTHING, Candidate, Ranking, best_of_each, rank
from memstore.search.signals import B, Corpus, idf, saturated
from memstore.store import chunks, messages, postings, vector_indexes
from memstore.store.chunks import Filters, IndexVersion, ItemText
from memstore.store.database import Transaction
from memstore.store.postings import Matches
from memstore.store.user_index import Rows, UserIndex

DEPTH = 200  # chunks of each tier that are ranked exactly for a context; for recall half of it
PER_INDEX = 100  # chunks that each index finds, before their neighbours are added; others rank below 200
FILTERED = 1000  # chunks that the vector index gives, to be filtered: enough for filters that let a tenth through
ROUNDS = (1000, 10_000, 100_000)  # chunks that are filtered, the best ones first, until enough are let through


@dataclass(frozen=True, slots=True)
class IndexCandidates:
    """What the indexes found, with neighbours: rows, how far each is from what was found, and the corpus."""

    index: UserIndex
    distances: Rows
    corpus: Corpus


async def recall(
    builder: QueryBuilder, question: str, *, filters: Filters, limit: int, min_score: float | None
) -> list[Hit]:
    """Return the best items for a question, each once, the best first."""
    query = await builder.build(question, await builder.guess_embedder())
    async with builder.open(query) as (scope, query, version):
        ranking = await rank_candidates(scope, query, filters, max(DEPTH // 2, 4 * limit), version=version)
        candidates = best_of_each(ranking.of(*Tier))
        if min_score is not None:
            candidates = takewhile(lambda one: one.score >= min_score, candidates)
        hits: list[Hit] = []
        while len(hits) < limit and (page := list(islice(candidates, limit))):
            hits += await to_hits(scope, page, filters.as_of)
    return hits[:limit]


async def facts_with_evidence(
    builder: QueryBuilder, question: str, *, filters: Filters, limit: int, min_score: float | None
) -> tuple[list[Hit], list[Hit]]:
    """Return the best facts for a question, and the whole messages that they were made from, with the facts' scores.

    Filters choose the facts; of the messages only those are left out that were recorded after `as_of`.
    """
    only_facts = replace(filters, tiers=(Tier.FACTS,))
    facts = await recall(builder, question, filters=only_facts, limit=limit, min_score=min_score)
    scores = {message: fact.score for fact in reversed(facts) for message in fact.sources}
    async with builder.database.user_transaction(builder.user_id) as scope:
        known = await messages.known(scope, sorted(scores))
    return facts, [
        message_hit(one, score=scores[one.id])
        for one in known.values()
        if filters.as_of is None or one.recorded_at <= filters.as_of
    ]


def message_hit(message: Message, **changes: Any) -> Hit:
    """Return a hit on a whole message; `changes` take the place of what it is by default."""
    values: dict[str, Any] = {
        "text": message.text or "",
        "score": 0.0,
        "parts": {},
        "sources": (message.id,),
        "occurred_at": message.occurred_at,
        "conversation_id": message.conversation_id,
        "seq": message.seq,
        "role": message.role,
        "speaker": message.name or message.role,
    }
    return Hit(tier=Tier.MESSAGES, id=message.id, **values | changes)


async def to_hits(scope: Transaction, chosen: Sequence[Candidate], as_of: datetime | None = None) -> list[Hit]:
    """Return hits for candidates, with their texts and sources; what is gone meanwhile is left out."""
    said = await chunks.load_texts(scope, [one.chunk for one in chosen], as_of)
    return [make_hit(one, said[one.chunk.item_id]) for one in chosen if one.chunk.item_id in said]


def make_hit(one: Candidate, said: ItemText) -> Hit:
    """Return the hit that a candidate becomes."""
    chunk = one.chunk
    return Hit(
        tier=Tier(chunk.tier),
        id=chunk.item_id,
        text=(said.text or "")[chunk.start : chunk.stop],
        score=one.score,
        parts=one.parts,
        sources=(chunk.item_id,) if chunk.tier == Tier.MESSAGES else tuple(said.sources),
        occurred_at=chunk.occurred_at,
        conversation_id=chunk.conversation_id,
        seq=chunk.seq,
        role=chunk.role,
        speaker=chunk.speaker,
        start=chunk.start,
        valid_to=said.valid_to,
    )


async def rank_candidates(
    scope: Transaction, query: Query, filters: Filters, depth: int = DEPTH, *, version: IndexVersion | None
) -> Ranking:
    """Rank the best `depth` chunks of each tier that the filters let through.

    `version` is that of the user's chunks that was read before; None where the user has none. The query is one for that
    version: whatever model is active since, it is compared only with vectors of its own.
    """
    if version is None:  # nothing is stored of the user, or no longer
        scope.cache.forget(scope.user_id)
        return NOTHING
    if version.chunks > scope.cache.max_chunks:
        return await _rank_by_indexes(scope, query, version, filters, depth)
    index = await chunks.read_index(scope, query.model, version.version)
    if index is None:
        return NOTHING
    query = await query.for_speakers(index.speakers_of_messages)
    tagged = None if filters.tags is None else await chunks.items_with_tags(scope, filters.tags)
    return await to_thread(_rank_index, index, version, query, filters, depth, tagged)


def _rank_index(
    index: UserIndex,
    version: IndexVersion,
    query: Query,
    filters: Filters,
    depth: int,
    tagged: Sequence[UUID] | None,
) -> Ranking:
    corpus = Corpus(version.chunks, version.chunk_length)
    if filters.as_of is not None:
        index = index.as_of(filters.as_of)
        corpus = Corpus(len(index), int(index.lengths.sum()))
    visible = None if filters.everything else index.filter(**filters.on_columns())
    if visible is not None and tagged is not None:
        visible = np.intersect1d(visible, index.whole_items(index.first_rows(tagged)))
    return rank(index, query, corpus, depth, visible)


async def _rank_by_indexes(
    scope: Transaction, query: Query, version: IndexVersion, filters: Filters, depth: int
) -> Ranking:
    found = await search_indexes(scope, query, version, filters, depth)
    if found is None:
        return NOTHING
    again = await query.for_speakers(
        scope.cache.add_speakers(scope.user_id, query.model, found.index.speakers_of_messages)
    )
    if again is not query:  # it names a speaker who is found for the first time
        found = await search_indexes(scope, again, version, filters, depth) or found
    return await to_thread(_rank_found, found, again, filters, depth)


async def search_indexes(
    scope: Transaction, query: Query, version: IndexVersion, filters: Filters, depth: int
) -> IndexCandidates | None:
    """Return what the indexes find; None where there is nothing."""
    size, length = version.chunks, version.chunk_length
    if filters.as_of is not None:
        size, length = await chunks.corpus_as_of(scope, filters.as_of)
    matches = await postings.matches(scope, list(query.terms.values()), version.posted, filters.as_of)
    corpus = Corpus(size, length, matches.holding)
    count = max(PER_INDEX, depth // 2)
    numbers = await _visible(scope, filters, await to_thread(best_by_words, matches, corpus), count)
    if query.vector is None:
        keys = await chunks.latest(scope, filters, LATEST)
    else:
        keys = await _nearest(scope, query.vector, query.model, filters, version, count)
    found = await chunks.read_neighbourhood(scope, query.model, keys, numbers, filters.as_of)
    return None if found is None else IndexCandidates(*found, corpus)


def _rank_found(found: IndexCandidates, query: Query, filters: Filters, depth: int) -> Ranking:
    reach = 0 if filters.tags is not None else chunks.BESIDE  # neighbours' tags are not known
    visible = np.flatnonzero(found.distances <= reach)
    if not filters.everything:
        visible = np.intersect1d(visible, found.index.filter(**filters.on_columns()))
    return rank(found.index, query, found.corpus, depth, visible)


async def _visible(scope: Transaction, filters: Filters, numbers: Rows, count: int) -> list[int]:
    """Return the first `count` of the chunks that a filter lets through."""
    ordered: list[int] = numbers.tolist()
    if filters.everything:
        return ordered[:count]
    visible: list[int] = []
    for start, stop in pairwise((0, *ROUNDS, len(ordered))):
        some = ordered[start:stop]
        if some and len(visible) < count:
            passing = {number for number, _ in await chunks.filter_chunks(scope, filters, numbers=some)}
            visible += [number for number in some if number in passing]
    return visible[:count]


async def _nearest(
    scope: Transaction, query: Vectors, model: UUID, filters: Filters, version: IndexVersion, count: int
) -> list[ChunkKey]:
    """Return the chunks nearest to a vector: by the index where there is one that finds enough visible ones."""
    if version.chunks > scope.cache.max_chunks and await vector_indexes.is_ready(scope, model):
        if filters.everything:
            return await vector_indexes.nearest(scope, query, model, count)
        near = await vector_indexes.nearest(scope, query, model, FILTERED)
        passing = {key for _, key in await chunks.filter_chunks(scope, filters, keys=near)}
        if len(passing) >= count:
            return [key for key in near if key in passing][:count]
    return list(await chunks.nearest(scope, query, model, filters, count))


def best_by_words(matches: Matches, corpus: Corpus) -> Rows:
    """Return the numbers of chunks by BM25, the highest first, by the terms whose holders are known. Pure."""
    some = [(matches.holding[term], found) for term, found in matches.postings.items() if len(found)]
    if not some:
        return np.empty(0, dtype=np.intp)
    added = [
        idf(holding, corpus.chunks) * saturated(found.counts, found.lengths, corpus.mean_length, B)
        for holding, found in some
    ]
    scores = np.bincount(np.concatenate([found.numbers for _, found in some]), np.concatenate(added))
    numbers = np.flatnonzero(scores)
    return numbers[np.lexsort((-numbers, -scores[numbers]))]
