"""The long-term tier: facts and the messages that say them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from memstore.models import Fact
from memstore.providers import Vectors
from memstore.store import items
from memstore.store.database import Transaction, columns
from memstore.store.statements import statements

SQL = statements("facts")


async def lock(scope: Transaction) -> None:
    """Let no other writer of this user's facts in until the transaction ends."""
    await scope.one(items.SQL["lock_user"], columns)


async def known(scope: Transaction, facts: Sequence[UUID]) -> set[UUID]:
    """Give those of these facts that are stored."""
    return {row["id"] for row in await scope.all(SQL["known_facts"], columns, ids=list(facts))}


async def add(scope: Transaction, fact: Fact) -> None:
    """Store a fact, unless the same one is there."""
    await scope.run(SQL["add_fact"], **dict(fact))


async def add_sources(scope: Transaction, sources: Iterable[tuple[UUID, UUID]]) -> None:
    """Store pairs of a fact and a message that says it."""
    rows = [{"fact_id": fact, "message_id": message} for fact, message in sources]
    if rows:
        await scope.run_many(SQL["add_source"], rows)


async def said_at(scope: Transaction, times: Iterable[tuple[UUID, datetime]]) -> None:
    """Let facts have been said first at the earliest of these times: conversations are not derived in that order."""
    await scope.run_many(SQL["said_at"], [{"id": fact, "occurred_at": time} for fact, time in times])


async def facts(
    scope: Transaction, *, state: str | None = "active", type: str | None = None, as_of: datetime | None = None
) -> list[Fact]:
    """Give the user's facts with their sources, the latest first."""
    return await scope.all(SQL["facts"], _with_sources, state=state, type=type, as_of=as_of)


async def standing(
    scope: Transaction, types: Sequence[str], *, limit: int, as_of: datetime | None = None
) -> list[UUID]:
    """Give facts of these types, which matter whatever is asked: by the order of types, the latest first."""
    rows = await scope.all(SQL["standing_facts"], columns, types=list(types), limit=limit, as_of=as_of)
    return [row["id"] for row in rows]


async def nearest(
    scope: Transaction, query: Vectors, model: UUID, *, type: str, subject: str
) -> tuple[UUID, str, float] | None:
    """Give id, text and cosine of the active fact of this type and subject that is nearest to a vector."""
    row = await scope.one(SQL["nearest_fact"], columns, query=query, model_id=model, type=type, subject=subject)
    return None if row is None else (row["id"], row["text"], row["score"])


def _with_sources(**columns: Any) -> Fact:
    return Fact.model_construct(**columns)
