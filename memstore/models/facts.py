"""Facts, their sources, changes and relations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal, get_args
from uuid import UUID

from sqlalchemy import Text
from sqlalchemy.dialects.postgresql import REAL
from sqlmodel import Field, SQLModel

from memstore.models.messages import Time, column


class FactColumns(SQLModel):
    """The columns of the table of facts."""

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
    state: str = column(
        Text, default="'active'", description="active, ended, expired, quarantined, superseded, retracted or erased"
    )
    valid_from: datetime | None = column(Time, nullable=True)
    valid_to: datetime | None = column(Time, nullable=True)
    importance: str = Field(
        "normal",
        sa_type=Text,
        nullable=False,
        sa_column_kwargs={"server_default": "normal"},
        description="pinned, normal or unimportant",
    )
    expires_at: datetime | None = column(Time, nullable=True, description="from when on it is not shown")
    recipe: str = column(Text)
    occurred_at: datetime = column(Time, description="when it was first said")
    recorded_at: datetime = column(Time, default="now()")


@dataclass(frozen=True, slots=True)
class FactSpan:
    """The place of a fact in a message, in characters if known.

    `trust` is 3 if it was entered by hand, 2 for a person, 1 for an assistant, 0 for a tool.
    """

    message_id: UUID
    start: int | None
    stop: int | None
    trust: int


class Fact(FactColumns):
    """Something lasting that was said. `sources` are the ids of the messages that say it, `spans` where they do."""

    # No factories: pydantic looks at the signature of one for each fact that is built, which takes most of the time.
    sources: list[UUID] = []
    spans: list[FactSpan] = []


FactType = Literal[
    "preference",
    "goal",
    "identity",
    "relationship",
    "event",
    "plan",
    "constraint",
    "decision",
    "procedure",
    "task",
    "possession",
    "statement",
]
FactKind = Literal["semantic", "episodic", "procedural"]
Importance = Literal["pinned", "normal", "unimportant"]
FACT_TYPES: tuple[str, ...] = get_args(FactType)
# Those that a chat model is asked for: things and tasks are told as statements and plans.
MODEL_TYPES = tuple(name for name in FACT_TYPES if name not in ("task", "possession"))
# The order of lists: what protects, how to answer, who somebody is, what is planned. None: an application's own types.
TYPE_ORDER: tuple[str | None, ...] = (
    "constraint",
    "procedure",
    "identity",
    "relationship",
    None,
    "goal",
    "plan",
    "task",
    "decision",
    "preference",
    "possession",
    "event",
    "statement",
)
FACT_KINDS: tuple[str, ...] = get_args(FactKind)
IMPORTANCES = ALWAYS, NORMAL, UNIMPORTANT = get_args(Importance)
# Only untrusted sources say it: it waits until it is confirmed.
QUARANTINED = "quarantined"
# "ended" and "expired" are in no column: facts are returned with them
STORED_ACTIVE = ("active", "ended", "expired")
FACT_STATES = (*STORED_ACTIVE, QUARANTINED, "superseded", "retracted", "erased")
# The recipe and the actor of what people enter themselves.
HAND = "hand"


def with_state_now(fact: Fact) -> Fact:
    """Return a fact with its state now: an active one whose time has passed is `expired` or `ended`."""
    now = datetime.now(UTC)
    if fact.state == "active" and fact.expires_at is not None and fact.expires_at <= now:
        return fact.model_copy(update={"state": "expired"})
    if fact.state == "active" and fact.valid_to is not None and fact.valid_to <= now:
        return fact.model_copy(update={"state": "ended"})
    return fact


def latest_first(facts: Iterable[Fact]) -> list[Fact]:
    """Return facts by when they were said, the latest first."""
    return sorted(facts, key=lambda fact: (-fact.occurred_at.timestamp(), fact.id))


def kind_of(type: str) -> str:
    """Return the kind of a fact of this type: episodic, procedural or semantic."""
    if type in ("event", "plan", "decision", "task"):
        return "episodic"
    return "procedural" if type == "procedure" else "semantic"


@dataclass(frozen=True, slots=True)
class FactChange:
    """A change of a fact: added, reinforced, confirmed, superseded, retracted, edited, restored, quarantined,
    conflicted, resolved.

    `before` and `after` are its columns. `other_id` is the fact that superseded it, that it contradicts, or that was
    edited to become it; `source` the message that said it. `id` is None for what cannot be undone: added and
    reinforced.
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
class FactStep:
    """A fact, the one that took its place, and when it was first said, or else taken back."""

    fact_id: UUID
    next_id: UUID | None
    subject: str
    attribute: str | None
    value: str | None
    text: str
    at: datetime
    is_taken_back: bool


@dataclass(frozen=True, slots=True)
class KnownFact:
    """A stored fact that a new one is compared with, or that a chat model is shown.

    `last_said` is when somebody last said it, `by_hand` the last thing that a person did to it and `by_hand_at` when,
    `cosine` how near it is; `same_words` that a person took it back, or edited it, and it came from the characters of
    the new one. Of one that a model is shown there are instead the `speaker`, a user who said it last, and its vector.
    """

    fact: FactColumns
    last_said: datetime
    by_hand: str | None = None
    by_hand_at: datetime | None = None
    cosine: float | None = None
    same_words: bool = False
    speaker: str | None = None
    vector: Any = None


@dataclass(frozen=True, slots=True)
class Edge:
    """A relation that a fact states, "subject attribute value"."""

    subject: str
    attribute: str
    value: str
    fact_id: UUID


@dataclass(frozen=True, slots=True)
class Entity:
    """A person or thing: the facts about it, and its relations to others."""

    name: str
    facts: tuple[Fact, ...]
    edges: tuple[Edge, ...]


@dataclass(frozen=True, slots=True)
class InboxItem:
    """A fact that waits until a person accepts it, and the words that say it."""

    fact: Fact
    quotes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TidyProposal:
    """A plan whose time has passed: when it had, and the words that say it."""

    fact: Fact
    ends_at: datetime
    quotes: tuple[str, ...]
