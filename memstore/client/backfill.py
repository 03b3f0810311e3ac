"""`store.backfills`: plan, begin, watch and stop backfills. Workers do the work."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from uuid import UUID

from memstore import ids
from memstore._compat import to_thread
from memstore.backfill import control
from memstore.client.opened import Opened
from memstore.ingest.check import check_name, one_of
from memstore.models import Backfill, BackfillPlan, BackfillStatus, Wrong
from memstore.providers import ChatModel
from memstore.store import queue_schema
from memstore.store.derivations import DERIVERS

DERIVERS_BY_NAME = {"embed": "embed", "summaries": "summarize", "facts": "facts"}  # as users name them


class AsyncBackfills:
    """What an operator does to the backfills of a store. Without an id the latest one is meant."""

    def __init__(self, opened: Opened) -> None:
        self._opened = opened
        self._database = opened.database

    async def plan(self, *, user: str | None = None, only: Sequence[str] = ()) -> BackfillPlan:
        """Return what is pending of every user or of one, and about what it costs.

        `only` names some of "embed", "summaries" and "facts". Nothing is written, and no chat model is asked. Raises
        `ModelUnavailable` if the server of a chat model is away.
        """
        from memstore.backfill.plan import count_pending, make_plan

        opened, derivers = self._opened, _derivers(only)
        pending = await count_pending(self._database, opened.settings, user=_user_id(user), derivers=derivers)
        models: dict[str, ChatModel] = {}
        if any(counts.messages for counts in pending.values()):
            named = zip(("summarize", "facts"), opened.chat_models, strict=True)
            models = {deriver: model for deriver, model in named if model is not None}
        return await make_plan(self._database, pending, models, opened.counter)

    async def begin(
        self,
        *,
        user: str | None = None,
        only: Sequence[str] = (),
        max_tokens: int | None = None,
        max_seconds: float | None = None,
        plan: BackfillPlan | None = None,
    ) -> UUID:
        """Make what is pending a backfill and return its id; workers take it up.

        It is paused before calls of chat models take more than `max_tokens`, or after `max_seconds` of work.
        """
        await to_thread(queue_schema.prepare, self._database.url)
        return await control.begin(
            self._database,
            user=_user_id(user),
            derivers=_derivers(only),
            max_tokens=max_tokens,
            max_seconds=max_seconds,
            plan=None if plan is None else asdict(plan),
        )

    async def status(self, backfill: UUID | None = None) -> BackfillStatus:
        """Return its progress."""
        return await control.status(self._database, backfill)

    async def all(self, *, limit: int = 20) -> list[Backfill]:
        """Return the backfills, the latest first."""
        return await control.list_backfills(self._database, limit=limit)

    async def pause(self, backfill: UUID | None = None) -> BackfillStatus:
        """Pause it; steps under way are finished."""
        return await control.pause(self._database, backfill)

    async def resume(
        self, backfill: UUID | None = None, *, max_tokens: int | None = None, max_seconds: float | None = None
    ) -> BackfillStatus:
        """Resume a paused one, with other caps if given."""
        return await control.resume(self._database, backfill, max_tokens=max_tokens, max_seconds=max_seconds)

    async def cancel(self, backfill: UUID | None = None) -> BackfillStatus:
        """End it. What it has derived stays; workers leave the rest alone until it is asked for."""
        return await control.cancel(self._database, backfill)

    async def verify(self, *, user: str | None = None) -> list[Wrong]:
        """Return what is not derived, not whole or wrongly counted, of every user or of one; [] if all is well."""
        has_queue = await to_thread(queue_schema.is_made, self._database.url)
        return await control.verify_derived(self._database, user=_user_id(user), has_queue=has_queue)


def _user_id(name: str | None) -> UUID | None:
    if name is not None:
        check_name(name, "user")
    return None if name is None else ids.user_id(name)


def _derivers(only: Sequence[str]) -> Sequence[str]:
    for name in only:
        one_of("only", name, tuple(DERIVERS_BY_NAME))
    return [deriver for name, deriver in DERIVERS_BY_NAME.items() if name in only] or DERIVERS
