"""Events of a store: sent to subscribers, and stored in the outbox.

An event is written in the transaction in which it happened, and sent once that is committed. Each subscriber has a
thread and a queue of its own, so that a slow or failing one delays nobody. Events that its queue cannot take are
counted, and read from the outbox.

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

import logging
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from functools import partial
from queue import SimpleQueue
from typing import Any
from uuid import UUID

from memstore import ids

logger = logging.getLogger("memstore")

QUEUE_SIZE = 1000  # events that a subscriber may be behind before some are left to the outbox
SECONDS_TO_FINISH = 5.0  # for queued events when a subscription ends


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

    `cursor` is its place in the outbox; None for an event that a subscriber gets.
    """

    user_id: UUID
    type: EventType
    conversation_id: UUID | None = None
    body: dict[str, Any] = field(default_factory=dict)
    id: UUID = field(default_factory=ids.uuid7)
    recorded_at: datetime = field(default_factory=partial(datetime.now, UTC))
    cursor: str | None = None


Subscriber = Callable[[Event], object]


class Subscription:
    """A subscriber with its queue and thread. `dropped` events found the queue full; `failed` ones raised."""

    def __init__(self, subscriber: Subscriber, types: Iterable[str]) -> None:
        self.dropped = self.failed = 0
        self.is_closed = False
        self._subscriber, self._types = subscriber, frozenset(types)
        self._queue: SimpleQueue[Event | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="memstore-subscriber", daemon=True)
        self._thread.start()

    def publish(self, events: Iterable[Event]) -> None:
        """Queue the events of the subscriber's types; never waits."""
        for event in events:
            if event.type not in self._types or self.is_closed:
                continue
            if self._queue.qsize() < QUEUE_SIZE:
                self._queue.put(event)
                continue
            if not self.dropped:
                logger.warning("a subscriber is too slow: Subscription.dropped counts what it misses")
            self.dropped += 1

    def close(self) -> None:
        """End the subscription; queued events are still delivered, for a few seconds at most."""
        self.is_closed = True
        self._queue.put(None)
        if self._thread is not threading.current_thread():
            self._thread.join(SECONDS_TO_FINISH)

    def __enter__(self) -> Subscription:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _run(self) -> None:
        while (event := self._queue.get()) is not None:
            try:
                self._subscriber(event)
            except BaseException:  # SystemExit too: this thread is not the program
                self.failed += 1
                logger.exception("a subscriber failed on %s", event.type)
