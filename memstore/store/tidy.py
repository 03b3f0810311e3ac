"""What a tidying pass reads: plans without an end, and the changes that were made together."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from memstore.models import Fact, FactChange
from memstore.store import facts
from memstore.store.database import Transaction
from memstore.store.sql import statements

SQL = statements("tidy")


async def open_plans(tx: Transaction, types: Sequence[str]) -> list[tuple[Fact, datetime]]:
    """Return active facts of these types without an end, what matters first, and when each was said last."""
    said: dict[UUID, datetime] = dict(await tx.tuples(SQL["open_plans"], types=list(types)))
    active = await facts.facts(tx, ids=list(said)) if said else []
    return [(fact, said[fact.id]) for fact in active]


async def ended_with(tx: Transaction, change: UUID) -> list[FactChange]:
    """Return the changes that ended facts together with this one, which is among them."""
    return await tx.all(SQL["ended_with"], FactChange, id=change)
