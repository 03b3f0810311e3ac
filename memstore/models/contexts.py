"""Contexts: the sections they are made of, their receipts, and their replays."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from functools import cache
from typing import Any, Self
from uuid import UUID

from pydantic import TypeAdapter

from memstore.models.messages import Json
from memstore.text import quantify

MAX_PREVIEW_CHARS = 160
# Tokens (int), or a share of the room (float): 1 is a token, 1.0 is all.
Amount = int | float


@dataclass(frozen=True, slots=True)
class Section:
    """The limits of one section of a context: "facts", "summaries", "hits", "recent", or one of your own with a text.

    `minimum` and `maximum` are tokens (an int) or a share (a float up to 1.0) of the room, which is the budget without
    the reserve, the tools and the system prompt. Items that fit into the minimum are always included. `weight` says
    which part of the rest the section may count on (built in: hits 0.45, recent 0.3, summaries 0.15, facts 0.1, your
    own 0.25); sections of the highest `priority` first use what others leave.

    `text` is a text, or several in the order of preference. A `static` section stands at the start, where a model's
    cache keeps it, and does not depend on the question; others stand just before the question.
    """

    name: str
    text: str | Sequence[str] | None = None
    minimum: Amount = 0
    maximum: Amount | None = None
    weight: float | None = None
    priority: int = 0
    static: bool = False

    @property
    def texts(self) -> tuple[str, ...]:
        """The texts in the order of preference; empty for a built-in section."""
        return () if self.text is None else (self.text,) if isinstance(self.text, str) else tuple(self.text)

    def as_dict(self) -> Json:
        """Return the section as JSON, without default values."""
        return as_json(self)


class Reason(StrEnum):
    """Why a candidate is not in a context, or not word for word. A closed set: programs may rely on it.

    Each has its `meaning`, which docs/reference/receipts.md shows.
    """

    meaning: str

    def __new__(cls, value: str, meaning: str) -> Self:
        """Return the reason with its meaning, in Markdown for the docs."""
        reason = str.__new__(cls, value)
        reason._value_, reason.meaning = value, meaning
        return reason

    RANKED_LOWER = (
        "ranked lower",
        "of all chunks only the best are offered to the budget. The note says how many, and the lowest score of "
        "them; not of how many for a viewer or a past moment",
    )
    OVER_BUDGET = (
        "over budget",
        "it did not fit into the budget or its section; [standing facts](contexts.md#standing-facts) have a third "
        "of the room. From 2,500 tokens of room on facts have a tenth of it, and hits come before them in the "
        "rest, also hits with lower scores",
    )
    DUPLICATE = "duplicate", "another part of the same item, or an item that says the same, is a candidate"
    ALREADY_IN_RECENT = "shown among the recent turns", "it is there already"
    COVERED = "covered by a summary", "an older turn, under a summary that is in"
    COMPRESSED = "compressed by a strategy", "it is in a block, or a strategy left it out; `note` says which"
    SUPERSEDED = (
        "superseded",
        "a fact that was superseded or retracted; `others` has the id of its successor. In a context of less than "
        "1,000 tokens also a message or summary that says such a fact",
    )
    EXPIRED = "expired", "a fact whose [`expires_at`](facts.md#pinned-unimportant-expired) has passed"
    UNIMPORTANT = "unimportant", "a fact [marked so](facts.md#pinned-unimportant-expired)"
    SAYS_NOTHING = (
        "says nothing alone",
        "a hit of nothing but greeting, thanks, praise or assent, and no answer to a question; of a "
        "[profile](profiles.md#sections), a quotation that does not stand alone",
    )
    NOT_RELEVANT = (
        "less relevant than asked for",
        "the context has no facts and no hits: nothing stored has the relevance that "
        "[`min_relevance`](contexts.md#silence) asks for",
    )
    NOT_VISIBLE = "not visible", "this viewer may not see it; no `explain()` shows its text, now or later"
    UNPAIRED = "unpaired tool call", "the call or some of its results are missing, which every API refuses"


@dataclass(frozen=True, slots=True)
class Decision:
    """Whether one candidate is in a context, and why not, or why not word for word.

    `tokens` are what it was expected to add; `parts` what each signal adds to its score; `seqs` the first and last
    message that it is or stands for; `others` the ids of a turn's further messages, of the fact that superseded it, or
    of a profile's facts; `start` the character from which on it is shown. A `standing` item is included whatever is
    asked; what is of a `space` has its name. `preview` is how its text begins, for people: stored only where the text
    is a strategy's or your own.
    """

    section: str
    kind: str
    id: UUID | None
    tokens: int
    reason: Reason | None = None
    score: float | None = None
    parts: Mapping[str, float] = field(default_factory=dict)
    note: str = ""
    seqs: tuple[int, int] | None = None
    others: tuple[UUID, ...] = ()
    start: int = 0
    standing: bool = False
    space: str | None = None
    preview: str = field(default="", compare=False)

    def as_dict(self) -> Json:
        """Return the decision as JSON, without default values but for id, reason and score."""
        return {"id": None, "reason": None, "score": None} | as_json(self, exclude={"preview"})


@dataclass(frozen=True, slots=True)
class Compression:
    """The effect of one strategy: about the tokens of the conversation before and after, and how many turns it took."""

    strategy: str
    tokens_before: int
    tokens_after: int
    turns: int

    @property
    def saved(self) -> int:
        """The tokens that the conversation is shorter by."""
        return self.tokens_before - self.tokens_after

    def as_dict(self) -> Json:
        """Return it as JSON."""
        return as_json(self) | {"saved": self.saved}


@dataclass(frozen=True, slots=True)
class Receipt:
    """The record of one context. Tokens are the counter's, `count` is how they are known: exact, server, estimated …

    `included` are in the order in which they were chosen, `left_out` the best of each section; `unlisted` counts the
    others that were left out, by reason. `static_tokens` are the tokens from the start that do not depend on the
    question. `relevance` says how likely anything stored matters to the question, where a context asked for that.
    `compressed` is what each strategy did, in order.

    `question` is how the question begins, `content_hash` the SHA-256 of the canonical JSON of what was sent; `replay`
    has both whole. `arguments` and `models` are what the context was made with.
    """

    budget: int
    tokens: int
    counter: str
    sections: Mapping[str, int]
    included: tuple[Decision, ...]
    left_out: tuple[Decision, ...]
    reserve: int = 0
    compressed: tuple[Compression, ...] = ()
    static_tokens: int = 0
    relevance: float | None = None
    count: str = "exact"
    unlisted: Mapping[str, int] = field(default_factory=dict)
    question: str = ""
    content_hash: str = ""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    models: Mapping[str, str] = field(default_factory=dict)
    hints: tuple[str, ...] = ()
    id: UUID | None = None
    conversation_id: UUID | None = None
    recorded_at: datetime | None = field(default=None, compare=False)

    def as_dict(self) -> Json:
        """Return the receipt as JSON; `Receipt.from_dict` reads it back, but for `preview` and `recorded_at`."""
        always = {name: getattr(self, name) for name in ("budget", "reserve", "static_tokens", "count")}
        body = always | as_json(self, exclude={"included", "left_out", "compressed", "recorded_at"})
        body |= {name: [item.as_dict() for item in getattr(self, name)] for name in ("included", "left_out")}
        return body | ({"compressed": [step.as_dict() for step in self.compressed]} if self.compressed else {})

    @classmethod
    def from_dict(cls, body: Mapping[str, Any]) -> Receipt:
        """Return the receipt that `as_dict` wrote. Raises `ValueError` for anything else."""
        receipt: Receipt = adapter(Receipt).validate_python(body)
        return receipt

    def decisions(self) -> Iterator[Decision]:
        """Yield what is included, then what was left out."""
        yield from self.included
        yield from self.left_out

    def explain(self) -> str:
        """Return the receipt as text: tokens by section, what is included, and what was left out and why."""
        kept = f", {self.reserve:,} of them kept free" if self.reserve else ""
        used = f"{self.tokens:,} of {self.budget:,} tokens{kept} ({self.counter}, {self.count})"
        lines = [f"{used}; {self.static_tokens:,} the same in every context"]
        if moment := self.arguments.get("as_of"):
            lines.append(f"of what was known at {moment}")
        for section, tokens in self.sections.items():
            bar = "█" * round(40 * tokens / self.budget)
            lines.append(f"  {section:<10} {tokens:>7,}  {bar}".rstrip())
        for section in dict.fromkeys(decision.section for decision in self.decisions()):
            inside = [decision for decision in self.included if decision.section == section]
            outside = [decision for decision in self.left_out if decision.section == section]
            lines.append(f"{section}: {len(inside)} in, {len(outside)} out")
            for sign, decisions in (("+", inside), ("-", outside)):
                listed = decisions[:12]
                lines += [f"  {sign} {_explain(decision, self)}" for decision in listed]
                if decisions[12:]:
                    lines.append(f"  {sign} and {len(decisions) - len(listed):,} more")
        for step in self.compressed:
            size = f"{step.tokens_before:,} → {step.tokens_after:,} tokens"
            lines.append(f"{step.strategy}: {quantify(step.turns, 'turn')}, {size}")
        if self.unlisted:
            counts = ", ".join(f"{self.unlisted[reason]:,} {reason}" for reason in sorted(self.unlisted))
            lines.append(f"more were looked at and left out: {counts}")
        return "\n".join([*lines, *self.hints])


PROFILE_HEADINGS = {
    "answers": "How to answer",
    "identity": "Who this is",
    "holds": "What holds",
    "planned": "What is planned",
    "happened": "What happened",
}


@dataclass(frozen=True, slots=True)
class ProfileLine:
    """A line of a profile: `section` is identity, holds, planned, answers or said; `sources` are ids of messages."""

    section: str
    text: str
    fact_id: UUID
    sources: tuple[UUID, ...]
    said_at: datetime


@dataclass(frozen=True, slots=True)
class Profile:
    """A subject's facts as a `text` within a budget of tokens; its receipt is not stored."""

    subject: str
    lines: tuple[ProfileLine, ...]
    text: str
    tokens: int
    receipt: Receipt

    def as_dict(self) -> Json:
        """Return it as JSON."""
        return as_json(self, exclude={"receipt"}) | {"receipt": self.receipt.as_dict()}


