"""What recall searches and finds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from memstore.models.messages import Tier


class UnitKey(NamedTuple):
    """The key of a unit: its item, and which chunk of it."""

    item_id: UUID
    chunk: int


@dataclass(frozen=True, slots=True)
class Unit:
    """What recall ranks: a message, summary or fact, or a chunk of a long one; `start` and `stop` in characters."""

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
    def key(self) -> UnitKey:
        """The key of the unit."""
        return UnitKey(self.item_id, self.chunk)


@dataclass(frozen=True, slots=True)
class Hit:
    """A recalled item.

    `text` is the item's, verbatim, or a chunk of it from character `start` on; `sources` are the ids of its messages;
    `parts` says what each signal adds to `score`. A fact holds until `valid_to`, if that is known.
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
    """The hits of a session, or a fact with the messages that it was made from.

    Of a session, `score` is that of its best hit, and `since` and `until` are the times of its first and last message;
    with a viewer, those of the hits. Of a fact, `fact` is its own hit, `score` that one's, and `hits` are its whole
    messages in the order in which they were said, from `since` to `until`. A fact without messages has its own time.
    """

    score: float
    since: datetime
    until: datetime
    conversation_id: UUID | None
    hits: tuple[Hit, ...]
    fact: Hit | None = None
