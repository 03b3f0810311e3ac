"""Rows as an export has them, whole: with what hangs on them. Pure; `exports` reads them, `restores` writes them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from memstore.models import Conversation, FactColumns, FactSpan, Json, Message, Summary, Unit
from memstore.providers import Vectors

Row = Message | Summary | FactColumns


@dataclass(frozen=True, slots=True)
class Owner:
    """A user, the embedder that made the vectors (None where there are none), and about how many messages there are."""

    name: str
    settings: Json
    created_at: datetime
    model_id: UUID | None
    embedder: str | None
    dimensions: int | None
    messages: int


@dataclass(frozen=True, slots=True)
class Told:
    """A conversation, how far each deriver got in it and by which recipe, and what its settings were when."""

    conversation: Conversation
    watermarks: dict[str, tuple[int, str | None]]
    setting_changes: list[Json]


@dataclass(frozen=True, slots=True)
class UnitKept:
    """A unit of recall, when it was recorded, and its vector if it has one."""

    unit: Unit
    recorded_at: datetime
    vector: Vectors | None


@dataclass(frozen=True, slots=True)
class Hashed:
    """A unit to be stored: hashes of its terms, how often it has each, and the tags of its item."""

    kept: UnitKept
    terms: list[int]
    frequencies: list[int]
    tags: Sequence[str]


@dataclass(frozen=True, slots=True)
class Item:
    """A message, summary or fact with its units; of a fact also what says it and what was done to it."""

    row: Row
    units: list[UnitKept]
    sources: list[Json]
    history: list[Json]


@dataclass(frozen=True, slots=True)
class Wanted:
    """What of items is read beside them: their units, and vectors of this model; neither, or units alone."""

    units: bool
    model: UUID | None

    @property
    def values(self) -> dict[str, Any]:
        """What the statements call them."""
        return {"with_units": self.units, "model_id": self.model}


@dataclass(frozen=True, slots=True)
class KnownFact:
    """A stored fact, and the ids of what was done to it."""

    fact: FactColumns
    changes: frozenset[UUID]


@dataclass(frozen=True, slots=True)
class Whole:
    """A fact with where and when messages say it, and what was done to it as columns of the log."""

    fact: FactColumns
    sources: Sequence[tuple[FactSpan, datetime]]
    history: Sequence[Json]
