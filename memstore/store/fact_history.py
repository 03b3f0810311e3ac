"""The log of changes of facts: who changed which columns, so that each change can be undone and any past state seen."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, NamedTuple
from uuid import UUID

from memstore import ids
from memstore.errors import Conflict
from memstore.models import EventType, Fact, FactChange, FactColumns, FactStep, SaidFact
from memstore.store import facts
from memstore.store.database import Read, Transaction, read_all
from memstore.store.sql import statements

SQL = statements("fact_history")
# A fact's identity may not change; when it was first said follows from its sources.
FIXED = {"user_id", "id", "subject", "text", "occurred_at", "recorded_at"}
CHANGEABLE = tuple(name for name in FactColumns.model_fields if name not in FIXED)
TIMES = ("valid_from", "valid_to", "expires_at")


class PastState(NamedTuple):
    """A fact that does not hold: how it begins, the one that took its place, and whether it expired."""

    id: UUID
    text: str
    successor: UUID | None
    is_expired: bool


async def change(
    tx: Transaction,
    fact: FactColumns,
    action: str,
    *,
    actor: str,
    other: UUID | None = None,
    undoes: UUID | None = None,
    at: datetime | None = None,
    **new: Any,
) -> FactChange:
    """Set columns of a fact as it is stored, and log it; `fact` is changed too. `at` is now by the server's clock.

    The change's id follows from the fact and how often it was changed, so that a process that was killed makes the same
    rows again.
    """
    before = logged_columns(fact)
    for name, value in new.items():
        setattr(fact, name, value)
    if new:
        await facts.put(tx, fact)
    id = ids.change_id(fact.id, await tx.value(SQL["count_changes"], int, fact_id=fact.id) or 0)
    row: dict[str, Any] = {"id": id, "fact_id": fact.id, "action": action, "actor": actor, "other_id": other}
    row |= {"before": before, "after": logged_columns(fact), "undoes": undoes}
    [recorded_at] = await tx.column(SQL["add_change"], **row, recorded_at=at)
    if action in ("superseded", "edited") and other is not None:
        tx.record_event(EventType.FACT_SUPERSEDED, fact=str(fact.id), by=str(other), action=action)
    return FactChange(at=recorded_at, **row)


def logged_columns(fact: FactColumns) -> dict[str, Any]:
    """Return the columns that may change as the log has them: times in UTC as ISO 8601."""
    values = {name: getattr(fact, name) for name in CHANGEABLE}
    return {
        name: value.astimezone(UTC).isoformat() if isinstance(value, datetime) else value
        for name, value in values.items()
    }


async def reverse(tx: Transaction, done: FactChange, fact: FactColumns, *, actor: str) -> FactChange:
    """Set what a change changed back to what it was, and log that; `fact` is the changed one as it is stored.

    Raises `Conflict` where the fact is no longer as the change left it.
    """
    now, changed = logged_columns(fact), done.changed
    moved = [
        f"{name} is {now[name]!r} and was {done.after[name]!r}" for name in changed if now[name] != done.after[name]
    ]
    if moved or (not changed and await tx.tuples(SQL["undone"], fact_id=done.fact_id, id=done.id)):
        raise Conflict(
            f"The fact {fact.text!r} was changed again since: {', '.join(moved) or 'this is undone'}. "
            "Nothing was done: undo the later change first."
        )
    action = step_back(done) if changed else "resolved"
    return await change(tx, fact, action, actor=actor, other=done.other_id, undoes=done.id, **before(done))


def step_back(done: FactChange) -> str:
    """Return what it is called to set back what a change has changed."""
    state = str(done.changed.get("state"))
    return state if state in ("superseded", "retracted", "quarantined") else "restored"


async def of_id(tx: Transaction, id: UUID) -> FactChange | None:
    """Return the change of this id."""
    return await tx.one(SQL["change"], FactChange, id=id)


async def superseded_by(tx: Transaction, other: UUID, since: datetime | None = None) -> list[FactChange]:
    """Return the changes by which a fact took the place of others since then, latest first, undone ones not."""
    return await tx.all(SQL["superseded_by"], FactChange, other_id=other, since=since)


async def reactivations(tx: Transaction, other: UUID, at: datetime) -> list[FactChange]:
    """Return what was done at this moment to facts whose place `other` had taken."""
    return await tx.all(SQL["given_up"], FactChange, other_id=other, at=at)


async def past(tx: Transaction, facts: Sequence[UUID], as_of: datetime | None, most: int) -> dict[UUID, PastState]:
    """Return of facts that do not hold their first characters, and which ones took their places by then."""
    rows = await tx.all(SQL["past"], PastState, fact_ids=list(facts), as_of=as_of, most=most)
    return {one.id: one for one in rows}


def said_facts(messages: Sequence[UUID], as_of: datetime | None) -> Read[list[SaidFact]]:
    """Return a read of the facts that messages said by then, but for quotations that held."""
    return read_all(SQL["said_facts"], SaidFact, message_ids=list(messages), as_of=as_of)


async def successors(tx: Transaction, facts: Iterable[UUID], as_of: datetime | None) -> list[FactStep]:
    """Return facts, and those that had taken their places by then."""
    return await tx.all(SQL["successors"], FactStep, fact_ids=list(facts), as_of=as_of)


def is_as_left(done: FactChange, fact: FactColumns) -> bool:
    """Return whether a fact is still what a change made of it."""
    now = logged_columns(fact)
    return all(now[name] == done.after[name] for name in done.changed)


def before(done: FactChange) -> dict[str, Any]:
    """Return the columns that a change changed, with the values that they had before."""
    return {
        name: datetime.fromisoformat(value) if name in TIMES and value is not None else value
        for name, value in done.changed.items()
    }


async def life(tx: Transaction, fact: Fact) -> list[FactChange]:
    """Return what was done to a fact in order, from its first day: also that it was added, and each time it was said.

    An edit of another fact that it came from is there as its own, with the other one: undone by its id, it is undone.
    """
    every = await tx.all(SQL["changes"], FactChange, fact_id=fact.id)
    said = await tx.tuples(SQL["said"], fact_id=fact.id)
    own = [one for one in every if one.fact_id == fact.id]
    # An edit of another fact into this one is seen from this one's side.
    made = [
        replace(one, fact_id=fact.id, other_id=one.fact_id, before={}, after={})
        for one in every
        if one.fact_id != fact.id
    ]
    maker = str(own[0].before.get("recipe", fact.recipe)) if own else fact.recipe
    first = next((source for source, at in said if at <= fact.recorded_at), None)
    added = FactChange(None, fact.id, "added", fact.recorded_at, maker, source=first)
    again = [
        FactChange(None, fact.id, "reinforced", at, maker, source=source) for source, at in said if source != first
    ]
    return [added, *sorted([*own, *made, *again], key=lambda one: one.at)]


async def settled_by_hand(tx: Transaction, others: Iterable[UUID], fact: UUID) -> set[UUID]:
    """Return those of `others` of which somebody decided, by undoing it, that `fact` does not take their place."""
    return set(await tx.column(SQL["settled_by_hand"], ids=list(others), other_id=fact))


async def restore_orphaned(tx: Transaction, *, actor: str) -> list[Fact]:
    """Reverse what was done to facts for the sake of facts that are gone; return those that are active again.

    Facts that were changed since stay as they are.
    """
    restored = []
    for done in await tx.all(SQL["orphaned"], FactChange):
        fact = await facts.fact(tx, done.fact_id)
        if fact is not None and is_as_left(done, fact):
            await reverse(tx, done, fact, actor=actor)
            restored.append(fact)
    return [fact for fact in restored if fact.state == "active"]
