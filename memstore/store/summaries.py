"""The mid-term tier: summaries of stretches of a conversation, and of summaries."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from memstore.models import Summary
from memstore.store.database import Read, Transaction, row_builder
from memstore.store.sql import statements

SQL = statements("summaries")
SUMMARY = row_builder(Summary)


class Outline(NamedTuple):
    """Where a summary stands and how long it is: of a long conversation the texts have a megabyte."""

    id: UUID
    level: int
    from_seq: int
    to_seq: int
    tokens: int


class Hole(NamedTuple):
    """Messages that lie between two summaries of a level and are under none."""

    from_seq: int
    to_seq: int


async def hole(scope: Transaction, conversation: UUID, done_seq: int) -> Hole | None:
    """Return the first hole of level 1 that ends after a message, and in which messages are left."""
    return await scope.one(SQL["hole"], Hole, conversation_id=conversation, done_seq=done_seq)


async def add(scope: Transaction, summaries: list[Summary]) -> int:
    """Store summaries; return how many were new."""
    return await scope.run_many(SQL["add_summary"], [dict(summary) for summary in summaries])


async def summaries(
    scope: Transaction, conversation: UUID, *, level: int | None = None, as_of: datetime | None = None
) -> list[Summary]:
    """Return a conversation's summaries, by level and in order."""
    return await scope.all(SQL["summaries"], SUMMARY, conversation_id=conversation, level=level, as_of=as_of)


async def summary(scope: Transaction, id: UUID) -> Summary | None:
    """Return one summary; None where there is none of this id."""
    return next(iter(await some(scope, [id])), None)


def outlines(conversation: UUID, *, as_of: datetime | None = None) -> Read[list[Outline]]:
    """Return the read of the summaries of the nest, level 1 and above, without their texts."""
    values = {"conversation_id": conversation, "as_of": as_of}
    return Read(SQL["outlines"], values, lambda rows: list(map(Outline._make, rows)))


async def some(scope: Transaction, ids: Sequence[UUID]) -> list[Summary]:
    """Return these summaries of one conversation, the newest first."""
    return await scope.all(SQL["some"], SUMMARY, ids=list(ids)) if ids else []


async def after(scope: Transaction, conversation: UUID, level: int, seq: int) -> list[Summary]:
    """Return the summaries of a level that begin after a message, in order."""
    return await scope.all(SQL["after"], Summary.model_construct, conversation_id=conversation, level=level, seq=seq)


async def covered(scope: Transaction, conversation: UUID, level: int) -> int:
    """Return the number of the last message under this level's summaries; 0 where there are none."""
    return await scope.value(SQL["covered"], int, conversation_id=conversation, level=level) or 0


async def remove(scope: Transaction, conversation: UUID) -> list[UUID]:
    """Remove a conversation's derived summaries, of every level and recipe; return their ids."""
    return await scope.column(SQL["remove_summaries"], conversation_id=conversation)


async def summaries_over(
    scope: Transaction, conversation: UUID, from_seq: int, to_seq: int, *, limit: int
) -> list[Summary]:
    """Return the summaries that stand for some of these messages, the lowest level first, those asked for last."""
    values = {"conversation_id": conversation, "from_seq": from_seq, "to_seq": to_seq}
    return await scope.all(SQL["summaries_over"], SUMMARY, **values, limit=limit)
