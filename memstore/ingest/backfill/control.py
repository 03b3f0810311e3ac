"""What an operator does to a backfill: begin, look, pause, resume, cancel.

What is pending is marked as the backfill's, in `derivations`: to pause it is to change one row, and nothing is undone.
What is said meanwhile in a conversation that is not marked goes its own way, before it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime
from uuid import UUID

from memstore.errors import InvalidInput, NotFound
from memstore.ids import uuid7
from memstore.models import Backfill, BackfillStatus, Json
from memstore.store import backfills, derivations, messages
from memstore.store.database import Database, Transaction


async def begin(
    database: Database,
    *,
    user: UUID | None = None,
    derivers: Sequence[str] = derivations.DERIVERS,
    max_tokens: int | None = None,
    max_seconds: float | None = None,
    plan: Json | None = None,
) -> UUID:
    """Make what is pending a backfill, of one user or of all; give its id. Workers take it up.

    What an open backfill has stays with that one. Killed anywhere, it is there, paused, with part of what is pending.
    """
    backfill = uuid7()
    async with database.operator() as scope:
        await backfills.add(
            scope,
            backfill,
            only_user=user,
            derivers=derivers,
            max_tokens=max_tokens,
            max_seconds=max_seconds,
            plan=plan or {},
        )
        taken = [one for one, state in (await backfills.states(scope)).items() if state != backfills.CANCELLED]
    async for owner in everybody(database, user):
        async with database.scope(owner) as own:
            await derivations.assign(own, backfill, derivers, unlike=taken)
    async with database.operator() as scope:
        backlog = await derivations.backfill_backlog(scope, backfill)
        await backfills.counted(scope, backfill, sum(one.messages for one in backlog))
        await backfills.resume(scope, backfill)
    return backfill


async def everybody(database: Database, only: UUID | None) -> AsyncIterator[UUID]:
    """Give the users, or the only one."""
    if only is not None:
        yield only
        return
    async for owner, _ in messages.everybody(database):
        yield owner


async def status(database: Database, backfill: UUID | None = None) -> BackfillStatus:
    """Give how far a backfill is: this one, else the latest. Raises `InvalidInput` where there is none."""
    async with database.operator() as scope:
        found = await _one(scope, backfill)
        backlog = await derivations.backfill_backlog(scope, found.id)
    left = {one.deriver: one.messages for one in backlog}
    worked = found.worked_seconds
    if found.state == backfills.RUNNING:
        worked += (datetime.now(UTC) - found.resumed_at).total_seconds()
    done = max(0, found.messages - sum(left.values()))
    rate = done / worked if worked > 0 else 0.0
    return BackfillStatus(
        backfill=found,
        left=left,
        failing=max((one.failing for one in backlog), default=0),
        done=done,
        seconds=worked,
        rate=rate,
        seconds_left=sum(left.values()) / rate if rate else None,
    )


async def listed(database: Database, *, limit: int = 20) -> list[Backfill]:
    """Give the backfills, the latest first."""
    async with database.operator() as scope:
        return await backfills.backfills(scope, limit=limit)


async def pause(database: Database, backfill: UUID | None = None) -> BackfillStatus:
    """Let no step of a backfill begin; those under way are finished. Raises `InvalidInput` where it does not run."""
    await _change(database, backfill, backfills.PAUSED)
    return await status(database, backfill)


async def cancel(database: Database, backfill: UUID | None = None) -> BackfillStatus:
    """End a backfill. What it has derived stays; what it has not, workers leave alone until somebody asks for it."""
    await _change(database, backfill, backfills.CANCELLED)
    return await status(database, backfill)


async def resume(
    database: Database,
    backfill: UUID | None = None,
    *,
    max_tokens: int | None = None,
    max_seconds: float | None = None,
) -> BackfillStatus:
    """Go on with a paused backfill, with other caps where they are given; `InvalidInput` where it is not paused."""
    async with database.operator() as scope:
        found = await _one(scope, backfill)
        if not await backfills.resume(scope, found.id, max_tokens=max_tokens, max_seconds=max_seconds):
            raise InvalidInput(f"The backfill {found.id} is not paused but {found.state}.")
    return await status(database, found.id)


async def _change(database: Database, backfill: UUID | None, state: str) -> None:
    async with database.operator() as scope:
        found = await _one(scope, backfill)
        if not await backfills.halt(scope, found.id, state, backfills.BY_HAND):
            raise InvalidInput(f"The backfill {found.id} is {found.state}: there is nothing to be {state}.")


async def _one(scope: Transaction, backfill: UUID | None) -> Backfill:
    found = await backfills.backfills(scope, backfill, limit=1)
    if not found:
        raise NotFound(f"There is no backfill {backfill}." if backfill else "There is no backfill yet.")
    return found[0]
