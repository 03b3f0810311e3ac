"""One user's memory: recall, conversations, receipts, events. Facts are in `user_facts`, erasing in `user_erasure`."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, get_args
from uuid import UUID

from memstore import ids
from memstore._compat import gather, to_thread
from memstore.client.conversation import AsyncConversationScope
from memstore.client.documents import AsyncDocuments
from memstore.client.private import AsyncPrivateConversationScope
from memstore.client.runtime import Runtime
from memstore.client.user_erasure import AsyncUserErasure
from memstore.client.user_facts import AsyncUserFacts
from memstore.context.receipt import unpack
from memstore.context.visibility import Rule, VisibilityFilter
from memstore.errors import InvalidInput, NotFound
from memstore.ingest.add import ConversationRef, Keep
from memstore.ingest.validation import (
    OWN_SETTINGS,
    Scopes,
    When,
    check_choice,
    check_name,
    check_names,
    check_number,
    check_query,
    check_text,
    parse_id_prefix,
    to_list,
    to_page_position,
    to_scope,
    to_spaces,
    to_utc,
    to_uuid,
    to_uuids,
)
from memstore.models import (
    Context,
    Conversation,
    Event,
    EventType,
    ExportReport,
    Grant,
    Hit,
    InvalidResponse,
    Message,
    Receipt,
    Replay,
    Role,
    Summary,
    Tier,
    in_order_of_time,
)
from memstore.providers import Embedder
from memstore.search.outdated import lead_newest
from memstore.search.owners import rank_together, with_common_corpus
from memstore.search.questions import asks_for_now
from memstore.search.recall import RERANKED, Recalled, build_query, recall, rerank
from memstore.store import erasure, grants, llm_usage, messages, receipts, summaries
from memstore.store.chunks import Filters
from memstore.store.documents import Distance
from memstore.telemetry import operation_span

if TYPE_CHECKING:
    from memstore.client.space import AsyncSpaceScope
    from memstore.export.writer import Target


class AsyncUserScope(AsyncUserFacts, AsyncUserErasure):
    """One user's memory, and nobody else's. Made by `store.user(name)`; it holds no state but the name.

    >>> alice = store.user("alice")
    >>> alice.conversation("lisbon").add("user", "I'm allergic to peanuts.")
    >>> alice.recall("peanuts")[0].text
    """

    def __init__(self, runtime: Runtime, name: str) -> None:
        check_name(name, "user")
        self._runtime = runtime
        self._database = runtime.database
        self.name = name
        self.id = ids.user_id(name)
        if ids.is_space(self.id) and type(self) is AsyncUserScope:
            raise InvalidInput(f"{name!r} is a space's name, and no user's: call store.space({name[6:]!r}).")
        self._speaker: str | None = None

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r}>"

    def conversation(
        self,
        name: str,
        *,
        title: str | None = None,
        channel: str | None = None,
        scope: str | None = None,
        private: bool = False,
        keep: Keep | None = None,
    ) -> AsyncConversationScope:
        """Return a conversation, which is created with its first message.

        `scope` is what it belongs to, such as a project: memory can be asked for there alone. A `private` one reads
        memory, and nothing of it is stored: this object holds its messages. With `keep="session"` messages are stored
        for recent turns alone, in whatever process: nothing is derived or recalled of them. `erase` it at its end; else
        maintenance erases messages after a day.
        """
        redactor = self._runtime.redactor
        redactor.reject_secret_names(scope=scope)
        texts = redactor.redact(title), redactor.redact(channel), scope
        kind = AsyncPrivateConversationScope if private else AsyncConversationScope
        return kind(self, ConversationRef(self.name, name, *texts, keep=keep, speaker=self._speaker))

    async def recall(
        self,
        query: str,
        *,
        limit: int = 10,
        tiers: Sequence[str] = tuple(Tier),
        conversation: str | None = None,
        roles: Sequence[str] | None = None,
        tags: Sequence[str] | None = None,
        since: When | None = None,
        until: When | None = None,
        as_of: When | None = None,
        min_score: float | None = None,
        viewer: str | None = None,
        visibility: Rule | str | None = None,
        scope: Scopes = None,
        spaces: Sequence[str] = (),
    ) -> list[Hit]:
        """Return the messages, summaries and facts that answer a question best.

        `since` (inclusive) and `until` (exclusive) bound when something was said; `as_of` hides what was recorded
        later, also of an imported history. Times are datetimes with a zone, days (which begin in UTC) or ISO 8601.
        All `tags` must be there. Scores are comparable within one recall. A `viewer` gets what it may see, as in
        `context`; by default that is the setting `context_viewer`.

        `scope="otter"` leaves out what was said in conversations of another scope, `scope=["otter"]` also what was said
        in those without one. Facts that protect the user, and of their identity and taste, are found in every scope.

        Hits of `spaces` are ranked together with the user's own; each has the name of its `space`. Raises `NotFound`
        for a space that is not shared with the user.
        """
        runtime = self._runtime
        viewer = runtime.settings.context_viewer if viewer is None else viewer
        check_names(conversation=conversation, viewer=viewer)
        check_query(query, min_score)
        check_number(limit, "limit")
        filters = Filters(
            tiers=tuple(map(Tier, to_list(tiers, "tiers", Tier) or ())),
            conversation_id=None if conversation is None else ids.conversation_id(self.id, conversation),
            roles=to_list(roles, "roles", Role),
            tags=to_list(tags, "tags"),
            since=to_utc(since, "since"),
            until=to_utc(until, "until"),
            as_of=to_utc(as_of, "as_of"),
        )
        if not filters.tiers:
            raise InvalidInput(f"tiers={tiers!r}: give some of {', '.join(Tier)}.")
        sight = None
        if viewer is not None:
            sight = VisibilityFilter(runtime.redactor.redact(viewer), visibility or runtime.settings.visibility)
        with operation_span("recall") as span:
            reranker = await runtime.load_reranker()
            # A viewer may not see most of them.
            searched = max(1000, 4 * limit) if sight else limit
            # A reranker may lift what ranks lower into the limit, and above the least score.
            searched, least = (searched, min_score) if reranker is None else (max(searched, RERANKED), None)
            # A mark would tell a viewer of what it does not see.
            marked = sight is None
            options: dict[str, Any] = {
                "scope": to_scope(scope),
                "filters": filters,
                "limit": searched,
                "min_score": least,
                "marked": marked,
            }
            owners: list[tuple[str | None, UUID]] = [(None, self.id), *to_spaces(spaces).items()]
            hits: list[Hit] = await runtime.run_with_embedder(
                lambda embedder: self._recall(owners, embedder, query, sight, options)
            )
            # No connection is held meanwhile.
            if reranker is not None:
                hits = await to_thread(rerank, reranker, query, hits)
                hits = [hit for hit in hits if min_score is None or hit.score >= min_score]
            hits = hits[:limit]
            span.set(hits=len(hits))
        return hits

    async def _recall(
        self,
        owners: Sequence[tuple[str | None, UUID]],
        embedder: Embedder | None,
        question: str,
        sight: VisibilityFilter | None,
        options: Mapping[str, Any],
    ) -> list[Hit]:
        """Return the hits of the user and of spaces, together where there are several owners."""
        query = await build_query(self._database, self.id, embedder, question)
        view = self._database.on_behalf_of(self.id)
        if len(owners) > 1:
            searched = [(self._database if space is None else view, owner) for space, owner in owners]
            query = await with_common_corpus(query, searched, options["filters"].as_of)

        async def recall_of(space: str | None, owner: UUID) -> Recalled:
            database = self._database if space is None else view
            recalled = await recall(database, owner, query if space is None else query.for_owner(owner), **options)
            hits = recalled.hits
            if sight:
                async with database.user_transaction(owner) as tx:
                    hits = await sight.filter_hits(tx, hits)
            return (
                recalled
                if space is None and not sight
                else Recalled([replace(hit, space=space) for hit in hits], recalled.best_lexical)
            )

        every = await gather([partial(recall_of, *owner) for owner in owners])
        if len(every) == 1:
            return every[0].hits
        hits = rank_together([each.hits for each in every], [each.best_lexical for each in every])
        leads_newest = options["marked"] and options["filters"].until is None and asks_for_now(question)
        return lead_newest(hits, question) if leads_newest else hits

    async def conversations(
        self,
        *,
        channel: str | None = None,
        before: tuple[datetime, UUID] | None = None,
        limit: int | None = None,
    ) -> list[Conversation]:
        """Return the user's conversations, the latest first.

        `before` are `updated_at` and `id` of the last one of the page before.
        """
        if channel is not None:
            check_text(channel, "the channel")
        if limit is not None:
            check_number(limit, "limit")
        position = to_page_position(before)
        async with self._database.user_transaction(self.id) as tx:
            return await messages.conversations(tx, channel, before=position, limit=limit)

    async def messages(self, ids: Sequence[UUID]) -> list[Message]:
        """Return the messages of these ids, as they were said, of whatever conversation; unknown ids are left out."""
        message_ids = to_uuids(ids, "ids")
        async with self._database.user_transaction(self.id) as tx:
            by_id = await messages.by_ids(tx, message_ids)
        return in_order_of_time(by_id.values())

    async def conversation_names(self, ids: Sequence[UUID]) -> dict[UUID, str]:
        """Return the names of these conversations by id; unknown ids are left out."""
        conversation_ids = to_uuids(ids, "ids")
        async with self._database.user_transaction(self.id) as tx:
            return await messages.conversation_names(tx, conversation_ids)

    async def summary(self, id: UUID) -> Summary:
        """Return a summary. Raises `NotFound` if this user has none of this id."""
        summary_id = to_uuid(id)
        async with self._database.user_transaction(self.id) as tx:
            summary = await summaries.summary(tx, summary_id)
        if summary is None:
            raise NotFound(f"This user has no summary {id}: it may have been made anew, with another id.")
        return summary

    async def summaries_over(
        self, conversation_id: UUID, from_seq: int, to_seq: int, *, limit: int = 100
    ) -> list[Summary]:
        """Return the summaries of some of these messages, both numbers included.

        The lowest level comes first; those made on demand come last.
        """
        check_number(from_seq, "from_seq", 0, messages.MAX_SEQ)
        check_number(to_seq, "to_seq", 0, messages.MAX_SEQ)
        check_number(limit, "limit")
        conversation_id = to_uuid(conversation_id)
        async with self._database.user_transaction(self.id) as tx:
            return await summaries.summaries_over(tx, conversation_id, from_seq, to_seq, limit=limit)

    async def resolve_id(self, prefix: str, *, kind: str) -> UUID:
        """Return the id that begins like this, 4 digits or more. `kind` is "fact", "summary", "change" or "receipt".

        Raises `InvalidInput` if none of this user's does, or more than one. A whole id is not looked up.
        """
        check_choice("kind", kind, ("fact", "summary", "change", "receipt"))
        first, last = parse_id_prefix(prefix)
        if first == last:
            return first
        async with self._database.user_transaction(self.id) as tx:
            matches = await messages.ids_between(tx, kind, first, last)
        if not matches:
            raise NotFound(f"This user has no {kind} whose id begins with {prefix!r}.")
        if len(matches) > 1:
            raise InvalidInput(f"More than one {kind} has an id that begins so: {matches[0]}, {matches[1]}…")
        return matches[0]

    def documents(self, *, embedder: Embedder | None = None, distance: Distance = "cosine") -> AsyncDocuments:
        """Return the user's documents: values that an application stores under names of its own, and changes.

        They are not derived from and not in contexts; they are exported and erased with the user. By default the
        store's embedder finds them; those of one embedder are not found by another.
        """
        check_choice("distance", distance, get_args(Distance))
        return AsyncDocuments(self._runtime, self._database, self.name, self.id, embedder, distance)

    async def receipt(self, receipt: Context | Receipt | UUID | str) -> Receipt:
        """Return a stored receipt by its id or its context; `explain()` says what its items say now.

        Raises `NotFound` if there is none: they are kept for `receipt_retention_days`, and go with their conversation.
        """
        id = to_uuid(receipt)
        async with self._database.user_transaction(self.id) as tx:
            stored = await receipts.receipt(tx, id)
        if stored is None:
            raise _no_receipt(id)
        return stored

    async def receipt_page(
        self, *, conversation_id: UUID | None = None, before: UUID | None = None, limit: int = 20
    ) -> list[Receipt]:
        """Return receipts of all conversations or of one, the latest first, without previews of their items.

        `before` is the id of the last one of the page before.
        """
        check_number(limit, "limit")
        to_uuids([id for id in (conversation_id, before) if id is not None], "ids")
        async with self._database.user_transaction(self.id) as tx:
            return await receipts.receipt_page(tx, conversation_id, before=before, limit=limit)

    async def replay(self, receipt: Context | Receipt | UUID | str) -> Replay:
        """Return what was sent with a context, by itself, its receipt or the receipt's id: the same bytes.

        Raises `NotFound` if there is no such receipt, as `receipt` does, or if an older memstore made it, which did not
        keep what was sent.
        """
        id = to_uuid(receipt)
        async with self._database.user_transaction(self.id) as tx:
            stored = await receipts.receipt_with_sent(tx, id)
        if stored is None:
            raise _no_receipt(id)
        return await to_thread(unpack, *stored)

    async def invalid_responses(self, *, limit: int = 1000) -> list[InvalidResponse]:
        """Return unusable answers of chat models about this user's messages, the oldest first.

        No reader stands in for facts. `derive` with `redo` asks again, and removes those that are answered.
        """
        check_number(limit, "limit")
        async with self._database.user_transaction(self.id) as tx:
            return await llm_usage.invalid_responses(tx, limit=limit)

    async def events(
        self, *, after: str | None = None, types: Sequence[str] | None = None, limit: int = 100
    ) -> list[Event]:
        """Return events from the outbox, in order. `after` is the `cursor` of the last event that was read.

        Nobody who reads on from there misses one: an event appears when every transaction before its own has ended.
        """
        check_number(limit, "limit")
        names = to_list(types, "types", EventType)
        async with self._database.user_transaction(self.id, [receipts.HORIZON]) as tx:
            return await receipts.events(tx, after=after, types=names, limit=limit)

    async def update(self, *, settings: Mapping[str, Any]) -> None:
        """Set settings of the user's own; others stay, and None removes one.

        `message_retention_days` is how long messages are kept, in all conversations without a setting of their own.
        `fact_instructions` and `fact_types` add to what the store's settings say about facts. With `review_facts`
        derived facts wait in `inbox`.
        """
        for name in settings:
            check_choice("A user's setting", name, list(OWN_SETTINGS))
        await self._check_rules(settings)
        redactor = self._runtime.redactor
        redactor.reject_secret_names(user=self.name)
        own_settings = {name: OWN_SETTINGS[name](value) for name, value in settings.items()}
        async with self._database.user_transaction(self.id) as tx:
            await messages.make_user(tx, self.name)
            await erasure.keep_user_settings(tx, redactor.redact_json(own_settings))

    async def _check_rules(self, settings: Collection[str]) -> None:
        """Raise `Forbidden` for settings of these names that a member of a space may not set."""

    async def export(self, target: Target, *, derived: bool = True) -> ExportReport:
        """Write this user's memory to a file or a binary stream, as `store.export` does."""
        from memstore.export.writer import write_export

        return await write_export(self._database, target, [self.name], derived=derived)

    def space(self, name: str) -> AsyncSpaceScope:
        """Return a space on behalf of this user, who needs a grant for each call there."""
        from memstore.client.space import AsyncSpaceScope

        return AsyncSpaceScope(self._runtime, name, self)

    async def create_space(self, name: str) -> AsyncSpaceScope:
        """Create a space with this user as its admin. Raises `Conflict` if there is one of this name."""
        space = self.space(name)
        await space._create()
        return space

    async def spaces(self) -> list[Grant]:
        """Return the user's grants, by the names of the spaces."""
        async with self._database.user_transaction(self.id) as tx:
            return await grants.of_member(tx)


def _no_receipt(id: UUID) -> NotFound:
    return NotFound(f"This user has no receipt {id}; they are kept for receipt_retention_days, then forgotten.")
