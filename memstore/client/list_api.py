"""The calls of a conversation for programs that expect a list of messages.

They are about the messages since the conversation was last cleared. They never remove anything: `messages()` returns
everything, and `recall` finds it.
"""

from __future__ import annotations

from itertools import chain, takewhile
from typing import TYPE_CHECKING
from uuid import UUID

from memstore._compat import to_thread
from memstore.client.runtime import Runtime
from memstore.client.validation import MOST_ROWS, check_number
from memstore.context.request import BUDGET, STRATEGIES, effective_settings
from memstore.context.strategies.base import split_turns
from memstore.ingest.validation import check_choice
from memstore.models import Json, Message, Role, Statistics
from memstore.providers import TokenCounter
from memstore.store import messages
from memstore.store.database import Database, Transaction

if TYPE_CHECKING:
    from memstore.client.user import AsyncUserScope

PAGE_SIZE = 500  # messages read at once until there are enough
INSTRUCTIONS = (Role.SYSTEM, Role.DEVELOPER)


class AsyncMessageListMixin:
    """What a conversation offers to programs that expect a list of messages."""

    id: UUID
    user: AsyncUserScope
    _runtime: Runtime
    _database: Database

    async def get_all(self) -> list[Message]:
        """Return the messages since the conversation was last cleared, in order."""
        return await self._since_cleared()

    async def get_recent(self, n: int) -> list[Message]:
        """Return the newest `n` of them, in order."""
        check_number(n, "n", 0, MOST_ROWS)
        async with self._database.user_transaction(self.user.id) as scope:
            cleared = await self._cleared(scope)
            newest = await messages.newest(scope, self.id, limit=n) if n else []
        return [message for message in reversed(newest) if message.seq > cleared]

    async def by_role(self, role: str) -> list[Message]:
        """Return those of a role: user, assistant, tool, system or developer."""
        check_choice("role", role, tuple(Role))
        return await self._since_cleared([role])

    async def count(self) -> int:
        """Return how many there are."""
        async with self._database.user_transaction(self.user.id) as scope:
            roles = await messages.roles(scope, self.id, await self._cleared(scope))
        return sum(count for count, _ in roles.values())

    async def clear(self) -> None:
        """Start anew: what was said so far is no longer among the recent messages of contexts and of these calls.

        Nothing is deleted: recall, facts, summaries and `messages()` still have it.
        """
        async with self._database.user_transaction(self.user.id) as scope:
            await messages.clear(scope, self.id)

    async def prune(self, max_tokens: int) -> list[Json]:
        """Return the newest messages as chat dicts that have at most `max_tokens` tokens, counted as a whole.

        Nothing is removed from the store. A tool call and its results are all included or none is. Instructions (roles
        system and developer) at the beginning are kept where they fit. The list is empty if nothing fits.
        """
        check_number(max_tokens, "max_tokens", 1, 10**9)
        async with self._database.user_transaction(self.user.id) as scope:
            cleared = await self._cleared(scope)
            oldest = await messages.messages(scope, self.id, from_seq=cleared + 1, limit=PAGE_SIZE)
            newest = await self._newest(scope, cleared, max_tokens)
        opening = list(takewhile(lambda message: message.role in INSTRUCTIONS, oldest))
        rest = [message for message in newest if not opening or message.seq > opening[-1].seq]
        return await to_thread(_fit, opening, rest, max_tokens, self._runtime.counter)

    async def statistics(self) -> Statistics:
        """Return tokens and messages since the conversation was last cleared, messages in all, budget and strategies.

        Tokens are those of the texts, as counted when they were added.
        """
        async with self._database.user_transaction(self.user.id) as scope:
            own = await messages.settings_of(scope, self.id)
            recent = await messages.roles(scope, self.id, messages.cleared(own))
            every = await messages.roles(scope, self.id)
        settings = effective_settings(own, self._runtime.settings)
        return Statistics(
            tokens=sum(tokens for _, tokens in recent.values()),
            budget=settings[BUDGET],
            messages_kept=sum(count for count, _ in recent.values()),
            messages_total=sum(count for count, _ in every.values()),
            strategies=tuple(strategy["strategy"] for strategy in settings[STRATEGIES]),
            roles={role: count for role, (count, _) in recent.items()},
        )

    async def settings(self) -> Json:
        """Return the conversation's settings by name: its own, else the system's; `update(settings=…)` sets them."""
        async with self._database.user_transaction(self.user.id) as scope:
            own = await messages.settings_of(scope, self.id)
        return effective_settings(own, self._runtime.settings)

    async def _since_cleared(self, roles: list[str] | None = None) -> list[Message]:
        async with self._database.user_transaction(self.user.id) as scope:
            cleared = await self._cleared(scope)
            return await messages.messages(scope, self.id, from_seq=cleared + 1, roles=roles)

    async def _cleared(self, scope: Transaction) -> int:
        return messages.cleared(await messages.settings_of(scope, self.id))

    async def _newest(self, scope: Transaction, cleared: int, tokens: int) -> list[Message]:
        """Return the newest messages in order, by their own tokens at least as many as fit."""
        newest: list[Message] = []
        size = 0
        while size <= tokens or (newest and newest[-1].role == Role.TOOL):
            before = newest[-1].seq if newest else messages.LAST
            page = await messages.newest(scope, self.id, limit=PAGE_SIZE, before=before)
            newest += page
            size += sum(message.tokens for message in page)
            if not page or page[-1].seq <= cleared + 1:
                break
        return [message for message in reversed(newest) if message.seq > cleared]


def _fit(opening: list[Message], newest: list[Message], max_tokens: int, counter: TokenCounter) -> list[Json]:
    """Return what fits: the opening if it does, and as many of the newest turns, without a gap."""
    head = [message.as_chat() for message in opening]
    if counter.count_messages(head) > max_tokens:
        head = []
    left = max_tokens - counter.count_messages(head)
    kept: list[list[Json]] = []  # the newest turn first
    for turn in reversed(split_turns(newest)[0]):
        chat = [message.as_chat() for message in turn.messages]
        left -= sum(map(counter.count_message, chat))
        if left < 0:
            break
        kept.append(chat)
    while True:  # a chat may count more than the sum of its messages
        chat = [*head, *chain.from_iterable(reversed(kept))]
        if counter.count_messages(chat) <= max_tokens:
            return chat
        if not kept:
            return []
        kept.pop()
