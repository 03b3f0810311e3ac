"""Contexts: what a model is sent."""

from __future__ import annotations

from dataclasses import dataclass

from memstore.models.receipts import Receipt
from memstore.models.rows import Json


@dataclass(frozen=True, slots=True)
class Context:
    """A finished context: chat messages whose tokens, counted as a whole, are within the budget.

    `receipt.id` is what the receipt is read by later, where it was kept.
    """

    messages: list[Json]
    tokens: int
    receipt: Receipt

    def explain(self) -> str:
        """Give the receipt for people: tokens by section, what is in, and what was left out and why."""
        return self.receipt.explain()