def _explain(decision: Decision, receipt: Receipt) -> str:
    largest = sorted(decision.parts.items(), key=lambda part: (-part[1], part[0]))
    parts = ", ".join(f"{name} {value:.2f}" for name, value in largest if value)
    score = "" if decision.score is None else f"score {decision.score:.3f}" + (f" ({parts})" if parts else "")
    # Superseded facts are not counted.
    size = quantify(decision.tokens, "token") if decision.tokens or not score else ""
    why = [str(decision.reason or ""), decision.note]
    # "not visible to bob" says both.
    why = why[decision.note.startswith(why[0]) :]
    if decision.reason == Reason.SUPERSEDED and decision.others:
        unknown = Decision(decision.section, decision.kind, decision.others[0], 0)
        successor = next((other for other in receipt.decisions() if other.id == unknown.id), unknown)
        why.append(f"in its place is {_preview(successor)}")
    reasons = "; ".join(filter(None, why))
    always = "in every context" if decision.standing and decision.reason is None else ""
    return f"{_preview(decision)} {', '.join(filter(None, [size, score, always]))}{f': {reasons}' if reasons else ''}"


def _preview(decision: Decision) -> str:
    if not decision.preview:
        return f"[{decision.kind} {decision.id}]" if decision.id else f"[{decision.kind}]"
    line = " ".join(decision.preview.split())
    return f"“{line if len(line) <= 64 else f'{line[:63].rstrip()}…'}”"


