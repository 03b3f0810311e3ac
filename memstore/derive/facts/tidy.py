"""Proposals to end plans whose time has passed: "next month", said in May. A person accepts or refuses each.

A proposal follows from the fact, when it was last said and the time now, so nothing is stored that waits.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import UTC, datetime
from uuid import UUID

from memstore.derive.facts.days import end_of_period
from memstore.derive.facts.manual_edits import undo_in
from memstore.derive.facts.normalization import PLAN
from memstore.derive.facts.quotations import words_of
from memstore.errors import NotFound
from memstore.models import HAND, Fact, FactChange
from memstore.store import chunks, facts, tidy
from memstore.store.database import Database, Transaction


async def passed_plans(tx: Transaction) -> list[tuple[Fact, datetime]]:
    """Return plans whose time has passed, and when it had."""
    now = datetime.now(UTC)
    # A decision stays one when its day is over.
    plans = await tidy.open_plans(tx, [PLAN, "task", "goal"])
    ends = [(fact, end_of_period(words_of(fact.text), said_at)) for fact, said_at in plans]
    return [
        (fact, end)
        for fact, end in ends
        if end is not None and end <= now and (fact.valid_from is None or fact.valid_from < end)
    ]


async def decide(
    database: Database, user_id: UUID, accept: Collection[UUID], refuse: Collection[UUID]
) -> list[FactChange]:
    """End the plans that are accepted, at one moment, and remember those that are refused; return the changes."""
    async with database.user_transaction(user_id) as tx:
        await chunks.lock_user(tx)
        passed = {fact.id: (fact, end) for fact, end in await passed_plans(tx)}
        if unknown := [id for id in (*accept, *refuse) if id not in passed]:
            raise NotFound(f"Nothing is proposed of a fact {unknown[0]}. Nothing was changed.")
        changes: list[FactChange] = []
        for id, (fact, end) in passed.items():
            at = changes[0].at if changes else None
            if id in refuse:
                changes.append(await facts.change(tx, fact, "confirmed", actor="tidy", at=at))
            elif id in accept:
                changes.append(await facts.change(tx, fact, "edited", actor=HAND, at=at, valid_to=end))
        return changes


async def undo_together(database: Database, user_id: UUID, change_id: UUID) -> list[FactChange]:
    """Undo a change by `decide` and those that were made with it, all or none; return the changes that did so."""
    async with database.user_transaction(user_id) as tx:
        await chunks.lock_user(tx)
        ended = await tidy.ended_with(tx, change_id)
        if change_id not in {change.id for change in ended}:
            raise NotFound(f"The change {change_id} ended no plan: the history of a fact has those that did.")
        return [await undo_in(tx, change) for change in ended]
