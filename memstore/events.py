"""What happens in a store, told to whoever subscribes, and kept in the outbox for whoever asks later.

An event is written in the transaction in which it happened, and told once that is committed: nobody hears of what was
rolled back. Each subscriber has a thread and a queue of its own, so that a slow or failing one holds up nobody. What
its queue could not take is counted, and the outbox has it.

| type | body |
|---|---|
| `message_added` | from_seq, to_seq, tokens: of the messages that one call stored |
| `summarization_started`, `summarization_progress` | strategy, from_seq, to_seq; told, not kept |
| `summarization_completed` | strategy, from_seq, to_seq, summaries, before, after, saved (tokens) |
| `summarization_failed` | strategy, from_seq, error (its type) |
| `facts_extracted` | recipe, from_seq, to_seq, facts (how many were new), quarantined (how many wait, where some do) |
| `fact_superseded` | fact, by, action |
| `context_assembled` | receipt, budget, tokens, sections |
| `erased` | erasure (the certificate's id, which has the ids), scope, counts; of a whole user told, not kept |
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from queue import Empty, Full, Queue
from typing import Any
from uuid import UUID

from memstore import ids

logger = logging.getLogger("memstore")

WAITING = 1000  # events that a subscriber may be behind before some are left to the outbox
SECONDS_TO_FINISH = 5.0  # for what waits when a subscription ends


class EventType(StrEnum):
    """The kinds of events."""

    MESSAGE_ADDED = "message_added"
    SUMMARIZATION_STARTED = "summarization_started"
    SUMMARIZATION_PROGRESS = "summarization_progress"
    SUMMARIZATION_COMPLETED = "summarization_completed"
    SUMMARIZATION_FAILED = "summarization_failed"
    FACTS_EXTRACTED = "facts_extracted"
    FACT_SUPERSEDED = "fact_superseded"
    CONTEXT_ASSEMBLED = "context_assembled"
    ERASED = "erased"


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened to a user's memory: ids, numbers and reasons, never a text.

    `cursor` is its place in the outbox; None for one that was told and not read from there.
    """

    user_id: UUID
    type: EventType
    conversation_id: UUID | None = None
    body: dict[str, Any] = field(default_factory=dict)
    id: UUID = field(default_factory=ids.uuid7)
    recorded_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    cursor: str | None = None

    @property
    def row(self) -> dict[str, Any]:
        """The event as the outbox has it."""
        return {
            name: getattr(self, name) for name in ("user_id", "type", "conversation_id", "body", "id", "recorded_at")
        }


Subscriber = Callable[[Event], object]


class Subscription:
    """A subscriber with its queue and thread. `dropped` events found the queue full, `failed` ones raised."""

    def __init__(self, subscriber: Subscriber, types: frozenset[EventType]) -> None:
        self.dropped = self.failed = 0
        self._subscriber, self._types = subscriber, types
        self._queue: Queue[Event] = Queue(WAITING)
        self._open = threading.Event()
        self._open.set()
        self._thread = threading.Thread(target=self._run, name="memstore-subscriber", daemon=True)
        self._thread.start()

    def tell(self, events: Iterable[Event]) -> None:
        """Queue what the subscriber asked for; never waits."""
        for event in events:
            if event.type in self._types and self._open.is_set():
                try:
                    self._queue.put_nowait(event)
                except Full:
                    self._count_dropped()

    def close(self) -> None:
        """End the subscription; what waits is still told, for a few seconds at most."""
        self._open.clear()
        if self._thread is not threading.current_thread():
            self._thread.join(SECONDS_TO_FINISH)

    def __enter__(self) -> Subscription:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _count_dropped(self) -> None:
        if not self.dropped:
            logger.warning("a subscriber is too slow: events are left to the outbox (Subscription.dropped counts them)")
        self.dropped += 1

    def _run(self) -> None:
        while True:
            try:
                event = self._queue.get(timeout=0.1)
            except Empty:
                if not self._open.is_set():
                    return
                continue
            try:
                self._subscriber(event)
            except BaseException:  # whatever it raises is its own affair, SystemExit too: the thread is not the program
                self.failed += 1
                logger.exception("a subscriber failed on %s", event.type)


class Dispatcher:
    """Tells events to those who subscribed."""

    def __init__(self) -> None:
        self._subscriptions: list[Subscription] = []
        self._lock = threading.Lock()

    def subscribe(self, subscriber: Subscriber, types: Iterable[EventType]) -> Subscription:
        """Tell this subscriber what happens from now on, until the subscription is closed."""
        subscription = Subscription(subscriber, frozenset(types))
        with self._lock:
            self._subscriptions = [one for one in self._subscriptions if one._open.is_set()] + [subscription]
        return subscription

    def publish(self, events: Sequence[Event]) -> None:
        """Tell everybody; never waits and never raises."""
        for subscription in self._subscriptions:
            subscription.tell(events)

    def close(self) -> None:
        """End all subscriptions."""
        with self._lock:
            subscriptions, self._subscriptions = self._subscriptions, []
        for subscription in subscriptions:
            subscription.close()
