"""What an operator does to a backfill: begin, status, pause, resume, cancel, verify.

Pending messages are assigned to the backfill in `derivations`, so pausing it changes one row and undoes nothing. New
messages in conversations that are not assigned to it are derived first.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime
from uuid import UUID

from memstore.errors import InvalidInput, NotFound
from memstore.ids import uuid7
from memstore.models import Backfill, BackfillStatus, DerivationProblem, Json
from memstore.store import backfills, messages, queue, watermarks
from memstore.store.database import Database, Transaction


async def begin(
    database: Database,
    *,
    user: UUID | None = None,
    derivers: Sequence[str] = watermarks.DERIVERS,
    max_tokens: int | None = None,
    max_seconds: float | None = None,
    plan: Json | None = None,
) -> UUID:
    """Assign what is pending of one user or of all to a new backfill, start it and return its id.

    What another open backfill has stays with that one. If the process is killed meanwhile, the backfill is left paused
    with a part of what is pending.
    """
    backfill = uuid7()
    async with database.admin_transaction() as scope:
        await backfills.add(
            scope,
            backfill,
            only_user=user,
            derivers=derivers,
            max_tokens=max_tokens,
            max_seconds=max_seconds,
            plan=plan or {},
        )
        others = [id for id, state in (await backfills.states(scope)).items() if state != backfills.CANCELLED]
    async for owner in user_ids(database, user):
        async with database.user_transaction(owner) as own:
            await watermarks.assign(own, backfill, derivers, unlike=others)
    async with database.admin_transaction() as scope:
        backlog = await watermarks.backfill_backlog(scope, backfill)
        await backfills.set_messages(scope, backfill, sum(entry.messages for entry in backlog))
        await backfills.resume(scope, backfill)
    return backfill


async def user_ids(database: Database, only: UUID | None) -> AsyncIterator[UUID]:
    """Return the ids of all users, or the only one."""
    if only is not None:
        yield only
        return
    async for owner, _ in messages.everybody(database):
        yield owner


async def status(database: Database, backfill: UUID | None = None) -> BackfillStatus:
    """Return the progress of a backfill, by default of the latest. Raises `NotFound` if there is none."""
    async with database.admin_transaction() as scope:
        row = await _find(scope, backfill)
        backlog = await watermarks.backfill_backlog(scope, row.id)
    left = {entry.deriver: entry.messages for entry in backlog}
    worked = row.worked_seconds
    if row.state == backfills.RUNNING:
        worked += (datetime.now(UTC) - row.resumed_at).total_seconds()
    done = max(0, row.messages - sum(left.values()))
    rate = done / worked if worked > 0 else 0.0
    return BackfillStatus(
        backfill=row,
        left=left,
        failing=max((entry.failing for entry in backlog), default=0),
        done=done,
        seconds=worked,
        rate=rate,
        seconds_left=sum(left.values()) / rate if rate else None,
    )


async def list_backfills(database: Database, *, limit: int = 20) -> list[Backfill]:
    """Return the backfills, the latest first."""
    async with database.admin_transaction() as scope:
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
    """Resume a paused backfill, with other caps if given. Raises `InvalidInput` if it is not paused."""
    async with database.admin_transaction() as scope:
        row = await _find(scope, backfill)
        if not await backfills.resume(scope, row.id, max_tokens=max_tokens, max_seconds=max_seconds):
            raise InvalidInput(f"The backfill {row.id} is not paused but {row.state}.")
    return await status(database, row.id)


async def verify_derived(database: Database, *, user: UUID | None = None, has_queue: bool) -> list[DerivationProblem]:
    """Return what is not derived, not whole or wrongly counted, of one user or of all."""
    problems = []
    async for owner, name in messages.everybody(database):
        if user in (None, owner):
            async with database.user_transaction(owner) as scope:
                problems += [
                    DerivationProblem(name, problem, rows)
                    for problem, rows in (await watermarks.find_problems(scope)).items()
                ]
    if has_queue and (failed := (await queue.counts(database)).failed):
        problems.append(DerivationProblem(None, "jobs were given up: memstore jobs list --failed", failed))
    return problems


async def _change(database: Database, backfill: UUID | None, state: str) -> None:
    async with database.admin_transaction() as scope:
        row = await _find(scope, backfill)
        if not await backfills.halt(scope, row.id, state, backfills.BY_HAND):
            raise InvalidInput(f"The backfill {row.id} is {row.state}: there is nothing to be {state}.")


async def _find(scope: Transaction, backfill: UUID | None) -> Backfill:
    rows = await backfills.backfills(scope, backfill, limit=1)
    if not rows:
        raise NotFound(f"There is no backfill {backfill}." if backfill else "There is no backfill yet.")
    return rows[0]
