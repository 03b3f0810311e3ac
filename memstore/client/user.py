"""One user's memory: conversations, recall, facts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, get_args, overload
from uuid import UUID

from memstore import ids
from memstore.client.arguments import (
    aware,
    beginning_of,
    check_limit,
    check_recall,
    id_of,
    id_of_receipt,
    ids_of,
    known_tiers,
    listed,
    receipt_of,
    the_one,
)
from memstore.client.browsing import AsyncBrowsing
from memstore.client.conversation import AsyncConversationScope
from memstore.client.documents import AsyncDocuments
from memstore.client.erasing import AsyncErasable
from memstore.client.lookups import AsyncLookups
from memstore.client.opened import Opened
from memstore.client.recalling import Grouping, Order, Recalling
from memstore.context.formats import Format
from memstore.context.replay import replay
from memstore.context.sight import Sight
from memstore.context.visibility import Rule
from memstore.errors import InvalidInput, NotFound
from memstore.events import Event, EventType
from memstore.ingest.add import Place
from memstore.ingest.check import check_name, check_text, one_of
from memstore.models import (
    FACT_KINDS,
    FACT_STATES,
    FACT_TYPES,
    Context,
    Conversation,
    DeadLetter,
    Drift,
    Entity,
    Exported,
    Fact,
    FactChange,
    Finding,
    Hit,
    HitGroup,
    Receipt,
    Replay,
    Role,
)
from memstore.providers import Embedder
from memstore.store import counter_drift, events, fact_changes, facts, messages, model_calls, receipts, summaries
from memstore.store.documents import Distance
from memstore.store.items import EVERY_TIER, Filters
from memstore.telemetry import operation_span

if TYPE_CHECKING:
    from memstore.export.output import Target

ANY_STATE = "all"
DEEPEST = 5  # steps from an entity: beyond them nearly everything is related


class AsyncUserScope(AsyncLookups, AsyncBrowsing, AsyncErasable):
    """One user's memory."""

    def __init__(self, opened: Opened, name: str) -> None:
        check_name(name, "user")
        self._opened = opened
        self.name = name
        self.id = ids.user_id(name)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r}>"

    def conversation(
        self, name: str, *, title: str | None = None, channel: str | None = None
    ) -> AsyncConversationScope:
        """Give the scope of a conversation; it is made with its first message."""
        place = Place(self.name, name, title, channel)
        redactor = self._opened.redactor
        return AsyncConversationScope(
            self, replace(place, title=redactor.redact(title), channel=redactor.redact(channel))
        )

    async def conversations(
        self,
        *,
        channel: str | None = None,
        before: tuple[datetime, UUID] | None = None,
        limit: int | None = None,
    ) -> list[Conversation]:
        """Give the user's conversations, the latest first.

        `before` are `updated_at` and `id` of the last one of the page before.
        """
        if channel is not None:
            check_text(channel, "the channel")
        check_limit(limit, or_none=True)
        async with self._opened.database.scope(self.id) as scope:
            return await messages.conversations(scope, channel, before=before, limit=limit)

    @overload
    async def recall(
        self,
        query: str,
        *,
        limit: int = ...,
        tiers: Sequence[str] = ...,
        conversation: str | None = ...,
        roles: Sequence[str] | None = ...,
        tags: Sequence[str] | None = ...,
        since: datetime | None = ...,
        until: datetime | None = ...,
        as_of: datetime | None = ...,
        min_score: float | None = ...,
        viewer: str | None = ...,
        visibility: Rule | str | None = ...,
        order: Order = ...,
        group_by: None = ...,
    ) -> list[Hit]: ...

    @overload
    async def recall(
        self,
        query: str,
        *,
        limit: int = ...,
        tiers: Sequence[str] = ...,
        conversation: str | None = ...,
        roles: Sequence[str] | None = ...,
        tags: Sequence[str] | None = ...,
        since: datetime | None = ...,
        until: datetime | None = ...,
        as_of: datetime | None = ...,
        min_score: float | None = ...,
        viewer: str | None = ...,
        visibility: Rule | str | None = ...,
        order: Order = ...,
        group_by: Grouping,
    ) -> list[HitGroup]: ...

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
        """Give what is remembered about a question, the best first, over messages, summaries and facts.

        `since` (inclusive) and `until` (not) bound when it was said, `as_of` hides what was recorded later: of an
        imported history nothing is known before the day of its import, whenever it was said. Tags must all be there.
        Scores are comparable within one recall. A `viewer` is given what it may see, as in `context`; by default that
        is the system's `context_viewer`.

        `order` "time" tells the best ones as they were said. `group_by` "session" puts hits together that were said
        without a silence of four hours, "fact" gives facts, each with the messages that it was made from; `limit` is
        then of groups. Raises `InvalidInput` for what is none of the words that there are.
        """
        check_recall(query, limit, min_score)
        if conversation is not None:
            check_name(conversation, "conversation")
        filters = Filters(
            tiers=known_tiers(tiers),
            conversation_id=None if conversation is None else ids.conversation_id(self.id, conversation),
            roles=listed(roles, "roles", Role),
            tags=listed(tags, "tags"),
            since=aware(since, "since"),
            until=aware(until, "until"),
            as_of=aware(as_of, "as_of"),
        )
        sight = self._sight(viewer, visibility)
        recalling = Recalling(self._opened, self.id, query, filters, min_score, sight)
        with operation_span("recall") as span:
            found = await recalling.answer(limit, order, group_by)
            span.set(hits=len(found))
        return found

    def _sight(self, viewer: str | None, visibility: Rule | str | None) -> Sight:
        settings = self._opened.settings
        who = settings.context_viewer if viewer is None else viewer
        if who is not None:
            check_name(who, "viewer")
        return Sight(self._opened.redactor.redact(who), visibility or settings.visibility)

    async def export(
        self, target: Target, *, conversation: str | None = None, derived: bool = True, vectors: bool = True
    ) -> Exported:
        """Write this user's memory, or one conversation's, to a file or a binary stream, as `store.export` does."""
        from memstore.export.export import Selection, export

        if conversation is not None:
            check_name(conversation, "conversation")
        return await export(self._opened.database, target, [self.name], Selection(conversation, derived, vectors))

    async def facts(
        self,
        *,
        state: str | None = "active",
        type: str | None = None,
        subject: str | None = None,
        kind: str | None = None,
        as_of: datetime | None = None,
    ) -> list[Fact]:
        """Give facts with their sources, the latest first; of a `subject` of whom nobody has said anything, none.

        `state` is active, ended (it was said to hold until a moment that has passed), quarantined (it waits to be
        confirmed), superseded, retracted or erased; "all", or None, is any of them. `as_of` a past moment, they are as
        they were known then: those active then, with the validity of then. Raises `InvalidInput` for a type, a state or
        a kind that there is not, and names those that there are.
        """
        if subject is not None:
            check_text(subject, "the subject")
        state = None if state == ANY_STATE else state
        one_of("state", state, (*FACT_STATES, ANY_STATE))
        one_of("type", type, FACT_TYPES)
        one_of("kind", kind, FACT_KINDS)
        moment = aware(as_of, "as_of")
        async with self._opened.database.scope(self.id) as scope:
            return await facts.facts(scope, state=state, type=type, subject=subject, kind=kind, as_of=moment)

    async def entity(self, name: str, *, depth: int = 2) -> Entity:
        """Give the facts about somebody or something, and its relations to others, `depth` (1 to 5) steps far.

        The facts of which it is the subject come first, then those that name it, as a whole word; there are none where
        nobody has named it.
        """
        check_name(name, "entity")
        if type(depth) is not int or not 1 <= depth <= DEEPEST:
            raise InvalidInput(f"depth={depth!r}: give a number from 1 to {DEEPEST}.")
        async with self._opened.database.scope(self.id) as scope:
            about = [*await facts.facts(scope, subject=name), *await facts.naming(scope, name)]
            return Entity(name, tuple(about), tuple(await facts.edges(scope, name, depth)))

    async def add_fact(
        self,
        text: str,
        *,
        type: str,
        subject: str = "The user",
        kind: str | None = None,
        attribute: str | None = None,
        value: str | None = None,
        language: str = "und",
        confidence: float = 1.0,
        valid_from: datetime | None = None,
        valid_to: datetime | None = None,
        sources: Sequence[UUID] = (),
        quarantined: bool = False,
    ) -> Fact:
        """Enter a fact by hand; recall finds it at once, and no derivation changes it. `sources` are ids of messages.

        Without `attribute` and `value` they are read from the text where the rules find them. Facts with an older value
        of the same attribute are superseded, what contradicts it is logged as a conflict, as derivation does.
        One that is known with the same words is edited to be this one, and is active again.

        With `quarantined` it waits until `confirm_fact` lets it hold, as what a model proposes; one that is known with
        the same words stays what it is, and is given.
        """
        from memstore.derive.facts import curation
        from memstore.derive.facts.entry import NewFact, check_fact, redact_fact

        begin, end = aware(valid_from, "valid_from"), aware(valid_to, "valid_to")
        said = ids_of(sources, "sources")
        new = NewFact(text, type, subject, kind, attribute, value, language, confidence, begin, end, said)
        check_fact(new)
        new = redact_fact(new, self._opened.taking(user=self.name))
        if quarantined:
            return await curation.propose_fact(self._opened.database, self.name, new)
        return await curation.add_fact(self._opened.database, await self._opened.resources(), self.name, new)

    async def edit_fact(self, fact: Fact | UUID, **columns: Any) -> Fact:
        """Put another fact, with other `text`, `type`, `value`… as of `add_fact`, in the place of an active one.

        The one that was edited is superseded, or changed in its place where its words stay; `undo` brings it back.
        """
        from memstore.derive.facts import curation
        from memstore.derive.facts.entry import EDITABLE, check_fact, edited, redact_fact

        for name in {"valid_from", "valid_to"} & columns.keys():
            aware(columns[name], name)
        unknown = set(columns) - set(EDITABLE)
        if unknown or not columns:
            raise InvalidInput(
                f"{', '.join(sorted(unknown)) or 'nothing'} to edit: give some of {', '.join(EDITABLE)}."
            )
        old = await self.fact(fact)
        curation.check_active(old)  # before an encoder is loaded
        new = edited(old, columns)
        check_fact(new)
        new = redact_fact(new, self._opened.redactor)
        return await curation.edit_fact(self._opened.database, await self._opened.resources(), self.id, old, new)

    async def confirm_fact(self, fact: Fact | UUID) -> Fact:
        """Let a fact hold that is quarantined, since who says it is not believed alone; recall finds it from now on.

        What it says of a slot ends older values, what contradicts it is logged as a conflict; `undo` quarantines it
        again. One that is active stays as it is; raises `Conflict` for one in another state.
        """
        from memstore.derive.facts import curation

        return await curation.confirm_fact(self._opened.database, await self._opened.resources(), self.id, id_of(fact))

    async def retract_fact(self, fact: Fact | UUID) -> Fact:
        """Take a fact back: it is no longer recalled, also where it is said again; `undo` brings it back."""
        from memstore.derive.facts import curation

        return await curation.retract_fact(self._opened.database, self.id, id_of(fact))

    async def undo(self, change: FactChange | UUID) -> FactChange:
        """Undo a change of a fact exactly; give the change that did so.

        Raises `Conflict` where the fact was changed again since. Undoing a `conflicted` settles the disagreement.
        """
        from memstore.derive.facts import curation

        return await curation.undo(self._opened.database, self.id, id_of(change))

    async def fact_history(self, fact: Fact | UUID) -> list[FactChange]:
        """Give what happened to a fact, in order: added, reinforced, superseded, retracted, edited, restored, …

        An edit that put another fact in the place of one is in the history of both.
        """
        from memstore.derive.facts import curation

        return await curation.history(self._opened.database, self.id, id_of(fact))

    def documents(self, *, embedder: Embedder | None = None, distance: Distance = "cosine") -> AsyncDocuments:
        """Give the documents: values that an application keeps under names of its own, and changes.

        No derivation reads them, and contexts hold none; they are exported and erased with the user. By default they
        are found by the store's embedder; those of one embedder are not found by another.
        """
        one_of("distance", distance, get_args(Distance))
        return AsyncDocuments(self._opened, self.name, self.id, embedder, distance)

    async def find_id(self, beginning: str, *, of: str) -> UUID:
        """Give the id that begins like this, 4 digits or more: `of` a "fact", a "summary", a "change" or a "receipt".

        Raises `InvalidInput` where none of this user's does, or more than one; a whole id is not looked for.
        """
        look = {"fact": facts.between, "summary": summaries.between}
        look |= {"change": fact_changes.between, "receipt": receipts.between}
        one_of("of", of, tuple(look))
        first, last = beginning_of(beginning)
        if first == last:
            return first
        async with self._opened.database.scope(self.id) as scope:
            return the_one(await look[of](scope, first, last), beginning, of)

    async def audit_facts(self) -> list[Finding]:
        """Give what is wrong with facts: duplicate, conflict, stale."""
        from memstore.derive.facts.audit import audit

        return await audit(self._opened.database, self.id)

    async def drift(self) -> list[Drift]:
        """Give how far token counts were from what models' servers told (`conversation.observed`), by model."""
        async with self._opened.database.scope(self.id) as scope:
            return await counter_drift.drift(scope)

    async def receipt(self, receipt: Context | Receipt | UUID | str) -> Receipt:
        """Give the receipt of this id, or of a context, as it was kept; `explain()` says what its items say now.

        Raises `InvalidInput` where there is none: receipts are kept for `receipts_days`, and go with their
        conversation.
        """
        id = id_of_receipt(receipt_of(receipt))
        async with self._opened.database.scope(self.id) as scope:
            found = await receipts.receipt(scope, id)
        if found is None:
            raise NotFound(f"This user has no receipt {id}; they are kept for receipts_days, then forgotten.")
        return found

    async def replay(self, receipt: Context | Receipt | UUID | str, *, format: Format | None = None) -> Replay:
        """Give a context again, from itself, its receipt or that one's id: the same bytes as were sent, as they were.

        `format` is for a format of one's own, of which a receipt has the name alone.

        Where something was erased or made anew since, `exact` is False and `missing` says what. A receipt may also be
        one that was kept elsewhere and read by `Receipt.from_dict`. Raises `InvalidInput` for an id that is unknown.
        """
        given = receipt_of(receipt)
        found = given if isinstance(given, Receipt) else await self.receipt(given)
        if found.conversation_id is None:
            raise InvalidInput("This receipt is of no conversation: it was not made by conversation.context().")
        async with self._opened.database.scope(self.id) as scope:
            return await replay(scope, found, format)

    async def dead_letters(self, *, limit: int = 1000) -> list[DeadLetter]:
        """Give what a chat model answered about this user's messages and nobody could use, the oldest first.

        Rules and sentences did what they were for; `derive` with `redo` asks again, and takes away what is answered.
        """
        check_limit(limit)
        async with self._opened.database.scope(self.id) as scope:
            return await model_calls.letters(scope, limit=limit)

    async def events(
        self, *, after: str | None = None, types: Sequence[str] | None = None, limit: int = 100
    ) -> list[Event]:
        """Give what happened, from the outbox, in order; `after` is the `cursor` of the last event that was read.

        Who reads on from there misses nothing: an event is given once every transaction before its own has ended.
        """
        check_limit(limit)
        wanted = listed(types, "types", EventType)
        async with self._opened.database.scope(self.id) as scope:
            return await events.events(scope, after=after, types=wanted, limit=limit)
