"""Several owners asked together: a user and spaces, whose hits are ranked as if all were one's own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from itertools import chain
from uuid import UUID

from memstore._compat import gather
from memstore.models import Hit, Tier
from memstore.search.recall import Query
from memstore.search.signals import Corpus
from memstore.store import chunks
from memstore.store.database import Database


async def with_common_corpus(query: Query, owners: Sequence[tuple[Database, UUID]], as_of: datetime | None) -> Query:
    """Return the query with BM25's figures of several owners together, so that a word weighs the same in all of them.

    An owner whose chunks are too many to be held in the process leaves each with its figures alone.
    """
    figures = await gather([partial(_read_corpus, database, owner, query, as_of) for database, owner in owners])
    known = [corpus for corpus in figures if corpus is not None]
    if len(known) < len(owners):
        return query
    holding = Counter[str]()
    for corpus in known:
        holding.update(corpus.holding or {})
    return replace(
        query, corpus=Corpus(sum(each.chunks for each in known), sum(each.length for each in known), holding)
    )


async def _read_corpus(database: Database, owner: UUID, query: Query, as_of: datetime | None) -> Corpus | None:
    read_version = chunks.index_version(query.model)
    async with database.user_transaction(owner, [read_version]) as tx:
        version = tx.result(read_version)
        if version is not None and version.chunks > tx.cache.max_chunks:
            return None
        index = None if version is None else await chunks.read_index(tx, query.model, version.version)
    if index is None:
        return Corpus(0, 0, {})
    index = index if as_of is None else index.as_of(as_of)
    hashes = query.for_owner(owner).terms
    holding = {term: len(index.rows_with_term(number)[0]) for term, number in hashes.items()}
    return Corpus(len(index), int(index.lengths.sum()), holding)


def comparable_parts(
    lists: Sequence[Sequence[Mapping[str, float]]], best_lexical: Sequence[tuple[float, float]]
) -> list[list[dict[str, float]]]:
    """Return the parts of the scores of several owners' hits as if all were of one.

    The parts of words are shares of each owner's best score; they become shares of the best of all. Only the owner of
    the best hit has its session, and which hit is the newest is not known before all are here: see `lead_newest`.
    """
    most = [max(scores) or 1.0 for scores in zip(*best_lexical, strict=True)]
    rescaled = [
        [_rescale(parts, [score / best for score, best in zip(scores, most, strict=True)]) for parts in of_owner]
        for of_owner, scores in zip(lists, best_lexical, strict=True)
    ]
    leading = max(rescaled, key=lambda of_owner: max((sum(parts.values()) for parts in of_owner), default=-1.0))
    for parts in chain.from_iterable(of_owner for of_owner in rescaled if of_owner is not leading):
        parts["same_session"] = 0.0
    return rescaled


def _rescale(parts: Mapping[str, float], shares: Sequence[float]) -> dict[str, float]:
    rescaled = {name: part for name, part in parts.items() if name != "recency"}
    for name, share in zip(("lexical", "lexical_neighbours"), shares, strict=True):
        rescaled[name] = round(parts.get(name, 0.0) * share, 6)
    return rescaled


def rank_together(lists: Sequence[Sequence[Hit]], best_lexical: Sequence[tuple[float, float]]) -> list[Hit]:
    """Return the hits of several owners by score, each text once."""
    parts = comparable_parts([[hit.parts for hit in hits] for hits in lists], best_lexical)
    together = list(map(_with_parts, chain(*lists), chain(*parts)))
    return in_order_once(together)


def in_order_once(hits: Iterable[Hit]) -> list[Hit]:
    """Return hits by score, each text once."""
    together = sorted(hits, key=lambda hit: hit.score)
    return [*{(hit.tier == Tier.FACTS, hit.text): hit for hit in together}.values()][::-1]


def _with_parts(hit: Hit, parts: Mapping[str, float]) -> Hit:
    more = sum(parts.values()) - sum(hit.parts.values())
    return replace(hit, score=round(hit.score + more, 6), parts=parts)
