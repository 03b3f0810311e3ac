"""A private conversation: it may read memory, and nothing of it is stored."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING
from uuid import uuid4

from memstore._compat import to_thread
from memstore.client.conversation import AsyncConversationScope
from memstore.errors import InvalidInput
from memstore.ingest.add import ConversationRef, MessageInput, OnConflict, hold
from memstore.ingest.validation import When, check_number, check_object, to_list, to_utc
from memstore.models import Certificate, Conversation, Json, Message, Receipt, Role, Statistics, Summary
from memstore.store.messages import MAX_SEQ

if TYPE_CHECKING:
    from memstore.client.user import AsyncUserScope

NOTHING_STORED = "is private: nothing of it is stored, and it ends with the object that holds it."


class AsyncPrivateConversationScope(AsyncConversationScope):
    """A conversation whose messages this object holds alone; they are gone with it.

    Made by `user.conversation(name, private=True)`, each time another one. Its contexts have the user's memory and its
    own turns; no row, receipt, event or job is made of it.
    """

    def __init__(self, user: AsyncUserScope, place: ConversationRef) -> None:
        super().__init__(user, place)
        # No stored conversation has it.
        self.id = uuid4()
        self._held: list[Message] = []
        self._cleared_seq = 0

    async def add_many(self, messages: Sequence[MessageInput], *, on_conflict: OnConflict = "error") -> list[Message]:
        """Hold messages in order, all of them or none; return them with their numbers and tokens."""
        runtime = self._runtime
        max_bytes, redactor = runtime.settings.max_message_bytes, runtime.redactor
        return await to_thread(
            hold, self._held, self.id, runtime.counter, self._place, messages, on_conflict, max_bytes, redactor
        )

    async def messages(
        self,
        *,
        from_seq: int = 1,
        to_seq: int = MAX_SEQ,
        roles: Sequence[str] | None = None,
        tags: Sequence[str] | None = None,
        metadata: Json | None = None,
        since: When | None = None,
        until: When | None = None,
        limit: int | None = None,
    ) -> list[Message]:
        """Return messages in order, as a stored conversation does."""
        if limit is not None:
            check_number(limit, "limit")
        check_object(metadata, "metadata")
        wanted_roles, wanted_tags = to_list(roles, "roles", Role), set(to_list(tags, "tags") or ())
        begin, end = to_utc(since, "since"), to_utc(until, "until")
        found = [
            message
            for message in self._held
            if from_seq <= message.seq <= to_seq
            and (wanted_roles is None or message.role in wanted_roles)
            and wanted_tags <= set(message.tags)
            and (metadata or {}).items() <= message.meta.items()
            and (begin is None or message.occurred_at >= begin)
            and (end is None or message.occurred_at < end)
        ]
        return found[:limit]

    async def recent(self, limit: int | None = None) -> list[Message]:
        """Return the messages since the conversation was last cleared, in order: all, or the newest `limit` of them."""
        if limit is not None:
            check_number(limit, "limit", 0)
        recent = [message for message in self._held if message.seq > self._cleared_seq]
        return recent if limit is None else recent[len(recent) - min(limit, len(recent)) :]

    async def clear(self) -> None:
        """Start anew: earlier messages are no longer among the recent messages, of contexts too."""
        self._cleared_seq = len(self._held)

    async def statistics(self) -> Statistics:
        """Return tokens and messages since the conversation was last cleared, messages in all, and the budget."""
        recent = await self.recent()
        return Statistics(
            tokens=sum(message.tokens for message in recent),
            budget=self._runtime.settings.context_budget,
            messages_kept=len(recent),
            messages_total=len(self._held),
            roles=Counter(message.role for message in recent),
        )

    async def info(self) -> Conversation | None:
        """Return None: it is not stored."""
        return None

    async def summaries(self, *, level: int | None = None) -> list[Summary]:
        """Return none: nothing is derived of it."""
        return []

    async def receipts(self, *, limit: int = 20) -> list[Receipt]:
        """Return none: a context's receipt is with the context alone."""
        return []

    async def summarize(self, from_seq: int | None = None, to_seq: int | None = None) -> Summary:
        """Raise `InvalidInput`: a summary would be stored."""
        raise InvalidInput(f"The conversation {self.name!r} {NOTHING_STORED}")

    async def update(self, **settings: object) -> None:
        """Raise `InvalidInput`: settings would be stored. Give them to `context`."""
        raise InvalidInput(f"The conversation {self.name!r} {NOTHING_STORED} Give context() what would be set.")

    async def erase(self, *, dry_run: bool = False) -> Certificate:
        """Raise `InvalidInput`: there is nothing to erase."""
        raise InvalidInput(f"The conversation {self.name!r} {NOTHING_STORED} There is nothing to erase.")
