"""One user's memory: conversations, recall, facts."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from memstore import ids
from memstore.errors import InvalidInput
from memstore.events import Event, EventType
from memstore.ingest.add import Place
from memstore.ingest.check import check_name, check_text
from memstore.memory.arguments import aware, check_limit, known_tiers, listed
from memstore.memory.conversation import AsyncConversationScope
from memstore.memory.opened import Opened
from memstore.models import Conversation, Fact, Hit, Role
from memstore.retrieve.recall import recall
from memstore.store import events, facts, messages
from memstore.store.items import EVERY_TIER, Filters

STATES = ("active", "superseded", "retracted", None)


class AsyncUserScope:
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
        return AsyncConversationScope(self, Place(self.name, name, title, channel))

    async def conversations(self, *, channel: str | None = None) -> list[Conversation]:
        """Give the user's conversations, the latest first."""
        async with self._opened.database.scope(self.id) as scope:
            return await messages.conversations(scope, channel)

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
    ) -> list[Hit]:
        """Give what is remembered about a question, the best first, over messages, summaries and facts.

        `since` (inclusive) and `until` (not) bound when it was said, `as_of` hides what was recorded later. Tags must
        all be there. Scores are comparable within one recall.
        """
        check_text(query, "the query")
        check_limit(limit)
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
        embedder = await self._opened.encoder()
        return await recall(
            self._opened.database, embedder, self.id, query, filters=filters, limit=limit, min_score=min_score
        )

    async def facts(
        self, *, state: str | None = "active", type: str | None = None, as_of: datetime | None = None
    ) -> list[Fact]:
        """Give facts with their sources, the latest first; those of every state with `state=None`."""
        if type is not None:
            check_text(type, "the type")
        if state not in STATES:
            raise InvalidInput(f"state={state!r}: give one of active, superseded, retracted, or None for all.")
        async with self._opened.database.scope(self.id) as scope:
            return await facts.facts(scope, state=state, type=type, as_of=aware(as_of, "as_of"))

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
