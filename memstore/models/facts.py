"""Facts, and what becomes of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal, get_args
from uuid import UUID

from sqlalchemy import Text
from sqlalchemy.dialects.postgresql import REAL
from sqlmodel import Field, SQLModel

from memstore.models.rows import Time, column


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
    state: str = column(Text, default="'active'", description="active, quarantined, superseded, retracted or erased")
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
    "identity",
    "relationship",
    "event",
    "plan",
    "constraint",
    "decision",
    "procedure",
    "statement",
]
FactKind = Literal["semantic", "episodic", "procedural"]
FACT_TYPES: tuple[str, ...] = get_args(FactType)
FACT_KINDS: tuple[str, ...] = get_args(FactKind)
QUARANTINED = "quarantined"  # said by somebody who is not believed alone: it waits until it is confirmed
FACT_STATES = ("active", "ended", QUARANTINED, "superseded", "retracted", "erased")  # "ended" is in no column
_KINDS = {"event": "episodic", "plan": "episodic", "decision": "episodic", "procedure": "procedural"}
HAND = "hand"  # the recipe and the actor of what people enter themselves


def state_of(fact: FactColumns) -> str:
    """Give the state of a fact as people and filters have it: `ended` where its end has passed."""
    over = fact.valid_to is not None and fact.valid_to <= datetime.now(UTC)
    return "ended" if fact.state == "active" and over else fact.state


def kind_of(type: str) -> str:
    """Give the kind of a fact of this type: what happened, how to do something, or what is so."""
    return _KINDS.get(type, "semantic")


@dataclass(frozen=True, slots=True)
class FactChange:
    """A step in the life of a fact: added, reinforced, confirmed, superseded, retracted, edited, restored, quarantined,
    conflicted, resolved.

    `before` and `after` are its columns then; `other_id` is the fact that took its place or that it disagrees with, and
    of a fact that an edit put in a place the one that was edited (there are no columns if it was not known before);
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
    """What an audit found: a duplicate, a conflict, or something stale."""

    problem: str
    facts: tuple[UUID, ...]
    detail: str
