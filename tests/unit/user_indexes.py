"""Arrays of chunks as a test gives them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from uuid import UUID

import numpy as np

from memstore.models import ChunkKey, Role, Tier
from memstore.store.user_index import POSTGRES_EPOCH, RECORD, ROLES, TIERS, UserIndex

NOW = datetime(2024, 6, 1, tzinfo=UTC)
CONVERSATION = UUID(int=77)


@dataclass(frozen=True)
class Given:
    """A chunk: its terms and how often it has each, its vector, where it stands."""

    number: int
    terms: Mapping[int, int] = field(default_factory=dict)
    vector: Sequence[float] | None = None
    chunk_index: int = 0
    seq: int | None = None
    at: datetime = NOW
    tier: Tier = Tier.MESSAGES
    role: Role | None = Role.USER
    speaker: str | None = "Alice"
    conversation: UUID = CONVERSATION
    characters: int = 240

    @property
    def key(self) -> ChunkKey:
        return ChunkKey(UUID(int=self.number), self.chunk_index)


def arrays(chunks: Sequence[Given]) -> UserIndex:
    records = np.zeros(len(chunks), RECORD)
    for row, chunk in zip(records, chunks, strict=True):
        row["name"] = UUID(int=chunk.number).bytes + chunk.chunk_index.to_bytes(4, "big")
        row["item"] = np.void(UUID(int=chunk.number).bytes)
        row["conversation"] = np.void(chunk.conversation.bytes)
        row["chunk_index"], row["seq"] = chunk.chunk_index, chunk.number if chunk.seq is None else chunk.seq
        row["stop"], row["length"] = chunk.characters, sum(chunk.terms.values())
        row["at"] = (chunk.at - POSTGRES_EPOCH).total_seconds() * 10**6
        row["digest"] = (chunk.number * 8 + chunk.chunk_index + 1) * 2_654_435_761
        row["tier"] = TIERS.index(chunk.tier) + 1
        row["role"] = 0 if chunk.role is None else ROLES.index(chunk.role) + 1
        row["terms"], row["embedded"] = len(chunk.terms), chunk.vector is not None
    given = [chunk.vector for chunk in chunks if chunk.vector is not None]
    return UserIndex(
        "1",
        NOW,
        records,
        [chunk.speaker for chunk in chunks],
        np.array([term for chunk in chunks for term in sorted(chunk.terms)], dtype=np.int64),
        np.array([chunk.terms[term] for chunk in chunks for term in sorted(chunk.terms)], dtype=np.int64),
        (np.array(given, dtype=np.float32),) if given else (),
    )


def keys(some: UserIndex, rows: Sequence[int] | np.ndarray) -> list[ChunkKey]:
    return [chunk.key for chunk in some.chunks(np.array(rows, dtype=np.intp))]
