"""What the derive loop tells of its work, as events."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Protocol
from uuid import UUID

from memstore.events import Event, EventType

SUMMARIZE, FACTS = "summarize", "facts"


class Work(Protocol):
    """Messages done_seq + 1 … last_seq of a conversation wait for a deriver."""

    @property
    def user_id(self) -> UUID:
        """Whose they are."""

    @property
    def conversation_id(self) -> UUID:
        """Where they stand."""

    @property
    def deriver(self) -> str:
        """For whom they wait."""

    @property
    def done_seq(self) -> int:
        """The last message before them."""

    @property
    def last_seq(self) -> int:
        """The last one."""


class Telling(Protocol):
    """A transaction, as far as it can be told what happens in it."""

    def happened(self, kind: EventType, conversation_id: UUID | None = None, **body: Any) -> None:
        """Say what happens here."""


def begun(work: Work, recipe: str) -> Iterator[Event]:
    """Give what is told, and not kept, when a deriver takes up the next messages of a conversation."""
    if work.deriver == SUMMARIZE:
        kind = EventType.SUMMARIZATION_PROGRESS if work.done_seq else EventType.SUMMARIZATION_STARTED
        body = {"strategy": recipe, "from_seq": work.done_seq + 1, "to_seq": work.last_seq}
        yield Event(work.user_id, kind, work.conversation_id, body)


def done(scope: Telling, work: Work, to_seq: int, recipe: str, counts: Mapping[str, int]) -> None:
    """Tell what a deriver made of messages, where it made something."""
    stretch = {"from_seq": work.done_seq + 1, "to_seq": to_seq}
    if work.deriver == SUMMARIZE and counts["summaries"]:
        before, after = counts["before"], counts["after"]
        sizes = {"summaries": counts["summaries"], "before": before, "after": after, "saved": before - after}
        scope.happened(EventType.SUMMARIZATION_COMPLETED, work.conversation_id, strategy=recipe, **stretch, **sizes)
    if work.deriver == FACTS and counts.get("facts"):
        facts = counts["facts"]
        scope.happened(EventType.FACTS_EXTRACTED, work.conversation_id, recipe=recipe, **stretch, facts=facts)


def failed(scope: Telling, work: Work, recipe: str, error: Exception) -> None:
    """Tell that a conversation could not be summarized."""
    if work.deriver == SUMMARIZE:
        body = {"strategy": recipe, "from_seq": work.done_seq + 1, "error": type(error).__name__}
        scope.happened(EventType.SUMMARIZATION_FAILED, work.conversation_id, **body)
