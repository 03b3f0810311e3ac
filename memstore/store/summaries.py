"""The mid-term tier: summaries of stretches of a conversation, and of summaries."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from memstore.models import Summary
from memstore.store.database import Transaction, columns, stored
from memstore.store.statements import statements

SQL = statements("summaries")
SUMMARY = stored(Summary)


async def add(scope: Transaction, summaries: list[Summary]) -> int:
    """Store summaries; give how many were new."""
    if not summaries:
        return 0
    return await scope.run_many(SQL["add_summary"], [dict(summary) for summary in summaries])


async def summaries(
    scope: Transaction, conversation: UUID, *, level: int | None = None, as_of: datetime | None = None
) -> list[Summary]:
    """Give a conversation's summaries, by level and in order."""
    return await scope.all(SQL["summaries"], SUMMARY, conversation_id=conversation, level=level, as_of=as_of)


async def covered(scope: Transaction, conversation: UUID, level: int, recipe: str) -> int:
    """Give the number of the last message under this level's summaries; 0 where there are none."""
    row = await scope.one(SQL["covered"], columns, conversation_id=conversation, level=level, recipe=recipe)
    assert row is not None
    covered: int = row["to_seq"]
    return covered
