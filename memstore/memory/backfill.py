"""The backfills of a store: planned, begun, looked at and stopped here; workers do them."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from memstore import ids
from memstore.errors import InvalidInput
from memstore.ingest.backfill import control
from memstore.ingest.backfill.verification import verified
from memstore.ingest.check import check_name, one_of
from memstore.memory.opened import Opened
from memstore.models import Backfill, BackfillPlan, BackfillStatus, Wrong
from memstore.store import queue_schema
from memstore.store.derivations import DERIVERS
from memstore.waiting import in_thread

NAMED = {"embed": "embed", "summaries": "summarize", "facts": "facts"}  # what users call it, and the deriver


class AsyncBackfills:
    """What an operator does to the backfills of a store. Each is known by its id; without one the latest is meant."""

    def __init__(self, opened: Opened) -> None:
        self._opened = opened
        self._database = opened.database

    async def plan(self, *, user: str | None = None, only: Sequence[str] = (), ask: int = 0) -> BackfillPlan:
        """Give what is pending of every user or of one, and what it would cost.

        `only` some of "embed", "summaries" and "facts". Nothing is written and nobody is asked, but with `ask` the chat
        models, about so many stretches for each deriver: how long their answers are is then measured and not assumed.
        What that takes counts as their other calls do. Raises `ModelUnavailable` where one is away.
        """
        from memstore.ingest.backfill.plan import counted, plan, priced

        if ask < 0:
            raise InvalidInput(f"ask={ask}: give how many stretches the chat models may be asked about, 0 for none.")
        found = await counted(self._database, user=_user(user), derivers=_derivers(only))
        if not any(one["messages"] for one in found.values()):
            return priced(found, {})  # for nothing, no model need be loaded
        return await plan(self._database, await self._opened.resources(), found, user=_user(user), ask=ask)

    async def begin(
        self,
        *,
        user: str | None = None,
        only: Sequence[str] = (),
        max_tokens: int | None = None,
        max_seconds: float | None = None,
        plan: BackfillPlan | None = None,
    ) -> UUID:
        """Make what is pending a backfill and give its id; workers take it up.

        It is paused where calls of chat models could take more than `max_tokens`, or after `max_seconds` of work.
        """
        await in_thread(queue_schema.prepare, self._database.url)
        return await control.begin(
            self._database,
            user=_user(user),
            derivers=_derivers(only),
            max_tokens=max_tokens,
            max_seconds=max_seconds,
            plan=None if plan is None else _kept(plan),
        )

    async def status(self, backfill: UUID | None = None) -> BackfillStatus:
        """Give how far it is."""
        return await control.status(self._database, backfill)

    async def all(self, *, limit: int = 20) -> list[Backfill]:
        """Give the backfills, the latest first."""
        return await control.listed(self._database, limit=limit)

    async def pause(self, backfill: UUID | None = None) -> BackfillStatus:
        """Let no step of it begin; those under way are finished."""
        return await control.pause(self._database, backfill)

    async def resume(
        self, backfill: UUID | None = None, *, max_tokens: int | None = None, max_seconds: float | None = None
    ) -> BackfillStatus:
        """Go on with a paused one, with other caps where they are given."""
        return await control.resume(self._database, backfill, max_tokens=max_tokens, max_seconds=max_seconds)

    async def cancel(self, backfill: UUID | None = None) -> BackfillStatus:
        """End it. What it has derived stays; the rest workers leave alone until it is asked for."""
        return await control.cancel(self._database, backfill)

    async def verify(self, *, user: str | None = None) -> list[Wrong]:
        """Give what is not derived, not whole or wrongly counted, of every user or of one; [] where all is well."""
        queued = await in_thread(queue_schema.is_made, self._database.url)
        return await verified(self._database, user=_user(user), queued=queued)


def _user(name: str | None) -> UUID | None:
    if name is not None:
        check_name(name, "user")
    return None if name is None else ids.user_id(name)


def _derivers(only: Sequence[str]) -> Sequence[str]:
    for one in only:
        one_of("only", one, tuple(NAMED))
    return [NAMED[one] for one in NAMED if one in only] or DERIVERS


def _kept(plan: BackfillPlan) -> dict[str, object]:
    """Give a plan as it is kept: numbers."""
    from dataclasses import asdict

    return asdict(plan)
