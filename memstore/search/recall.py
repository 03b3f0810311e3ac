"""Recall: query → candidates → hits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import islice, takewhile

from memstore.models import Hit, Tier
from memstore.search.candidates import DEPTH, rank_candidates
from memstore.search.query import Query, QueryBuilder
from memstore.search.ranking import NOTHING, Candidate, best_of_each
from memstore.store import items
from memstore.store.database import Transaction
from memstore.store.items import Filters, Said, Version

FEW = 3  # units for each hit that is wanted: some are chunks of one item


async def to_hits(scope: Transaction, chosen: Sequence[Candidate], as_of: datetime | None = None) -> list[Hit]:
    """Return hits for candidates, with their texts and sources; what is gone meanwhile is left out."""
    units = [one.unit for one in chosen]
    async with scope.ahead() as reads:
        await items.said(reads, units, as_of)
    said = await items.said(scope, units, as_of)
    return [_hit(one, said[one.unit.item_id]) for one in chosen if one.unit.item_id in said]


def _hit(one: Candidate, said: Said) -> Hit:
    unit = one.unit
    return Hit(
        tier=Tier(unit.tier),
        id=unit.item_id,
        text=(said.text or "")[unit.start : unit.stop],
        score=one.score,
        parts=one.parts,
        sources=(unit.item_id,) if unit.tier == Tier.MESSAGES else tuple(said.sources),
        occurred_at=unit.occurred_at,
        conversation_id=unit.conversation_id,
        seq=unit.seq,
        role=unit.role,
        speaker=unit.speaker,
        start=unit.start,
        valid_to=said.valid_to,
    )


async def recall(
    builder: QueryBuilder, question: str, *, filters: Filters, limit: int, min_score: float | None
) -> list[Hit]:
    """Return the best items for a question, each once, the best first."""
    query = await builder.add_subqueries(await builder.build(question, await builder.guess_embedder()))
    async with builder.open(query) as (scope, query, version):
        return await _best(scope, query, version, filters, limit, min_score)


async def facts_with_evidence(
    builder: QueryBuilder, question: str, *, filters: Filters, limit: int, min_score: float | None
) -> tuple[list[Hit], list[Hit]]:
    """Return the best facts for a question, and the whole messages that they were made from, with their own scores.

    Filters choose the facts; of the messages only those are left out that were recorded after `as_of`, or that are not
    embedded yet.
    """
    query = await builder.add_subqueries(await builder.build(question, await builder.guess_embedder()))
    async with builder.open(query) as (scope, query, version):
        facts = await _best(scope, query, version, filters, limit, min_score, Tier.FACTS)
        sources = dict.fromkeys(sorted(message for fact in facts for message in fact.sources))
        ranking = await rank_candidates(scope, query, filters, 1, [*sources], version=version) if sources else NOTHING
        messages = [one for one in best_of_each(ranking.of(Tier.MESSAGES)) if one.unit.item_id in sources]
        said = await items.said(scope, [one.unit for one in messages])
    there = [(one, said[one.unit.item_id]) for one in messages if one.unit.item_id in said]
    return facts, [replace(_hit(one, whole), text=whole.text or "", start=0) for one, whole in there]


async def _best(
    scope: Transaction,
    query: Query,
    version: Version | None,
    filters: Filters,
    limit: int,
    min_score: float | None,
    tier: Tier | None = None,
) -> list[Hit]:
    """Return the best hits, of all tiers or of one; where few units are too few, many are ranked."""
    found: list[Hit] = []
    few, many = (FEW * limit, tier is None), (max(DEPTH, 4 * limit), False)
    for depth, across_tiers in (few, many) if min_score is None else (many,):
        ranking = await rank_candidates(scope, query, filters, depth, version=version, across_tiers=across_tiers)
        ranked = best_of_each(ranking.of(*(Tier if tier is None else (tier,))))
        found = await _first(scope, ranked, limit, min_score, filters.as_of)
        ranks = len(ranking.tiers) if tier is None else ranking.tiers.count(tier)
        if len(found) == limit or ranks < depth:
            break
    return found


async def _first(
    scope: Transaction, ranked: Iterator[Candidate], limit: int, min_score: float | None, as_of: datetime | None
) -> list[Hit]:
    if min_score is not None:
        ranked = takewhile(lambda one: one.score >= min_score, ranked)
    found: list[Hit] = []
    while len(found) < limit and (page := list(islice(ranked, limit))):
        found += await to_hits(scope, page, as_of)
    return found[:limit]
