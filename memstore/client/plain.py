"""The plain calls of a conversation that small programs know from a list in memory.

They are about the present stretch of the conversation: what was said since it was last cleared. Nothing is ever
removed by them: `messages()` gives everything, and `recall` finds it.
"""

from __future__ import annotations

from itertools import takewhile
from typing import TYPE_CHECKING
from uuid import UUID

from memstore._compat import to_thread
from memstore.client.arguments import MOST
from memstore.client.opened import Opened
from memstore.context.defaults import BUDGET, STRATEGIES, effective
from memstore.context.turns import Turn, turns
from memstore.errors import InvalidInput
from memstore.ingest.check import one_of
from memstore.models import Json, Message, Role, Statistics
from memstore.providers import TokenCounter
from memstore.store import messages
from memstore.store.database import Database, Transaction

if TYPE_CHECKING:
    from memstore.client.user import AsyncUserScope

PAGE = 500  # messages read at once until there are enough
INSTRUCTIONS = (Role.SYSTEM, Role.DEVELOPER)


class AsyncPlainCalls:
    """What a conversation offers to programs that expect a list of messages."""

    id: UUID
    user: AsyncUserScope
    _opened: Opened

    @property
    def _database(self) -> Database:
        return self._opened.database

    async def get_all(self) -> list[Message]:
        """Give the messages since the conversation was last cleared, in order."""
        return await self._since_cleared()

    async def get_recent(self, n: int) -> list[Message]:
        """Give the newest `n` of them, in order; fewer where there are fewer."""
        if type(n) is not int or not 0 <= n <= MOST:
            raise InvalidInput(f"n={n!r}: give a number from 0 to {MOST:,}.")
        async with self._database.scope(self.user.id) as scope:
            after = await self._after(scope)
            found = await messages.newest(scope, self.id, limit=n) if n else []
        return [one for one in reversed(found) if one.seq > after]

    async def by_role(self, role: str) -> list[Message]:
        """Give those of a role: user, assistant, tool, system or developer."""
        one_of("role", role, tuple(Role))
        return await self._since_cleared(role)

    async def count(self) -> int:
        """Give how many there are."""
        async with self._database.scope(self.user.id) as scope:
            roles = await messages.roles(scope, self.id, await self._after(scope))
        return sum(count for count, _ in roles.values())

    async def clear(self) -> None:
        """Begin a new stretch: what was said so far is no longer among the recent messages of a context, nor here.

        Nothing is deleted: it is recalled, its facts and summaries too, and `messages()` gives it. What is being added
        meanwhile is on one side or the other.
        """
        async with self._database.scope(self.user.id) as scope:
            await messages.clear(scope, self.id)

    async def prune(self, max_tokens: int) -> list[Json]:
        """Give the newest messages as chat, in order, that together have at most `max_tokens` tokens: for sending.

        What is stored stays as it is. The finished chat is counted as a whole by the store's counter; a call of tools
        and its results are all in or none is. Instructions (roles system and developer) that open the stretch are kept
        before the newest messages, where they fit. Where nothing fits, the list is empty.
        """
        if isinstance(max_tokens, bool) or not isinstance(max_tokens, int) or max_tokens < 1:
            raise InvalidInput(f"max_tokens={max_tokens!r}: give a whole number of tokens, at least 1.")
        async with self._database.scope(self.user.id) as scope:
            after = await self._after(scope)
            first = await messages.messages(scope, self.id, from_seq=after + 1, limit=PAGE)
            found = await self._newest(scope, after, max_tokens)
        opening = list(takewhile(lambda one: one.role in INSTRUCTIONS, first))
        newest = [one for one in found if not opening or one.seq > opening[-1].seq]
        return await to_thread(_fitting, opening, newest, max_tokens, self._opened.counter)

    async def statistics(self) -> Statistics:
        """Give tokens and messages since the conversation was last cleared, of all; the budget and the strategies.

        Tokens are those of the texts as they were counted when they were added.
        """
        async with self._database.scope(self.user.id) as scope:
            found = await messages.conversation(scope, self.id)
            own = found.settings if found else {}
            roles = await messages.roles(scope, self.id, messages.cleared(own))
            ever = await messages.roles(scope, self.id)
        settings = effective(own, self._opened.settings)
        return Statistics(
            tokens=sum(tokens for _, tokens in roles.values()),
            budget=settings[BUDGET],
            messages_kept=sum(count for count, _ in roles.values()),
            messages_total=sum(count for count, _ in ever.values()),
            strategies=tuple(one["strategy"] for one in settings[STRATEGIES]),
            roles={role: count for role, (count, _) in roles.items()},
        )

    async def settings(self) -> Json:
        """Give the conversation's settings by name: its own, else the system's; `describe(settings=…)` sets them."""
        async with self._database.scope(self.user.id) as scope:
            own = await messages.settings_of(scope, self.id)
        return effective(own, self._opened.settings)

    async def _since_cleared(self, role: str | None = None) -> list[Message]:
        async with self._database.scope(self.user.id) as scope:
            after = await self._after(scope)
            return await messages.messages(scope, self.id, from_seq=after + 1, roles=None if role is None else [role])

    async def _after(self, scope: Transaction) -> int:
        return messages.cleared(await messages.settings_of(scope, self.id))

    async def _newest(self, scope: Transaction, after: int, tokens: int) -> list[Message]:
        """Give the newest messages in order, by their texts' tokens at least as many as fit."""
        found: list[Message] = []
        size = 0
        while size <= tokens or (found and found[-1].role == Role.TOOL):
            before = found[-1].seq if found else messages.LAST
            page = await messages.newest(scope, self.id, limit=PAGE, before=before)
            found += page
            size += sum(one.tokens for one in page)
            if not page or page[-1].seq <= after + 1:
                break
        return [one for one in reversed(found) if one.seq > after]


def _fitting(opening: list[Message], newest: list[Message], most: int, counter: TokenCounter) -> list[Json]:
    """Give what fits: the opening where it does, and as many of the newest turns as then do, without a gap."""
    head = [one.as_chat() for one in opening]
    if counter.count_messages(head) > most:
        head = []
    found, _ = turns(newest)
    room = most - counter.count_messages(head)
    kept: list[Turn] = []
    for turn in reversed(found):
        room -= sum(counter.count_message(message.as_chat()) for message in turn.messages)
        if room < 0:
            break
        kept.insert(0, turn)
    chat = [*head, *_chat(kept)]
    while kept and counter.count_messages(chat) > most:
        kept.pop(0)
        chat = [*head, *_chat(kept)]
    return chat if counter.count_messages(chat) <= most else []


def _chat(found: list[Turn]) -> list[Json]:
    return [message.as_chat() for turn in found for message in turn.messages]
