"""Arrays of units as a test gives them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from uuid import UUID

import numpy as np

from memstore.models import Role, Tier, UnitKey
from memstore.store.user_index import EPOCH, RECORD, ROLES, TIERS, UserIndex

NOW = datetime(2024, 6, 1, tzinfo=UTC)
CONVERSATION = UUID(int=77)


@dataclass(frozen=True)
class Given:
    """A unit: its terms and how often it has each, its vector, where it stands."""

    number: int
    terms: Mapping[int, int] = field(default_factory=dict)
    vector: Sequence[float] | None = None
    chunk: int = 0
    seq: int | None = None
    at: datetime = NOW
    tier: Tier = Tier.MESSAGES
    role: Role | None = Role.USER
    speaker: str | None = "Alice"
    conversation: UUID = CONVERSATION
    characters: int = 240

    @property
    def key(self) -> UnitKey:
        return UnitKey(UUID(int=self.number), self.chunk)


def arrays(units: Sequence[Given]) -> UserIndex:
    """Give arrays of units in this order."""
    records = np.zeros(len(units), RECORD)
    for row, unit in zip(records, units, strict=True):
        row["name"] = UUID(int=unit.number).bytes + unit.chunk.to_bytes(4, "big")
        row["item"] = np.void(UUID(int=unit.number).bytes)
        row["conversation"] = np.void(unit.conversation.bytes)
        row["chunk"], row["seq"] = unit.chunk, unit.number if unit.seq is None else unit.seq
        row["stop"], row["length"] = unit.characters, sum(unit.terms.values())
        row["at"] = (unit.at - EPOCH).total_seconds() * 10**6
        row["digest"] = (unit.number * 8 + unit.chunk + 1) * 2_654_435_761
        row["tier"] = TIERS.index(unit.tier) + 1
        row["role"] = 0 if unit.role is None else ROLES.index(unit.role) + 1
        row["terms"], row["embedded"] = len(unit.terms), unit.vector is not None
    given = [unit.vector for unit in units if unit.vector is not None]
    return UserIndex(
        "1",
        NOW,
        records,
        [unit.speaker for unit in units],
        np.array([term for unit in units for term in sorted(unit.terms)], dtype=np.int64),
        np.array([unit.terms[term] for unit in units for term in sorted(unit.terms)], dtype=np.int64),
        (np.array(given, dtype=np.float32),) if given else (),
    )


def keys(some: UserIndex, rows: Sequence[int] | np.ndarray) -> list[UnitKey]:
    """Give the names of rows."""
    return [unit.key for unit in some.units(np.array(rows, dtype=np.intp))]
