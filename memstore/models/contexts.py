"""Contexts: what a model is sent."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from memstore.models.receipts import Receipt
from memstore.models.rows import Json
from memstore.models.statistics import Statistics


@dataclass(frozen=True, slots=True)
class Context:
    """A finished context: chat messages whose tokens, counted as a whole, are within the budget.

    Where the format has it so, the system prompt is apart in `system`; or all is one `text`, and there are no messages.
    `receipt.id` is what the receipt is read by later, where it was kept.
    """

    messages: list[Json]
    tokens: int
    receipt: Receipt
    system: str | None = None
    text: str | None = None
    messages_kept: int = 0
    messages_total: int = 0
    strategies: tuple[str, ...] = ()

    def __repr__(self) -> str:
        """Give it for people: how much there is of what, and which receipt says the rest."""
        many = len(self.messages)
        made = f"{many} message{'s' if many != 1 else ''}" if self.text is None else "a text"
        apart = " and a system prompt apart" if self.system is not None else ""
        receipt = "no receipt was kept" if self.receipt.id is None else f"receipt {self.receipt.id}"
        return f"<Context: {self.tokens:,} of {self.receipt.budget:,} tokens, {made}{apart}, {receipt}>"

    def statistics(self) -> Statistics:
        """Give tokens used of the budget, messages kept word for word of all in the conversation, strategies, roles.

        `roles` are those of `messages`: of a format that is one text there are none.
        """
        return Statistics(
            self.tokens,
            self.receipt.budget,
            self.messages_kept,
            self.messages_total,
            strategies=self.strategies,
            roles=Counter(str(message["role"]) for message in self.messages),
        )

    def as_dict(self) -> Json:
        """Give the context as JSON has it."""
        apart = {"system": self.system, "text": self.text}
        told = {key: value for key, value in apart.items() if value is not None}
        return {"messages": self.messages, "tokens": self.tokens, "receipt": self.receipt.as_dict()} | told

    def explain(self) -> str:
        """Give the receipt for people: tokens by section, what is in, and what was left out and why."""
        return self.receipt.explain()
