"""Calls of chat models: the answers that nobody could use, and what they cost."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from uuid import UUID

from memstore.models import DeadLetter, Usage
from memstore.store.database import Transaction, columns
from memstore.store.statements import statements

SQL = statements("model_calls")


async def keep(scope: Transaction, cost: Usage, letters: Sequence[DeadLetter]) -> None:
    """Keep what calls cost, by day of UTC, and the answers that could not be used; one again is one more attempt."""
    if cost.calls:
        await scope.run(SQL["add_usage"], day=datetime.now(UTC).date(), **cost._asdict())
    for letter in letters:
        await scope.run(SQL["add_letter"], **dict(letter))


async def letters(scope: Transaction, *, limit: int = 1000) -> list[DeadLetter]:
    """Give the user's dead letters, the oldest first."""
    return await scope.all(SQL["letters"], DeadLetter.model_construct, limit=limit)


async def remove_letters(scope: Transaction, conversation: UUID, deriver: str) -> None:
    """Take a conversation's letters of a deriver away: it is asked again."""
    await scope.run(SQL["remove_letters"], conversation_id=conversation, deriver=deriver)


async def spent(scope: Transaction) -> int:
    """Give the tokens that today's calls (UTC) have cost, of all users; in the operator's scope."""
    row = await scope.one(SQL["spent"], columns, day=datetime.now(UTC).date())
    assert row is not None
    tokens: int = row["tokens"]
    return tokens
