"""What the derive loop tells of its work, as events. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from memstore.events import Event, EventType
from memstore.models import QUARANTINED
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
    made = counts.get({SUMMARIZE: "summaries", FACTS: "facts"}.get(work.deriver, ""))
    if made or counts.get(QUARANTINED):
        yield _made(work, recipe, counts, from_seq=work.done_seq + 1, to_seq=to_seq)


def redone(work: Pending, recipe: str, counts: Mapping[str, int]) -> Iterator[Event]:
    """Give that what a conversation had was made anew, whatever came of it."""
    yield _made(work, recipe, counts, from_seq=1, to_seq=work.done_seq, redone=True)


def _made(work: Pending, recipe: str, counts: Mapping[str, int], **body: int) -> Event:
    if work.deriver == FACTS:
        body = {**body, "facts": counts.get("facts", 0)}
        if waiting := counts.get(QUARANTINED):
            body = {**body, QUARANTINED: waiting}
        return Event(work.user_id, EventType.FACTS_EXTRACTED, work.conversation_id, {"recipe": recipe, **body})
    before, after = counts.get("before", 0), counts.get("after", 0)
    sizes = {"summaries": counts.get("summaries", 0), "before": before, "after": after, "saved": before - after}
    body = {**body, **sizes}
    return Event(work.user_id, EventType.SUMMARIZATION_COMPLETED, work.conversation_id, {"strategy": recipe, **body})


def failed(work: Pending, recipe: str, error: Exception) -> Iterator[Event]:
    """Give that a conversation could not be summarized."""
    if work.deriver == SUMMARIZE:
        body = {"strategy": recipe, "from_seq": work.done_seq + 1, "error": type(error).__name__}
        yield Event(work.user_id, EventType.SUMMARIZATION_FAILED, work.conversation_id, body)
