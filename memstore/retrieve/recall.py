"""The path of a question: embedded → every unit ranked → hits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import islice, takewhile
from uuid import UUID

import numpy as np

from memstore.models import Hit, Tier
from memstore.retrieve import scanned
from memstore.retrieve.question import Asker, Question
from memstore.retrieve.rank import NOTHING, Candidate, Ranking, best_of_all, best_of_each, rank
from memstore.retrieve.scanned import Sought
from memstore.retrieve.signals import Corpus
from memstore.store import items
from memstore.store.arrays import Arrays, Rows
from memstore.store.database import Transaction
from memstore.store.items import Filters, Said, Version
from memstore.waiting import in_thread

DEPTH = 200  # units, of each tier or of all, that are ranked exactly
OF_A_PART = 5  # units that count of what is found for a part of the question; 10 are worth the same
FEW = 3  # units for each hit that is wanted: some are chunks of one item


async def candidates(
    scope: Transaction,
    question: Question,
    filters: Filters,
    depth: int = DEPTH,
    also: Sequence[UUID] = (),
    *,
    version: Version | None,
    together: bool = False,
) -> Ranking:
    """Rank the best units of each tier, or of all `together`, and the first one of each item in `also`.

    Those of the `version` that was read before, or of a later one; None where there was nothing of the user. The
    question is one for that version: whatever serves since, it is compared with vectors of its own embedder alone.
    """
    sought = Sought(filters, depth, also, together)
    whole = await _candidates(scope, question, version, sought)
    if not question.parts or not whole.tiers:
        return whole
    best = next(whole.of(*Tier)).score
    parts = [await _candidates(scope, part, version, sought) for part in question.parts]
    return best_of_all([whole, *(part.first(OF_A_PART, best) for part in parts)])


async def _candidates(scope: Transaction, question: Question, version: Version | None, sought: Sought) -> Ranking:
    if version is None:  # nothing is stored of the user, or no longer
        scope.cache.forget(scope.user_id)
        return NOTHING
    if version.units > scope.cache.most_units:
        return await _scanned(scope, question, version, sought)
    arrays = await items.arrays(scope, question.model, version.version)
    if arrays is None:
        return NOTHING
    question = await question.of(arrays.tellers)
    tags = sought.filters.tags
    tagged = None if tags is None else await items.tagged(scope, tags)
    return await in_thread(_ranked, arrays, version, question, sought, tagged)


async def _scanned(scope: Transaction, question: Question, version: Version, sought: Sought) -> Ranking:
    found = await scanned.scanned(scope, question, version, sought)
    if found is None:
        return NOTHING
    again = await question.of(scope.cache.hear(scope.user_id, question.model, found.arrays.tellers))
    if again is not question:  # it names somebody who is heard for the first time
        found = await scanned.scanned(scope, again, version, sought) or found
    return await in_thread(scanned.ranked, found, again, sought)


def _ranked(
    arrays: Arrays, version: Version, question: Question, sought: Sought, tagged: Sequence[UUID] | None
) -> Ranking:
    filters, corpus = sought.filters, Corpus(version.units, version.unit_length)
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
    also = arrays.first_rows(sought.also)
    return rank(arrays, question, corpus, sought.depth, shown, also, together=sought.together)


async def hits(scope: Transaction, chosen: Sequence[Candidate], as_of: datetime | None = None) -> list[Hit]:
    """Give hits for candidates, with their texts and sources; what is gone meanwhile is left out."""
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


async def recall(asker: Asker, query: str, *, filters: Filters, limit: int, min_score: float | None) -> list[Hit]:
    """Return the best items for a question, each once, the best first."""
    question = await asker.with_parts(await asker.prepared(query, await asker.likely()))
    async with asker.begun(question) as (scope, question, version):
        return await _best(scope, question, version, filters, limit, min_score)


async def facts_with_evidence(
    asker: Asker, query: str, *, filters: Filters, limit: int, min_score: float | None
) -> tuple[list[Hit], list[Hit]]:
    """Give the best facts for a question, and the whole messages that they were made from, with their own scores.

    Filters choose the facts; of the messages only those are left out that were recorded after `as_of`, or that are not
    embedded yet.
    """
    question = await asker.with_parts(await asker.prepared(query, await asker.likely()))
    async with asker.begun(question) as (scope, question, version):
        facts = await _best(scope, question, version, filters, limit, min_score, Tier.FACTS)
        sources = dict.fromkeys(sorted(message for fact in facts for message in fact.sources))
        ranking = await candidates(scope, question, filters, 1, [*sources], version=version) if sources else NOTHING
        messages = [one for one in best_of_each(ranking.of(Tier.MESSAGES)) if one.unit.item_id in sources]
        said = await items.said(scope, [one.unit for one in messages])
    there = [(one, said[one.unit.item_id]) for one in messages if one.unit.item_id in said]
    return facts, [replace(_hit(one, whole), text=whole.text or "", start=0) for one, whole in there]


async def _best(
    scope: Transaction,
    question: Question,
    version: Version | None,
    filters: Filters,
    limit: int,
    min_score: float | None,
    tier: Tier | None = None,
) -> list[Hit]:
    """Give the best hits, of all tiers or of one; where few units are too few, many are ranked."""
    found: list[Hit] = []
    few, many = (FEW * limit, tier is None), (max(DEPTH, 4 * limit), False)
    for depth, together in (few, many) if min_score is None else (many,):
        ranking = await candidates(scope, question, filters, depth, version=version, together=together)
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
        found += await hits(scope, page, as_of)
    return found[:limit]
