"""What spaces add to a context: their facts and hits, ranked together with the user's own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from uuid import UUID

from memstore._compat import gather
from memstore.context.candidates import Ranked, rank_for_context, to_candidates, with_history
from memstore.context.history import ConversationHistory, SpaceHistory, load_space_history, reads_of_space
from memstore.context.items import Candidates
from memstore.context.request import Request, ResolvedRequest
from memstore.models import Hit, Tier
from memstore.search.outdated import lead_newest
from memstore.search.owners import comparable_parts, in_order_once, with_common_corpus
from memstore.search.questions import asks_for_now
from memstore.search.ranking import RankedChunk
from memstore.search.recall import Query, in_scope
from memstore.store.chunks import Filters
from memstore.store.database import Database


@dataclass(frozen=True, slots=True)
class _Owner:
    """The user, or a space by its `name`: how its rows are read, and what the question ranks first of them."""

    name: str | None
    database: Database
    query: Query
    resolved: ResolvedRequest
    history: ConversationHistory
    ranked: Ranked


async def read_spaces(database: Database, request: Request, model: UUID) -> list[SpaceHistory]:
    """Read what stands in the request's spaces. Raises `NotFound` where one is not shared with the user."""
    view = database.on_behalf_of(request.user_id)
    return await gather([partial(_read_space, name, view, request, model) for name in request.spaces])


async def _read_space(name: str, database: Database, request: Request, model: UUID) -> SpaceHistory:
    reads = reads_of_space(request, model)
    async with database.user_transaction(request.spaces[name], reads) as tx:
        filters = await in_scope(tx, Filters(as_of=request.as_of), request.scope)
        return SpaceHistory(name, load_space_history(tx, reads), filters)


async def collect_with_spaces(
    database: Database,
    query: Query,
    resolved: ResolvedRequest,
    history: ConversationHistory,
    most: int,
    spaces: Sequence[SpaceHistory],
) -> Candidates:
    """Return the candidates as `collect_candidates` does, with those of the request's spaces, together as many.

    Standing facts of spaces stand behind the user's own. Raises `NotFound` where a space is shared no longer.
    """
    request, view = resolved.request, database.on_behalf_of(resolved.request.user_id)
    searched = [(database, request.user_id), *((view, space) for space in request.spaces.values())]
    query = await with_common_corpus(query, searched, request.as_of)
    rank = [partial(_rank_user, database, query, resolved, history, most)]
    rank += [partial(_rank_space, space, view, query, resolved, most) for space in spaces]
    candidates, *_ = every = await gather([partial(_collect, owner) for owner in _best_of(await gather(rank))])
    together = in_order_once(hit for each in every for hit in (*each.facts, *each.hits))
    hits = [hit for hit in together if hit.tier != Tier.FACTS]
    if asks_for_now(query.text):
        hits = lead_newest(hits, query.text)
    relevances = [each.relevance for each in every if each.relevance is not None]
    finders = {hit.id: each.find_antecedent for each in every for hit in each.hits}
    together_with_spaces = replace(
        candidates,
        standing=[fact for each in every for fact in each.standing],
        facts=[hit for hit in together if hit.tier == Tier.FACTS],
        hits=hits,
        find_antecedent=lambda hit: finders[hit.id](hit) if hit.id in finders else None,
        relevance=max(relevances, default=None),
        left_out=[decision for each in every for decision in each.left_out],
    )
    return with_history(together_with_spaces, resolved, history)


async def _rank_user(
    database: Database, query: Query, resolved: ResolvedRequest, history: ConversationHistory, most: int
) -> _Owner:
    async with database.user_transaction(resolved.request.user_id) as tx:
        ranked = await rank_for_context(tx, query, resolved, history, most)
    return _Owner(None, database, query, resolved, history, ranked)


async def _rank_space(
    space: SpaceHistory, database: Database, query: Query, resolved: ResolvedRequest, most: int
) -> _Owner:
    space_id, resolved = resolved.request.spaces[space.name], replace(resolved, filters=space.filters)
    query = query.for_owner(space_id)
    async with database.user_transaction(space_id) as tx:
        ranked = await rank_for_context(tx, query, resolved, space.history, most)
    return _Owner(space.name, database, query, resolved, space.history, ranked)


def _best_of(owners: Sequence[_Owner]) -> list[_Owner]:
    """Return the owners with the best of what all of them have, together as many as one would have alone."""
    every = [[*owner.ranked.facts, *owner.ranked.hits] for owner in owners]
    lists = [[candidate.parts for candidate in candidates] for candidates in every]
    parts = comparable_parts(lists, [owner.ranked.best_lexical for owner in owners])
    facts, hits = list[list[RankedChunk]](), list[list[RankedChunk]]()
    for owner, candidates, of_owner in zip(owners, every, parts, strict=True):
        compared = [RankedChunk(candidate.chunk, part) for candidate, part in zip(candidates, of_owner, strict=True)]
        facts.append(compared[: len(owner.ranked.facts)])
        hits.append(compared[len(owner.ranked.facts) :])
    facts, hits = _keep_best(facts), _keep_best(hits)
    return [replace(owner, ranked=owner.ranked.keep(*kept)) for owner, *kept in zip(owners, facts, hits, strict=True)]


def _keep_best(lists: Sequence[Sequence[RankedChunk]]) -> list[list[RankedChunk]]:
    """Return of each list, the best first, what is among the best of all: as many as the longest list has."""
    scores = sorted((candidate.score for candidate in chain(*lists)), reverse=True)
    least = scores[max(map(len, lists)) - 1] if scores else 0.0
    kept = [[candidate for candidate in candidates if candidate.score >= least] for candidates in lists]
    return [sorted(candidates, key=lambda candidate: -candidate.score) for candidates in kept]


async def _collect(owner: _Owner) -> Candidates:
    id = owner.resolved.request.user_id if owner.name is None else owner.resolved.request.spaces[owner.name]
    async with owner.database.user_transaction(id) as tx:
        candidates = await to_candidates(
            tx, owner.query, owner.resolved, owner.history, owner.ranked, newest_leads=False
        )
    return candidates if owner.name is None else _of_space(candidates, owner.name)


def _of_space(candidates: Candidates, name: str) -> Candidates:
    def mark(hits: Sequence[Hit]) -> list[Hit]:
        return [replace(hit, space=name) for hit in hits]

    def find(hit: Hit) -> Hit | None:
        antecedent = candidates.find_antecedent(hit)
        return antecedent and replace(antecedent, space=name)

    return replace(
        candidates,
        standing=mark(candidates.standing),
        facts=mark(candidates.facts),
        hits=mark(candidates.hits),
        find_antecedent=find,
        left_out=[replace(decision, space=name) for decision in candidates.left_out],
    )
