"""What is stored and what is given back: messages, summaries, facts, and the shapes of hits, contexts and receipts.

The classes of stored things say their columns too; `store/tables.py` makes tables of them. Times are timezone-aware:
`occurred_at` is when something was said, `recorded_at` is when memstore learnt it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Literal, NamedTuple, get_args
from uuid import UUID

from pydantic import computed_field
from sqlalchemy import (
    ARRAY,
    BigInteger,
    DateTime,
    SmallInteger,
    Text,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB, REAL
from sqlmodel import Field, SQLModel

Json = dict[str, Any]
Time = DateTime(timezone=True)


class Role(StrEnum):
    """Who speaks in a message."""

    SYSTEM = "system"
    DEVELOPER = "developer"
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


class Tier(StrEnum):
    """The three kinds of items that can be recalled."""

    MESSAGES = "messages"
    SUMMARIES = "summaries"
    FACTS = "facts"


def column(kind: Any, *, default: str | None = None, nullable: bool = False, **more: Any) -> Any:
    """Declare a column whose default, where it has one, is the database's."""
    extra = {"server_default": text(default)} if default is not None else {}
    python_default: Any = None if nullable or default is not None else ...
    return Field(python_default, sa_type=kind, nullable=nullable, sa_column_kwargs=extra, **more)


class Conversation(SQLModel):
    """A row of messages; a user may have many, across channels."""

    user_id: UUID = Field(primary_key=True)
    id: UUID = Field(primary_key=True)
    name: str = column(Text)
    title: str | None = column(Text, nullable=True)
    channel: str | None = column(Text, nullable=True)
    settings: Json = column(JSONB, default="'{}'")
    last_seq: int = column(BigInteger, default="0")
    created_at: datetime = column(Time, default="now()")
    updated_at: datetime = column(Time, default="now()")


class Message(SQLModel):
    """A message as it was said: immutable, numbered without gaps in its conversation."""

    user_id: UUID = Field(primary_key=True)
    conversation_id: UUID = Field(primary_key=True)
    seq: int = Field(sa_type=BigInteger, primary_key=True, sa_column_kwargs={"autoincrement": False})
    id: UUID
    role: str = column(Text)
    name: str | None = column(Text, nullable=True)
    text: str | None = column(Text, nullable=True, description="the plain text; None where there was no content")
    parts: list[Json] | None = column(JSONB, nullable=True, description="the content as given, where it came in parts")
    tool_calls: list[Json] | None = column(JSONB, nullable=True)
    tool_call_id: str | None = column(Text, nullable=True)
    tokens: int = column(BigInteger, description="exact tokens of the text and of the tool calls")
    counter: str = column(Text)
    tags: list[str] = column(ARRAY(Text), default="'{}'")
    meta: Json = column(JSONB, default="'{}'")
    external_id: str | None = column(Text, nullable=True)
    occurred_at: datetime = column(Time)
    recorded_at: datetime = column(Time, default="now()")

    @computed_field  # type: ignore[prop-decorator]  # pydantic's own advice: mypy knows no decorated properties
    @property
    def content(self) -> str | list[Json] | None:
        """The content as it was given: a text, parts, or nothing."""
        return self.text if self.parts is None else self.parts

    def as_chat(self) -> Json:
        """Give the message as OpenAI's chat format has it; Ollama takes the same."""
        chat: Json = {"role": self.role, "content": self.content}
        optional = {"name": self.name, "tool_calls": self.tool_calls, "tool_call_id": self.tool_call_id}
        return chat | {key: value for key, value in optional.items() if value is not None}


class Summary(SQLModel):
    """A summary of a stretch (level 1), of several summaries (level n + 1), or one that was asked for (level 0)."""

    user_id: UUID = Field(primary_key=True)
    id: UUID = Field(primary_key=True)
    conversation_id: UUID
    level: int = column(SmallInteger)
    from_seq: int = column(BigInteger)
    to_seq: int = column(BigInteger)
    text: str = column(Text)
    tokens: int = column(BigInteger)
    counter: str = column(Text)
    recipe: str = column(Text)
    occurred_at: datetime = column(Time, description="when the stretch began")
    occurred_until: datetime = column(Time, description="when the stretch ended")
    recorded_at: datetime = column(Time, default="now()")


class FactColumns(SQLModel):
    """What the table of facts holds."""

    user_id: UUID = Field(primary_key=True)
    id: UUID = Field(primary_key=True)
    type: str = column(Text)
    kind: str = column(Text, default="'semantic'", description="episodic, semantic or procedural")
    subject: str = column(Text)
    attribute: str | None = column(Text, nullable=True, description="what of the subject it tells: its slot")
    value: str | None = column(Text, nullable=True, description="what it says that the attribute is")
    text: str = column(Text)
    language: str = column(Text, default="'und'", description="ISO 639")
    confidence: float = column(REAL)
    state: str = column(Text, default="'active'", description="active, superseded, retracted or erased")
    valid_from: datetime | None = column(Time, nullable=True)
    valid_to: datetime | None = column(Time, nullable=True)
    recipe: str = column(Text)
    occurred_at: datetime = column(Time, description="when it was first said")
    recorded_at: datetime = column(Time, default="now()")


