"""One recall of a user's: hits, or hits put together, as a viewer sees them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args
from uuid import UUID

from memstore._compat import to_thread
from memstore.client.opened import Opened
from memstore.context.sight import Sight
from memstore.errors import InvalidInput
from memstore.ingest.check import one_of
from memstore.models import Hit, HitGroup, Tier
from memstore.providers import Reranker
from memstore.search.candidates import DEPTH
from memstore.search.grouping import by_fact, by_session, groups_in_time, in_time, within_hits
from memstore.search.query import QueryBuilder
from memstore.search.recall import facts_with_evidence, recall
from memstore.search.reranking import READ, rerank
from memstore.store.items import Filters

Order = Literal["score", "time"]
Grouping = Literal["session", "fact"]

VIEWED = 1000  # hits looked at for those that a viewer sees
GROUPED = 8  # hits looked at for each session that is asked for, and at least DEPTH


@dataclass(frozen=True, slots=True)
class Recalling:
    """What is asked of whom, and who is shown the answer."""

    opened: Opened
    user_id: UUID
    query: str
    filters: Filters
    min_score: float | None
    sight: Sight

    async def answer(self, limit: int, order: str, group_by: str | None) -> list[Hit] | list[HitGroup]:
        """Give `limit` hits, sessions or facts in an order; raises `InvalidInput` for words that there are not."""
        one_of("order", order, get_args(Order))
        one_of("group_by", group_by, get_args(Grouping))
        if group_by is None:
            hits = await self.hits(limit)
            return in_time(hits) if order == "time" else hits
        groups = await (self.facts(limit) if group_by == "fact" else self.sessions(limit))
        return groups_in_time(groups) if order == "time" else groups

    async def hits(self, limit: int) -> list[Hit]:
        """Give the best hits."""
        reranker = await self.opened.reranker()
        found = await recall(await self._query_builder(), self.query, **self._wanted(limit, reranker))
        if self.sight.filters:
            async with self.opened.database.scope(self.user_id) as scope:
                found = await self.sight.hits(scope, found)
        return (await self._reranked(reranker, found))[:limit]

    async def sessions(self, limit: int) -> list[HitGroup]:
        """Give the best sessions, with those hits of theirs that are among the best ones of all."""
        found = await self.hits(max(DEPTH, GROUPED * limit))
        async with self.opened.database.scope(self.user_id) as scope:
            groups = await by_session(scope, found, limit, self.filters.as_of)
        # When a session began and ended may tell a viewer of messages that it does not see.
        return [within_hits(group) for group in groups] if self.sight.filters else groups

    async def facts(self, limit: int) -> list[HitGroup]:
        """Give the best facts, each with the messages that it was made from."""
        if Tier.FACTS not in self.filters.tiers:
            raise InvalidInput(f"group_by='fact' with tiers={[*map(str, self.filters.tiers)]}: give facts among them.")
        reranker = await self.opened.reranker()
        wanted = self._wanted(limit, reranker)
        facts, evidence = await facts_with_evidence(await self._query_builder(), self.query, **wanted)
        if self.sight.filters:
            async with self.opened.database.scope(self.user_id) as scope:
                facts = await self.sight.hits(scope, facts)
                evidence = await self.sight.hits(scope, evidence)
        return by_fact((await self._reranked(reranker, facts))[:limit], evidence)

    async def _query_builder(self) -> QueryBuilder:
        return QueryBuilder(self.opened.database, self.user_id, await self.opened.encoder(), self.opened.exactly)

    async def _reranked(self, reranker: Reranker | None, found: list[Hit]) -> list[Hit]:
        """Give hits as a reranker orders them, where there is one; no connection is held."""
        if reranker is None:
            return found
        ordered = await to_thread(rerank, reranker, self.query, found)
        return [hit for hit in ordered if self.min_score is None or hit.score >= self.min_score]

    def _wanted(self, limit: int, reranker: Reranker | None) -> dict[str, Any]:
        looked_at, least = max(VIEWED, 4 * limit) if self.sight.filters else limit, self.min_score
        if reranker is not None:  # it may put what we rank lower within the limit, and above the least score
            looked_at, least = max(looked_at, READ), None
        return {"filters": self.filters, "limit": looked_at, "min_score": least}
