"""What spaces add to a context: their facts and hits, ranked together with the user's own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from uuid import UUID

from memstore._compat import gather
from memstore.context.candidates import collect_candidates, recall_candidates
from memstore.context.history import ConversationHistory, load_space_history, reads_of_space
from memstore.context.items import Candidates
from memstore.context.request import ResolvedRequest
from memstore.models import Hit, Tier
from memstore.search.outdated import lead_newest
from memstore.search.questions import asks_for_now
from memstore.search.recall import Query, in_scope, rank_together
from memstore.store.chunks import Filters
from memstore.store.database import Database


async def collect_with_spaces(
    database: Database, query: Query, resolved: ResolvedRequest, history: ConversationHistory, most: int
) -> Candidates:
    """Return the candidates as `collect_candidates` does, with those of the request's spaces, at most so many of each.

    Standing facts of spaces stand behind the user's own. Raises `NotFound` where a space is not shared with the user.
    """
    view = database.on_behalf_of(resolved.request.user_id)
    collect = [partial(collect_candidates, database, query, resolved, history, most)]
    collect += [partial(_collect_of, *space, view, query, resolved, most) for space in resolved.request.spaces.items()]
    candidates, *_ = every = await gather(collect)
    together = rank_together([[*each.facts, *each.hits] for each in every], [each.best_lexical for each in every])
    hits = [hit for hit in together if hit.tier != Tier.FACTS]
    if asks_for_now(query.text):
        hits = lead_newest(hits, query.text)
    relevances = [each.relevance for each in every if each.relevance is not None]
    finders = {hit.id: each.find_antecedent for each in every for hit in each.hits}
    return replace(
        candidates,
        standing=[fact for each in every for fact in each.standing],
        facts=[hit for hit in together if hit.tier == Tier.FACTS],
        hits=hits,
        find_antecedent=lambda hit: finders[hit.id](hit) if hit.id in finders else None,
        relevance=max(relevances, default=None),
        left_out=[decision for each in every for decision in each.left_out],
    )


async def _collect_of(
    name: str, space_id: UUID, database: Database, query: Query, resolved: ResolvedRequest, most: int
) -> Candidates:
    reads = reads_of_space(resolved.request, query.model)
    async with database.user_transaction(space_id, reads) as tx:
        history = load_space_history(tx, reads)
        filters = await in_scope(tx, Filters(as_of=resolved.request.as_of), resolved.request.scope)
        in_space = replace(resolved, filters=filters)
        found = await recall_candidates(tx, query.for_owner(space_id), in_space, history, most)
    return _of_space(found, name)


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
