"""What can be recalled, and what was."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from memstore.models.rows import Tier


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
class Hit:
    """A recalled item. `text` is the item's, or a chunk of it from character `start` on, verbatim; `sources` are ids of
    messages. From `valid_to` on, if that is known, a fact holds no more.
    """

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
    start: int = 0
    valid_to: datetime | None = None


@dataclass(frozen=True, slots=True)
class HitGroup:
    """Hits that belong together: those of a session, or a fact with the messages that it was made from.

    Of a session, `score` is that of its best hit, and `since` and `until` are when its first and its last message were
    said, hits or not; a viewer is told of the hits' own times. Of a fact, `fact` is its own hit, `score` that one's,
    and `hits` are its whole messages in the order in which they were said, the first at `since`, the last at `until`.
    A fact without messages has its own time.
    """

    score: float
    since: datetime
    until: datetime
    conversation_id: UUID | None
    hits: tuple[Hit, ...]
    fact: Hit | None = None
