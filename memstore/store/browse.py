"""Pages of what is stored, for people who look through it: never all of a user's rows."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from memstore.models import Fact, Receipt, Summary, Tier, Timeline
from memstore.store import facts, receipts
from memstore.store.database import Transaction
from memstore.store.statements import statements
from memstore.store.summaries import SUMMARY

SQL = statements("browse")


class Last(NamedTuple):
    """The last one of a page, after which the next begins."""

    at: datetime
    id: UUID


class _Part(NamedTuple):
    """How many items of a tier a part of the timeline has."""

    tier: str
    since: datetime
    until: datetime
    items: int
    part: int


async def fact_page(
    scope: Transaction,
    *,
    state: str | None,
    type: str | None,
    subject: str | None,
    before: Last | None,
    limit: int,
) -> list[Fact]:
    """Give a page of facts with their sources, the latest first."""
    place = {"before": None, "id": None} if before is None else {"before": before.at, "id": before.id}
    rows = await scope.tuples(SQL["fact_page"], state=state, type=type, subject=subject, limit=limit, **place)
    return await _facts(scope, rows)


async def facts_said_by(scope: Transaction, messages: Sequence[UUID], *, limit: int, offset: int) -> list[Fact]:
    """Give facts that these messages say, of whatever state, the latest first."""
    rows = await scope.tuples(SQL["said_by"], messages=list(messages), limit=limit, offset=offset)
    return await _facts(scope, [(id,) for _, id in rows])


async def summaries_over(
    scope: Transaction, conversation: UUID, from_seq: int, to_seq: int, *, limit: int, offset: int
) -> list[Summary]:
    """Give the summaries that stand for some of these messages, the lowest level first, those asked for last."""
    values = {"conversation_id": conversation, "from_seq": from_seq, "to_seq": to_seq}
    return await scope.all(SQL["summaries_over"], SUMMARY, **values, limit=limit, offset=offset)


async def receipt_page(
    scope: Transaction, conversation: UUID | None, *, before: UUID | None, limit: int
) -> list[Receipt]:
    """Give a page of receipts, of all conversations or of one, the latest first; what their items say is left out."""
    values = {"conversation_id": conversation, "before": before, "limit": limit}
    return await scope.all(SQL["receipt_page"], receipts.of_row, **values)


async def timeline(scope: Transaction, parts: int) -> Timeline | None:
    """Give how many items of each tier there are in each part of the time; None before the first message."""
    rows = await scope.all(SQL["timeline"], _Part, parts=parts)
    if not rows:
        return None
    items = {tier: [0] * parts for tier in Tier}
    for one in rows:
        items[Tier(one.tier)][one.part] = one.items
    return Timeline(rows[0].since, rows[0].until, {tier: tuple(counts) for tier, counts in items.items()})


async def _facts(scope: Transaction, rows: Sequence[Sequence[UUID]]) -> list[Fact]:
    ids = [id for (id,) in rows]
    return await facts.facts(scope, state=None, ids=ids) if ids else []
