"""Facts that come in, and stored ones, for what is decided about them without a store."""

from datetime import datetime
from typing import Any
from uuid import UUID

from memstore.derive.facts.drafts import ExtractedFact
from memstore.derive.rules.slots import Slot
from memstore.models import FactColumns, KnownFact


def extracted(
    text: str, slot: Slot | None, at: datetime, *, type: str = "identity", subject: str = "Alice", mine: bool = True
) -> ExtractedFact:
    """Return a fact that comes in, said by its subject where it is `mine`."""
    attribute, value = (slot.attribute, slot.value) if slot else (None, None)
    return ExtractedFact(columns(text, attribute, value, at, type=type, subject=subject), slot, mine, at)


def known(
    id: UUID,
    text: str,
    attribute: str | None,
    value: str | None,
    at: datetime,
    cosine: float | None = None,
    **more: Any,
) -> KnownFact:
    return KnownFact(columns(text, attribute, value, at, id=id, **more), at, None, None, cosine, same_words=False)


def columns(text: str, attribute: str | None, value: str | None, at: datetime, **more: Any) -> FactColumns:
    usual = {"type": "identity", "subject": "Alice", "state": "active", "recipe": "rules/1"}
    more = usual | {"valid_from": None, "valid_to": None} | more
    return FactColumns.model_construct(text=text, attribute=attribute, value=value, occurred_at=at, **more)
