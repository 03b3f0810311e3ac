"""Whose place a fact had taken: they hold again when it is taken back, and no longer when it is given back.

What was done to them is of one moment with what was done to it: by that an undo finds it. It is told as done by who had
ended them, since nobody has decided about them by hand, and the same fact may take their place again.
"""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from memstore.derive.facts.settle import later_value
from memstore.store import fact_changes, facts
from memstore.store.database import Transaction


async def release(scope: Transaction, fact_id: UUID, at: datetime, *, since: datetime | None = None) -> None:
    """Let the facts hold again whose place this one took `since` a moment; `at` is when it gives them up.

    One that would have ended by now is ended by the value that came next, and what was changed meanwhile stays.
    """
    seen: set[UUID] = set()
    for done in await fact_changes.superseded_by(scope, fact_id, since):
        fact = await facts.fact(scope, done.fact_id)
        if fact is None or fact.id in seen or not fact_changes.is_as_left(done, fact):
            continue
        seen.add(fact.id)
        later = await later_value(scope, fact) if done.changed.get("state") == "active" else None
        action, other, columns = fact_changes.step_back(done), fact_id, fact_changes.before(done)
        if later is not None:
            action, other = "superseded", later.other
            columns |= {"state": "superseded", "valid_to": later.ends}
        await fact_changes.change(scope, fact, action, actor=done.actor, other=other, at=at, **columns)


async def reclaim(scope: Transaction, fact_id: UUID, given_up_at: datetime, at: datetime) -> None:
    """Let a fact take the places again that it gave up at a moment, of those facts that are still as it left them."""
    for done in await fact_changes.given_up(scope, fact_id, given_up_at):
        fact = await facts.fact(scope, done.fact_id)
        if fact is not None and fact_changes.is_as_left(done, fact):
            columns, action = fact_changes.before(done), fact_changes.step_back(done)
            await fact_changes.change(scope, fact, action, actor=done.actor, other=fact_id, at=at, **columns)
