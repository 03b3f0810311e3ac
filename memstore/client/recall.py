"""Recall: what is asked, checked and searched, as a viewer may see it, in the order that is asked for."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Literal, TypedDict, Unpack, get_args, overload
from uuid import UUID

from memstore import ids
from memstore._compat import to_thread
from memstore.client.runtime import Runtime
from memstore.client.validation import check_names, check_number, check_query, check_score, to_list, to_utc
from memstore.context.visibility import Rule, VisibilityFilter
from memstore.errors import InvalidInput
from memstore.ingest.validation import check_choice
from memstore.models import Hit, HitGroup, Role, Tier
from memstore.search.candidates import DEPTH, facts_with_evidence, recall
from memstore.search.grouping import READ, by_fact, by_session, groups_in_time, in_time, rerank, within_hits
from memstore.search.query import QueryBuilder
from memstore.store.chunks import EVERY_TIER, Filters
from memstore.store.database import Database
from memstore.telemetry import operation_span

Order = Literal["score", "time"]
Grouping = Literal["session", "fact"]
HITS_FOR_A_VIEWER = 1000  # at least so many are looked at, as a viewer may not see most of them
HITS_A_SESSION = 8  # looked at for each session that is asked for, and at least DEPTH


class RecallOptions(TypedDict, total=False):
    """The options of `recall`, for checkers of types."""

    limit: int
    tiers: Sequence[str]
    conversation: str | None
    roles: Sequence[str] | None
    tags: Sequence[str] | None
    since: datetime | None
    until: datetime | None
    as_of: datetime | None
    min_score: float | None
    viewer: str | None
    visibility: Rule | str | None
    order: Order


class AsyncRecall:
    """What a user's scope offers for recall."""

    id: UUID
    _runtime: Runtime
    _database: Database

    @overload
    async def recall(self, query: str, *, group_by: None = ..., **options: Unpack[RecallOptions]) -> list[Hit]: ...

    @overload
    async def recall(self, query: str, *, group_by: Grouping, **options: Unpack[RecallOptions]) -> list[HitGroup]: ...

    async def recall(
        self,
        query: str,
        *,
        limit: int = 10,
        tiers: Sequence[str] = EVERY_TIER,
        conversation: str | None = None,
        roles: Sequence[str] | None = None,
        tags: Sequence[str] | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        as_of: datetime | None = None,
        min_score: float | None = None,
        viewer: str | None = None,
        visibility: Rule | str | None = None,
        order: Order = "score",
        group_by: Grouping | None = None,
    ) -> list[Hit] | list[HitGroup]:
        """Return the messages, summaries and facts that answer a question best.

        `since` (inclusive) and `until` (exclusive) bound when something was said; `as_of` hides what was recorded
        later, also of an imported history. All `tags` must be there. Scores are comparable within one recall. A
        `viewer` gets what it may see, as in `context`; by default that is the setting `context_viewer`.

        `order="time"` returns the best hits as they were said. `group_by="session"` groups hits without a silence of
        four hours between their messages, "fact" returns facts, each with the messages that it was made from; `limit`
        then counts groups.
        """
        runtime = self._runtime
        viewer = runtime.settings.context_viewer if viewer is None else viewer
        check_names(conversation=conversation, viewer=viewer)
        check_query(query)
        check_number(limit, "limit")
        check_score(min_score)
        check_choice("order", order, get_args(Order))
        check_choice("group_by", group_by, get_args(Grouping))
        filters = Filters(
            tiers=tuple(map(Tier, to_list(tiers, "tiers", Tier) or ())),
            conversation_id=None if conversation is None else ids.conversation_id(self.id, conversation),
            roles=to_list(roles, "roles", Role),
            tags=to_list(tags, "tags"),
            since=to_utc(since, "since"),
            until=to_utc(until, "until"),
            as_of=to_utc(as_of, "as_of"),
        )
        if not filters.tiers or (group_by == "fact" and Tier.FACTS not in filters.tiers):
            raise InvalidInput(f"tiers={tiers!r} with group_by={group_by!r}: give some of {', '.join(Tier)}.")
        sight = VisibilityFilter(runtime.redactor.redact(viewer), visibility or runtime.settings.visibility)
        with operation_span("recall") as span:
            reranker = await runtime.load_reranker()
            embedder = await runtime.load_embedder()
            builder = QueryBuilder(self._database, self.id, embedder, runtime.embedder_by_name)
            wanted = max(DEPTH, HITS_A_SESSION * limit) if group_by == "session" else limit
            searched, least = wanted, min_score
            if sight.is_active:
                searched = max(HITS_FOR_A_VIEWER, 4 * wanted)
            if reranker is not None:  # it may lift what ranks lower into the limit, and above the least score
                searched, least = max(searched, READ), None
            evidence: list[Hit] = []
            if group_by == "fact":
                hits, evidence = await facts_with_evidence(
                    builder, query, filters=filters, limit=searched, min_score=least
                )
            else:
                hits = await recall(builder, query, filters=filters, limit=searched, min_score=least)
            if sight.is_active:
                async with self._database.user_transaction(self.id) as scope:
                    hits = await sight.hits(scope, hits)
                    if evidence:
                        evidence = await sight.hits(scope, evidence)
            if reranker is not None:  # no connection is held meanwhile
                hits = await to_thread(rerank, reranker, query, hits)
                hits = [hit for hit in hits if min_score is None or hit.score >= min_score]
            hits = hits[:wanted]
            if group_by is None:
                span.set(hits=len(hits))
                return in_time(hits) if order == "time" else hits
            if group_by == "fact":
                groups = by_fact(hits, evidence)
            else:
                async with self._database.user_transaction(self.id) as scope:
                    groups = await by_session(scope, hits, limit, filters.as_of)
                if sight.is_active:  # when a session began may tell a viewer of messages that it does not see
                    groups = [within_hits(group) for group in groups]
            span.set(hits=len(groups))
            return groups_in_time(groups) if order == "time" else groups
