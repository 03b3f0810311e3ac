"""The rows of backfills: state, caps, cost. They belong to the operator and to no user."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Literal, TypeAlias
from uuid import UUID

from memstore.models import Backfill, Usage
from memstore.store.database import Transaction
from memstore.store.sql import statements

SQL = statements("backfills")
HaltedState: TypeAlias = Literal["paused", "cancelled", "done"]


async def add(
    tx: Transaction, backfill: UUID, *, only_user: UUID | None, derivers: Sequence[str], max_tokens: int | None
) -> None:
    """Store a new backfill, paused."""
    values = {"only_user": only_user, "derivers": list(derivers), "max_tokens": max_tokens}
    await tx.run(SQL["add"], id=backfill, **values)


async def set_messages(tx: Transaction, backfill: UUID, messages: Mapping[str, int]) -> None:
    """Store how many messages each deriver of a backfill is to derive."""
    await tx.run(SQL["set_messages"], id=backfill, messages=json.dumps(messages))


async def backfills(tx: Transaction, backfill: UUID | None, *, limit: int = 20) -> list[Backfill]:
    return await tx.all(SQL["backfills"], Backfill, id=backfill, limit=limit)


async def states(tx: Transaction) -> dict[UUID, str]:
    """Return the states of the backfills that are not done, the oldest first."""
    return dict(await tx.tuples(SQL["open"]))


async def halt(
    tx: Transaction, backfill: UUID, state: HaltedState, reason: Literal["by hand", "tokens"] | None = None
) -> bool:
    """Pause, cancel or end a backfill; return False if it has ended, or is paused already."""
    return bool(await tx.run(SQL["halt"], id=backfill, state=state, reason=reason))


async def resume(tx: Transaction, backfill: UUID, *, max_tokens: int | None = None) -> bool:
    """Resume a paused backfill, with another cap if given; return False if it is not paused."""
    return bool(await tx.run(SQL["resume"], id=backfill, max_tokens=max_tokens))


async def reserve(tx: Transaction, backfill: UUID, tokens: int) -> bool:
    """Reserve tokens for a call before it is made; return False if the cap, or the backfill's state, forbids it."""
    return bool(await tx.run(SQL["reserve"], id=backfill, tokens=tokens))


async def settle(tx: Transaction, backfill: UUID, taken: int, usage: Usage) -> None:
    """Replace the tokens reserved for a call by what it cost."""
    await tx.run(SQL["settle"], id=backfill, taken=taken, **asdict(usage))
