"""Facts that come back when what had ended them is gone, or ends them no longer, and end again by what came next."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from memstore.derive.facts.changes import with_outdated
from memstore.derive.facts.drafts import FactDraft, Successor
from memstore.derive.facts.reconcile import MODEL_RECIPE_PREFIX, reconcile
from memstore.derive.facts.slots import READER_RECIPE_PREFIX, slot_of_fact
from memstore.models import FactColumns
from memstore.store import chunks, facts
from memstore.store.database import Transaction


async def reapply(tx: Transaction, fact: FactColumns, *, actor: str, later: UUID | None = None) -> None:
    """End a restored fact again if something that was said later ends it, or the fact `later` is active."""
    stored, successor = await facts.fact(tx, fact.id), await _find_successor(tx, fact)
    if successor is None and later is not None:
        other = await facts.fact(tx, later)
        if other is not None and other.state == "active":
            successor = Successor(other.valid_from or other.occurred_at, other.id)
    if stored is not None and stored.state == "active" and successor is not None:
        ended: dict[str, Any] = {"state": "superseded", "valid_to": successor.begins_at}
        await facts.change(tx, stored, "superseded", actor=actor, other=successor.id, **ended)


async def _find_successor(tx: Transaction, fact: FactColumns) -> Successor | None:
    """Return what was said next after a fact and ends it: a value of its slot, or by the reader; None for nothing."""
    slot, is_read = slot_of_fact(fact), fact.recipe.startswith(READER_RECIPE_PREFIX)
    if slot is None and not is_read:
        return None
    model, vector = await chunks.vector_of(tx, fact.id) if is_read else (None, None)
    [near] = await facts.nearest(tx, [(fact, "", vector)], model)
    new = FactDraft(fact, slot, said_by_subject=True, learned_at=datetime.now(UTC))
    known = await facts.known(tx, fact, new.compared_attribute, None, vector, model, near)
    said_at = next((prior.last_said for prior in known if prior.fact.id == fact.id), fact.occurred_at)
    active = [prior for prior in known if prior.fact.id != fact.id and prior.fact.state == "active"]
    if is_read:
        new = await with_outdated(tx, new, fact, active, said_at)
    return reconcile(new, active, said_at, find_duplicate=False).successor


async def reactivate_superseded(tx: Transaction, fact_id: UUID, at: datetime, *, since: datetime | None = None) -> None:
    """Reactivate the facts that this one superseded `since` a moment; `at` is when it is retracted.

    One that would have ended by now is ended by the value that came next, and what was changed meanwhile stays. All is
    of one moment, by which an undo finds it. It is logged as done by who had ended them, since nobody has decided about
    them by hand, and the same fact may supersede them again.
    """
    seen: set[UUID] = set()
    for done in await facts.superseded_by(tx, fact_id, since):
        fact = await facts.fact(tx, done.fact_id)
        if fact is None or fact.id in seen or not facts.is_as_left(done, fact):
            continue
        seen.add(fact.id)
        action, other, columns = facts.step_back(done), fact_id, facts.columns_before(done)
        was_active = done.changed.get("state") == "active"
        successor = await _find_successor(tx, fact.model_copy(update=columns)) if was_active else None
        if successor is not None:
            action, other = "superseded", successor.id
            columns |= {"state": "superseded", "valid_to": successor.begins_at}
        await facts.change(tx, fact, action, actor=done.actor, other=other, at=at, **columns)


async def restore_spared(tx: Transaction, new: FactDraft, *, actor: str) -> None:
    """Restore facts that this one had ended by a model's word, or an earlier reader's, and ends no longer.

    Its slot is decided anew.
    """
    for done in await facts.superseded_by(tx, new.fact.id):
        is_anew = done.actor.startswith(READER_RECIPE_PREFIX) and done.actor != new.fact.recipe
        is_named = is_anew or done.actor.startswith(MODEL_RECIPE_PREFIX)
        fact = await facts.fact(tx, done.fact_id) if is_named else None
        has_slot = slot_of_fact(new.fact) is not None
        if fact is None or fact.id in new.ends or (has_slot and fact.attribute == new.fact.attribute):
            continue
        if facts.is_as_left(done, fact):
            await facts.reverse(tx, done, fact, actor=actor)


async def supersede_again(tx: Transaction, fact_id: UUID, retracted_at: datetime, at: datetime) -> None:
    for done in await facts.reactivations(tx, fact_id, retracted_at):
        fact = await facts.fact(tx, done.fact_id)
        if fact is not None and facts.is_as_left(done, fact):
            columns, action = facts.columns_before(done), facts.step_back(done)
            await facts.change(tx, fact, action, actor=done.actor, other=fact_id, at=at, **columns)
