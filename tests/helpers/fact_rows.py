"""Facts that come in, and stored ones, for what is decided about them without a store."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any
from uuid import UUID, uuid5

from memstore.derive.facts.drafts import FactDraft
from memstore.derive.facts.reconcile import reconcile
from memstore.derive.facts.slots import READER_RECIPE_PREFIX, Slot
from memstore.ids import MEMSTORE
from memstore.models import FactColumns, KnownFact


def extracted(
    text: str,
    slot: Slot | None,
    at: datetime,
    *,
    type: str = "identity",
    subject: str = "Alice",
    mine: bool = True,
    speaker: str = "",
    said: tuple[str, ...] = (),
    **more: Any,
) -> FactDraft:
    """Return a fact that comes in, said by its subject where it is `mine`, in the words that are `said`."""
    attribute, value = (slot.attribute, slot.value) if slot else (None, None)
    fact = columns(text, attribute, value, at, type=type, subject=subject, **more)
    return FactDraft(fact, slot, said_by_subject=mine, learned_at=at, speaker=speaker, said=said)


def known(
    id: UUID,
    text: str,
    attribute: str | None,
    value: str | None,
    at: datetime,
    cosine: float | None = None,
    *,
    by_hand: str | None = None,
    **more: Any,
) -> KnownFact:
    """Return a stored fact; `by_hand` is what a person has done to it."""
    fact = columns(text, attribute, value, at, id=id, **more)
    return KnownFact(fact, at, by_hand, by_hand and at, cosine)


def columns(text: str, attribute: str | None, value: str | None, at: datetime, **more: Any) -> FactColumns:
    usual = {"type": "identity", "subject": "Alice", "state": "active", "recipe": f"{READER_RECIPE_PREFIX}1"}
    more = usual | {"valid_from": None, "valid_to": None} | more
    return FactColumns.model_construct(text=text, attribute=attribute, value=value, occurred_at=at, **more)


def fold(facts: Sequence[FactDraft]) -> dict[UUID, KnownFact]:
    """Do what the store does with decisions about facts, in memory; a fact that waits is left out."""
    stored: dict[UUID, KnownFact] = {}
    for new in facts:
        decision, fact = reconcile(new, list(stored.values())), new.fact
        if decision.waits:
            continue
        if decision.duplicate is not None:
            duplicate = decision.duplicate
            stored[duplicate.fact.id] = replace(duplicate, last_said=max(duplicate.last_said, fact.occurred_at))
            continue
        for one in decision.ended:
            one.fact.state, one.fact.valid_to = "superseded", decision.begins_at
        state, ends = "active", None
        if decision.successor is not None:
            state, ends = "superseded", decision.successor.begins_at
        id = uuid5(MEMSTORE, f"{fact.subject}{fact.text}{fact.occurred_at}")
        given = {"type": fact.type, "subject": fact.subject, "recipe": fact.recipe, "state": state, "valid_to": ends}
        stored[id] = known(id, fact.text, fact.attribute, fact.value, fact.occurred_at, **given)
    return stored
