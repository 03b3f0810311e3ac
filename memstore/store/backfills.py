"""Backfills as they are kept: their state, their caps, what they have cost. The operator's rows, of no user."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from psycopg.types.json import Jsonb

from memstore.models import Backfill, Json
from memstore.store.database import Transaction, columns
from memstore.store.statements import statements

SQL = statements("backfills")
RUNNING, PAUSED, CANCELLED, DONE = "running", "paused", "cancelled", "done"
BY_HAND, TOKENS, SECONDS = "by hand", "tokens", "seconds"


async def add(
    scope: Transaction,
    backfill: UUID,
    *,
    only_user: UUID | None,
    derivers: Sequence[str],
    max_tokens: int | None,
    max_seconds: float | None,
    plan: Json,
) -> None:
    """Begin a backfill."""
    caps = {"max_tokens": max_tokens, "max_seconds": max_seconds}
    await scope.run(SQL["add"], id=backfill, only_user=only_user, derivers=list(derivers), plan=Jsonb(plan), **caps)


async def counted(scope: Transaction, backfill: UUID, messages: int) -> None:
    """Keep how many messages a backfill is to derive, each deriver's counted."""
    await scope.run(SQL["counted"], id=backfill, messages=messages)


async def backfills(scope: Transaction, backfill: UUID | None = None, *, limit: int = 20) -> list[Backfill]:
    """Give the backfills, the latest first, or one of them."""
    return await scope.all(SQL["backfills"], Backfill, id=backfill, limit=limit)


async def states(scope: Transaction) -> dict[UUID, str]:
    """Give the states of those that hold what is pending, the oldest first."""
    return {row["id"]: row["state"] for row in await scope.all(SQL["open"], columns)}


async def halt(scope: Transaction, backfill: UUID, state: str, reason: str | None = None) -> bool:
    """Pause, cancel or end a backfill; False where it has ended, or is paused already."""
    return bool(await scope.run(SQL["halt"], id=backfill, state=state, reason=reason))


async def resume(
    scope: Transaction, backfill: UUID, *, max_tokens: int | None = None, max_seconds: float | None = None
) -> bool:
    """Go on with a paused backfill, with other caps where they are given; False where it is not paused."""
    return bool(await scope.run(SQL["resume"], id=backfill, max_tokens=max_tokens, max_seconds=max_seconds))


async def out_of_time(scope: Transaction, backfill: UUID) -> bool:
    """Pause a backfill that has worked for as long as it may; give whether that is so."""
    return bool(await scope.run(SQL["out_of_time"], id=backfill))


async def reserve(scope: Transaction, backfill: UUID, tokens: int) -> bool:
    """Take tokens for a call that is about to be made; False where the cap, or its state, forbids it."""
    return bool(await scope.run(SQL["reserve"], id=backfill, tokens=tokens))


async def settle(scope: Transaction, backfill: UUID, *, taken: int, spent: int) -> None:
    """Note what a call has cost, in the place of what was taken for it."""
    await scope.run(SQL["settle"], id=backfill, taken=taken, spent=spent)


async def out_of_tokens(scope: Transaction, backfill: UUID, tokens: int, *, now: bool) -> bool:
    """Pause a backfill that cannot make a call of so many tokens; give whether that is so.

    Not even when every call under way had cost nothing, or with `now` as things are.
    """
    return bool(await scope.run(SQL["out_of_tokens"], id=backfill, tokens=tokens, now=now))
