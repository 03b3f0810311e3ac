"""Contexts, and the record of how each was made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from uuid import UUID

from memstore.models.rows import Json


@dataclass(frozen=True, slots=True)
class Decision:
    """What became of one candidate for a context: in, or left out and why."""

    section: str
    kind: str
    id: UUID | None
    tokens: int
    reason: str
    score: float | None = None

    def as_dict(self) -> Json:
        """Give the decision as JSON has it."""
        return {
            "section": self.section,
            "kind": str(self.kind),
            "id": None if self.id is None else str(self.id),
            "tokens": self.tokens,
            "reason": self.reason,
            "score": self.score,
        }


@dataclass(frozen=True, slots=True)
class Compression:
    """What one strategy did to a conversation: about its tokens before and after, and how many turns it took."""

    strategy: str
    before: int
    after: int
    turns: int

    @property
    def saved(self) -> int:
        """The tokens that the conversation is shorter by."""
        return self.before - self.after

    def as_dict(self) -> Json:
        """Give it as JSON has it."""
        counts = {"tokens_before": self.before, "tokens_after": self.after, "saved": self.saved, "turns": self.turns}
        return {"strategy": self.strategy} | counts


@dataclass(frozen=True, slots=True)
class Receipt:
    """The record of one assembly. Tokens are the counter's; `stable_prefix` is how many of them, from the start,
    follow from what is stored and not from this question, so that a model's cache of them stays good. `compressed` is
    what each strategy did, in order."""

    budget: int
    tokens: int
    counter: str
    sections: Mapping[str, int]
    included: tuple[Decision, ...]
    left_out: tuple[Decision, ...]
    stable_prefix: int
    reserve: int = 0
    compressed: tuple[Compression, ...] = ()

    def as_dict(self) -> Json:
        """Give the receipt as JSON has it."""
        decisions = {"included": self.included, "left_out": self.left_out}
        compressed = {"compressed": [one.as_dict() for one in self.compressed]} if self.compressed else {}
        return {
            "budget": self.budget,
            "reserve": self.reserve,
            "tokens": self.tokens,
            "counter": self.counter,
            "sections": dict(self.sections),
            "stable_prefix": self.stable_prefix,
            **compressed,
        } | {name: [decision.as_dict() for decision in made] for name, made in decisions.items()}


@dataclass(frozen=True, slots=True)
class Context:
    """A finished context: chat messages whose tokens, counted as a whole, are within the budget."""

    messages: list[Json]
    tokens: int
    receipt: Receipt

    def explain(self) -> str:
        """Give the receipt for people: tokens by section, what is in, and what was left out and why."""
        receipt = self.receipt
        lines = [
            f"{receipt.tokens:,} of {receipt.budget:,} tokens ({receipt.counter}), {receipt.stable_prefix:,} stable"
        ]
        lines += [f"  {section:<10} {tokens:>7,}" for section, tokens in receipt.sections.items()]
        lines += [
            f"  {one.strategy}: {one.turns} turns, {one.before:,} → {one.after:,} tokens" for one in receipt.compressed
        ]
        lines += [_told("in", decision) for decision in receipt.included]
        lines += [_told("out", decision) for decision in receipt.left_out]
        return "\n".join(lines)


def _told(verdict: str, decision: Decision) -> str:
    score = "" if decision.score is None else f" score {decision.score:.3f}"
    reason = f": {decision.reason}" if decision.reason else ""
    return f"  {verdict:<3} {decision.section:<9} {decision.kind} {decision.id} {decision.tokens} tokens{score}{reason}"