@dataclass(frozen=True, slots=True)
class Span:
    """Where a message says a fact, in characters where that is known, and how far its speaker is to be trusted.

    `trust` is 3 for what was entered by hand, 2 for a person, 1 for an assistant, 0 for a tool.
    """

    message_id: UUID
    start: int | None
    stop: int | None
    trust: int


class Fact(FactColumns):
    """Something lasting that was said. `sources` are the ids of the messages that say it, `spans` where they do."""

    sources: list[UUID] = Field(default_factory=list)
    spans: list[Span] = Field(default_factory=list)


FactType = Literal[
    "preference",
    "goal",
    "strength",
    "weakness",
    "interest",
    "identity",
    "relationship",
    "event",
    "plan",
    "constraint",
    "decision",
    "procedure",
]
FactKind = Literal["semantic", "episodic", "procedural"]
FACT_TYPES: tuple[str, ...] = get_args(FactType)
FACT_KINDS: tuple[str, ...] = get_args(FactKind)
FACT_STATES = ("active", "superseded", "retracted", "erased")
_KINDS = {"event": "episodic", "plan": "episodic", "decision": "episodic", "procedure": "procedural"}
HAND = "hand"  # the recipe and the actor of what people enter themselves


def kind_of(type: str) -> str:
    """Give the kind of a fact of this type: what happened, how to do something, or what is so."""
    return _KINDS.get(type, "semantic")


@dataclass(frozen=True, slots=True)
class FactChange:
    """A step in the life of a fact: added, reinforced, superseded, retracted, edited, restored, conflicted, resolved.

    `before` and `after` are its columns then; `other_id` is the fact that took its place or that it disagrees with;
    `source` the message that said it. `id` is None where there is nothing to undo: for what was added or reinforced.
    """

    id: UUID | None
    fact_id: UUID
    action: str
    at: datetime
    actor: str
    other_id: UUID | None = None
    before: Mapping[str, Any] = field(default_factory=dict)
    after: Mapping[str, Any] = field(default_factory=dict)
    undoes: UUID | None = None
    source: UUID | None = None

    @property
    def changed(self) -> dict[str, Any]:
        """The columns that it changed, as they were before."""
        return {name: value for name, value in self.before.items() if self.after.get(name) != value}


@dataclass(frozen=True, slots=True)
class Edge:
    """A relation: what a fact says that an attribute of its subject is. `steps` from the entity that was asked for."""

    subject: str
    attribute: str
    value: str
    steps: int
    fact_id: UUID


@dataclass(frozen=True, slots=True)
class Entity:
    """What is known of somebody or something: the facts about it, and how it is related to others."""

    name: str
    facts: tuple[Fact, ...]
    edges: tuple[Edge, ...]


@dataclass(frozen=True, slots=True)
class Finding:
    """What an audit found: a duplicate, a conflict, a loop, something stale, a secret, or a fact without a source."""

    problem: str
    facts: tuple[UUID, ...]
    detail: str


class DeadLetter(SQLModel):
    """What a model answered about a stretch and nobody could use; messages are not lost, this is beside them."""

    user_id: UUID = Field(primary_key=True)
    id: UUID = Field(primary_key=True)
    conversation_id: UUID
    deriver: str = column(Text)
    from_seq: int = column(BigInteger)
    to_seq: int = column(BigInteger)
    recipe: str = column(Text)
    error: str = column(Text)
    payload: str = column(Text)
    attempts: int = column(SmallInteger, default="1")
    recorded_at: datetime = column(Time, default="now()")


class Usage(NamedTuple):
    """What calls of a model cost."""

    model: str
    calls: int
    prompt_tokens: int
    completion_tokens: int


class Key(NamedTuple):
    """A unit's name: its item, and which chunk of it."""

    item_id: UUID
    chunk: int


@dataclass(frozen=True, slots=True)
class Unit:
    """A unit of recall: a message, summary or fact, or a chunk of a long one; `start` and `stop` in characters."""

    item_id: UUID
    chunk: int
    tier: Tier
    conversation_id: UUID | None
    seq: int | None
    role: str | None
    speaker: str | None
    start: int
    stop: int
    occurred_at: datetime

    @property
    def key(self) -> Key:
        """The unit's name."""
        return Key(self.item_id, self.chunk)


@dataclass(frozen=True, slots=True)
class Matches:
    """The lexical leg's raw material: for each unit its length and the frequency of each term of the question."""

    units: int
    mean_length: float
    rows: list[tuple[Key, int, list[int]]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Hit:
    """A recalled item. `text` is the item's, or a chunk of it, verbatim; `sources` are ids of messages."""

    tier: Tier
    id: UUID
    text: str
    score: float
    parts: Mapping[str, float]
    sources: tuple[UUID, ...]
    occurred_at: datetime
    conversation_id: UUID | None = None
    seq: int | None = None
    role: str | None = None
    speaker: str | None = None


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


@dataclass(frozen=True, slots=True)
class DeriveReport:
    """What a run of `derive` made; `redone` conversations were made anew.

    `letters` are answers of a chat model that could not be used; rules did what they were for. `failed` names the
    conversations that stayed as they were, and why; `waiting` the derivers whose chat model is away, or may do no more
    today: what is pending waits.
    """

    messages: int = 0
    units: int = 0
    summaries: int = 0
    facts: int = 0
    redone: int = 0
    letters: int = 0
    failed: tuple[str, ...] = field(default=())
    waiting: tuple[str, ...] = field(default=())
