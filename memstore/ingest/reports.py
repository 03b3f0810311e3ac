"""What the derive loop tells of its work, as events. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from memstore.events import Event, EventType
from memstore.store.watermarks import Pending

SUMMARIZE, FACTS = "summarize", "facts"


def begun(work: Pending, recipe: str) -> Iterator[Event]:
    """Give what is told, and not kept, when a deriver takes up the next messages of a conversation."""
    if work.deriver == SUMMARIZE:
        kind = EventType.SUMMARIZATION_PROGRESS if work.done_seq else EventType.SUMMARIZATION_STARTED
        body = {"strategy": recipe, "from_seq": work.done_seq + 1, "to_seq": work.last_seq}
        yield Event(work.user_id, kind, work.conversation_id, body)


def done(work: Pending, to_seq: int, recipe: str, counts: Mapping[str, int]) -> Iterator[Event]:
    """Give what a deriver made of messages, where it made something."""
    stretch = {"from_seq": work.done_seq + 1, "to_seq": to_seq}
    if work.deriver == SUMMARIZE and counts["summaries"]:
        before, after = counts["before"], counts["after"]
        sizes = {"summaries": counts["summaries"], "before": before, "after": after, "saved": before - after}
        body = {"strategy": recipe, **stretch, **sizes}
        yield Event(work.user_id, EventType.SUMMARIZATION_COMPLETED, work.conversation_id, body)
    if work.deriver == FACTS and counts.get("facts"):
        body = {"recipe": recipe, **stretch, "facts": counts["facts"]}
        yield Event(work.user_id, EventType.FACTS_EXTRACTED, work.conversation_id, body)


def failed(work: Pending, recipe: str, error: Exception) -> Iterator[Event]:
    """Give that a conversation could not be summarized."""
    if work.deriver == SUMMARIZE:
        body = {"strategy": recipe, "from_seq": work.done_seq + 1, "error": type(error).__name__}
        yield Event(work.user_id, EventType.SUMMARIZATION_FAILED, work.conversation_id, body)
