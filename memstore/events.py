"""Events of a store: written to the outbox in the transaction in which they happened, for whoever reads on there.

| type | body |
|---|---|
| `message_added` | from_seq, to_seq, tokens: of the messages of one call |
| `summarization_completed` | strategy, from_seq, to_seq, summaries, before, after, saved (tokens) |
| `summarization_failed` | strategy, from_seq, error (its type) |
| `facts_extracted` | recipe, from_seq, to_seq, facts (new ones); if any, quarantined and refused |
| `fact_superseded` | fact, by, action |
| `context_assembled` | receipt, budget, tokens, sections |
| `erased` | erasure (the certificate's id, which has the ids), scope, counts; not in the outbox for a whole user |
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from functools import partial
from typing import Any
from uuid import UUID

from memstore import ids


class EventType(StrEnum):
    """The kinds of events."""

    MESSAGE_ADDED = "message_added"
    SUMMARIZATION_COMPLETED = "summarization_completed"
    SUMMARIZATION_FAILED = "summarization_failed"
    FACTS_EXTRACTED = "facts_extracted"
    FACT_SUPERSEDED = "fact_superseded"
    CONTEXT_ASSEMBLED = "context_assembled"
    ERASED = "erased"


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened to a user's memory: ids, numbers and reasons, never a text.

    `cursor` is its place in the outbox.
    """

    user_id: UUID
    type: EventType
    conversation_id: UUID | None = None
    body: dict[str, Any] = field(default_factory=dict)
    id: UUID = field(default_factory=ids.uuid7)
    recorded_at: datetime = field(default_factory=partial(datetime.now, UTC))
    cursor: str | None = None