@dataclass(frozen=True, slots=True)
class Statistics:
    """The size of a context or a conversation.

    Of a context: its tokens, the conversation's messages that it has word for word, and in `roles` how many messages
    each role has in it. Of a conversation: tokens and messages since it was last cleared, and all that are stored.
    `strategy` has names, comma-separated.
    """

    tokens: int
    budget: int | None
    messages_kept: int
    messages_total: int
    strategy: str = "none"
    roles: Mapping[str, int] = field(default_factory=dict)

    @property
    def used(self) -> float | None:
        """The share of the budget that is used; more than 1 where a whole conversation would not fit."""
        return None if self.budget is None else self.tokens / self.budget


@dataclass(frozen=True, slots=True)
class Context:
    """A finished context: chat messages whose tokens, counted as a whole, are within the budget.

    Formats with a separate system prompt have it in `system`; formats that are one `text` have no messages.
    `receipt.id` finds the receipt later; it is None if the receipt was not stored.
    """

    messages: list[Json]
    tokens: int
    receipt: Receipt
    system: str | None = None
    text: str | None = None
    messages_kept: int = 0
    messages_total: int = 0
    strategy: str = "none"

    def __repr__(self) -> str:
        return f"<Context: {self.tokens:,} of {self.receipt.budget:,} tokens, receipt {self.receipt.id}>"

    def statistics(self) -> Statistics:
        """Return tokens of the budget, messages kept word for word, strategy, and the roles of `messages`."""
        return Statistics(
            self.tokens,
            self.receipt.budget,
            self.messages_kept,
            self.messages_total,
            strategy=self.strategy,
            roles=Counter(str(message["role"]) for message in self.messages),
        )

    def as_dict(self) -> Json:
        """Return the context as JSON."""
        body = {"messages": self.messages, "tokens": self.tokens, "receipt": self.receipt.as_dict()}
        return body | {name: value for name in ("system", "text") if (value := getattr(self, name)) is not None}

    def explain(self) -> str:
        """Return the receipt as text: tokens by section, what is included, and what was left out and why."""
        return self.receipt.explain()


@dataclass(frozen=True, slots=True)
class Replay:
    """What was sent with a context, to the byte, and its receipt."""

    receipt: Receipt
    messages: list[Json]
    system: str | None = None
    text: str | None = None

    def as_dict(self) -> Json:
        """Return the replay as JSON."""
        receipt = None if self.receipt.id is None else str(self.receipt.id)
        body = as_json(self, exclude={"receipt"})
        return {"receipt": receipt, "messages": self.messages} | body


def as_json(value: Any, **options: Any) -> Json:
    """Return a dataclass as JSON, without default values; `options` are pydantic's."""
    # mypy takes no type of Any for hashable.
    kind: Any = type(value)
    body: Json = adapter(kind).dump_python(value, mode="json", **{"exclude_defaults": True, **options})
    return body


@cache
def adapter(kind: type[Any]) -> TypeAdapter[Any]:
    """Return an adapter that reads and writes a dataclass as JSON."""
    return TypeAdapter(kind)
