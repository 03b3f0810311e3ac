"""How full a context or a conversation is, and how large a user, in a few numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from memstore.models.rows import Tier


@dataclass(frozen=True, slots=True)
class LargeUser:
    """A user with more units of recall than are held in a process, and whether all is there that makes recall fast."""

    id: UUID
    name: str
    units: int
    indexed: bool


@dataclass(frozen=True, slots=True)
class Statistics:
    """Tokens used of a budget, messages kept of all there are, and by which strategies.

    Of a context: its tokens, and the conversation's messages that are in word for word; `roles` says how many of the
    messages that are sent each role has. Of a conversation: the tokens
    and messages since it was last cleared, of all that are stored, against the budget that its contexts have; `roles`
    says how many messages each role has since then.
    """

    tokens: int
    budget: int | None
    messages_kept: int
    messages_total: int
    strategies: tuple[str, ...] = ()
    roles: Mapping[str, int] = field(default_factory=dict)

    @property
    def used(self) -> float | None:
        """The share of the budget that is used; more than 1 where a whole conversation would not fit."""
        return None if self.budget is None else self.tokens / self.budget

    @property
    def strategy(self) -> str:
        """The strategies in one text, "none" for none."""
        return ", ".join(self.strategies) or "none"


@dataclass(frozen=True, slots=True)
class Timeline:
    """How many items of each tier, facts those that are active, there are in each of equal parts of the time.

    `since` and `until` are when the first and the last message was said.
    """

    since: datetime
    until: datetime
    items: Mapping[Tier, tuple[int, ...]]
