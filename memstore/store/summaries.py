"""The mid-term tier: summaries of stretches of a conversation, and of summaries."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from memstore.models import Summary
from memstore.store.database import Read, Transaction, read_all
from memstore.store.messages import MAX_SEQ
from memstore.store.rows import row_builder
from memstore.store.sql import statements

SQL = statements("summaries")
build_summary = row_builder(Summary)


class Outline(NamedTuple):
    """A summary without its text: of a long conversation the texts have a megabyte."""

    id: UUID
    level: int
    from_seq: int
    to_seq: int
    tokens: int


class Range(NamedTuple):
    """The messages of a summary, and when the last one was said."""

    from_seq: int
    to_seq: int
    occurred_until: datetime


class Hole(NamedTuple):
    """Messages that lie between two summaries of a level and are under none."""

    from_seq: int
    to_seq: int


async def hole(tx: Transaction, conversation: UUID, done_seq: int) -> Hole | None:
    """Return the first hole of level 1 that ends after a message, and in which messages are left."""
    return await tx.one(SQL["hole"], Hole, conversation_id=conversation, done_seq=done_seq)


async def add(tx: Transaction, summaries: list[Summary]) -> int:
    return await tx.run_many(SQL["add_summary"], [dict(summary) for summary in summaries])


async def summaries(
    tx: Transaction, conversation: UUID, *, level: int | None = None, as_of: datetime | None = None
) -> list[Summary]:
    return await tx.all(SQL["summaries"], build_summary, conversation_id=conversation, level=level, as_of=as_of)


async def summary(tx: Transaction, id: UUID) -> Summary | None:
    rows = await tx.get(read_by_ids([id]))
    return rows[0] if rows else None


def outlines(conversation: UUID, *, as_of: datetime | None) -> Read[list[Outline]]:
    """Return the read of the summaries of the nest, level 1 and above, without their texts."""
    values = {"conversation_id": conversation, "as_of": as_of}
    return Read(SQL["outlines"], values, lambda rows: list(map(Outline._make, rows)))


def read_by_ids(ids: Sequence[UUID]) -> Read[list[Summary]]:
    """Return the read of these summaries of one conversation, the newest first."""
    return read_all(SQL["by_ids"], build_summary, ids=list(ids))


async def after(tx: Transaction, conversation: UUID, level: int, seq: int, *, before: int) -> list[Summary]:
    """Return the summaries of a level that begin after a message and end before another, in order."""
    place = {"conversation_id": conversation, "level": level, "seq": seq, "before": before}
    return await tx.all(SQL["after"], Summary.model_construct, **place)


async def last(tx: Transaction, conversation: UUID, level: int, *, before: int = MAX_SEQ) -> Range | None:
    """Return where the last summary of a level stands, of those that end before a message."""
    return await tx.one(SQL["last"], Range, conversation_id=conversation, level=level, before=before)


async def remove(tx: Transaction, conversation: UUID, *, from_seq: int = 0) -> list[UUID]:
    """Remove a conversation's derived summaries that reach a message, of every level and recipe; return their ids."""
    return await tx.column(SQL["remove_summaries"], conversation_id=conversation, from_seq=from_seq)


async def summaries_over(
    tx: Transaction, conversation: UUID, from_seq: int, to_seq: int, *, limit: int
) -> list[Summary]:
    """Return the summaries that stand for some of these messages, the lowest level first, those asked for last."""
    values = {"conversation_id": conversation, "from_seq": from_seq, "to_seq": to_seq}
    return await tx.all(SQL["summaries_over"], build_summary, **values, limit=limit)
