"""What the rules read of a text that Alice says."""

from __future__ import annotations

from datetime import UTC, datetime

from memstore.ingest.rules.drafts import Said
from memstore.ingest.rules.slotted import Slotted, slotted

AT = datetime(2024, 1, 24, 9, tzinfo=UTC)  # a Wednesday


def read(text: str, *before: str, at: datetime = AT) -> list[Slotted]:
    """Give what is read of a text, after others that she said."""
    return slotted(Said(text, "user", "Alice", at), [Said(one, "user", "Alice", at) for one in before])


def told(text: str, *before: str, at: datetime = AT) -> list[str]:
    """Give the texts of the facts."""
    return [one.draft.text for one in read(text, *before, at=at)]


def slots(text: str, *before: str, at: datetime = AT) -> list[tuple[str, str, str]]:
    """Give subject, attribute and value of each slot."""
    return [(one.draft.subject, one.slot.attribute, one.slot.value) for one in read(text, *before, at=at) if one.slot]
