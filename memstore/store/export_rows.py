"""A user's rows as an export reads them: of one moment, one after the other, never held together."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from datetime import datetime
from typing import Any
from uuid import UUID

import numpy as np

from memstore.models import Conversation, FactColumns, Json, Message, Summary, Tier, Unit
from memstore.providers import Vectors
from memstore.store.database import Transaction, stored
from memstore.store.rows import ChunkRow, ConversationRow, ExportOptions, ItemRow, Owner
from memstore.store.sql import statements

SQL = statements("export_rows")
MESSAGE, SUMMARY, FACT, CONVERSATION = stored(Message), stored(Summary), stored(FactColumns), stored(Conversation)
PAGE = 200  # conversations read at once
FIRST = UUID(int=0)
VECTOR_HEAD = 4  # bytes before the components of a vector that is sent: their number and a zero


async def freeze(scope: Transaction) -> None:
    """Have all that is read from here on be of one moment; before anything is read."""
    await scope.run(SQL["snapshot"])


async def owner(scope: Transaction) -> Owner | None:
    """Return the user of the scope; None where nobody has made it."""
    return await scope.one(SQL["owner"], Owner)


async def conversations(scope: Transaction, only: UUID | None = None) -> AsyncIterator[ConversationRow]:
    """Return the conversations, or one, in the order of ids."""
    after = FIRST
    while page := await scope.all(SQL["conversations"], _told, after=after, only=only, limit=PAGE):
        for one in page:
            yield one
        after = page[-1].conversation.id


async def messages(scope: Transaction, conversation: UUID, wanted: ExportOptions) -> AsyncGenerator[ItemRow]:
    """Return the messages of a conversation in order; nothing else is to be asked meanwhile."""
    values = {"conversation_id": conversation} | wanted.values
    async for row in scope.stream(SQL["messages"], _row, **values):
        yield _item(MESSAGE, Tier.MESSAGES, row)


async def summaries(scope: Transaction, conversation: UUID, wanted: ExportOptions) -> AsyncGenerator[ItemRow]:
    """Return the summaries of a conversation in order; nothing else is to be asked meanwhile."""
    values = {"conversation_id": conversation} | wanted.values
    async for row in scope.stream(SQL["summaries"], _row, **values):
        yield _item(SUMMARY, Tier.SUMMARIES, row)


async def facts(
    scope: Transaction, wanted: ExportOptions, *, only: UUID | None = None, by_hand: bool = False
) -> AsyncGenerator[ItemRow]:
    """Return the facts in the order of ids: those that a conversation says, those `by_hand`; nothing else meanwhile."""
    async for row in scope.stream(SQL["facts"], _row, only=only, by_hand=by_hand, **wanted.values):
        yield _item(FACT, Tier.FACTS, row)


async def documents(scope: Transaction, *, vectors: bool) -> AsyncGenerator[dict[str, Any]]:
    """Return the documents by id, with vectors as [path, model, vector, text]; nothing else is to be asked."""
    async for row in scope.stream(SQL["documents"], _row, with_vectors=vectors):
        yield row


def _told(watermarks: dict[str, list[Any]], setting_changes: list[Json], **row: Any) -> ConversationRow:
    return ConversationRow(
        CONVERSATION(**row), {name: (seq, recipe) for name, (seq, recipe) in watermarks.items()}, setting_changes
    )


def _row(**row: Any) -> dict[str, Any]:
    return row


def _item(build: Any, tier: Tier, row: dict[str, Any]) -> ItemRow:
    units, vectors = row.pop("units"), row.pop("vectors")
    sources, history = row.pop("sources", []), row.pop("history", [])
    return ItemRow(build(**row), _units(row["id"], tier, units or [], vectors or b""), sources, history)


def _units(item: UUID, tier: Tier, units: list[list[Any]], sent: bytes) -> list[ChunkRow]:
    embedded = sum(unit[-1] for unit in units)
    size = len(sent) // embedded if embedded else 0
    vectors = iter([_vector(sent[place : place + size]) for place in range(0, len(sent), size or 1)])
    found = []
    for chunk, (start, stop, conversation, seq, role, speaker, at, recorded_at, has_vector) in enumerate(units):
        place = None if conversation is None else UUID(conversation)
        unit = Unit(item, chunk, tier, place, seq, role, speaker, start, stop, datetime.fromisoformat(at))
        vector = next(vectors) if has_vector else None
        found.append(ChunkRow(unit, datetime.fromisoformat(recorded_at), vector))
    return found


def _vector(sent: bytes) -> Vectors:
    return np.frombuffer(sent, ">f4", offset=VECTOR_HEAD).astype(np.float32)
