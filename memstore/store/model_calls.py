"""Calls of chat models: the answers that nobody could use, and what they cost."""

from __future__ import annotations

from datetime import date
from uuid import UUID

from memstore.models import DeadLetter, Usage
from memstore.store.database import Transaction, columns
from memstore.store.statements import statements

SQL = statements("model_calls")


async def add_letter(scope: Transaction, letter: DeadLetter) -> None:
    """Keep an answer that could not be used; the same stretch again is one more attempt."""
    kept = letter.model_dump(exclude={"user_id", "attempts", "recorded_at"})
    await scope.run(SQL["add_letter"], **kept)


async def letters(scope: Transaction, *, limit: int = 1000) -> list[DeadLetter]:
    """Give the user's dead letters, the oldest first."""
    return await scope.all(SQL["letters"], DeadLetter.model_construct, limit=limit)


async def remove_letter(scope: Transaction, letter: UUID) -> None:
    """Take a letter away: it has been answered."""
    await scope.run(SQL["remove_letter"], id=letter)


async def add_usage(scope: Transaction, day: date, used: Usage) -> None:
    """Add what calls cost to the day's sum."""
    values = {"calls": used.calls, "prompt_tokens": used.prompt_tokens, "completion_tokens": used.completion_tokens}
    await scope.run(SQL["add_usage"], day=day, model=used.model, **values)


async def spent(scope: Transaction, day: date) -> int:
    """Give the tokens that calls of a day have cost, of all users; in the operator's scope."""
    row = await scope.one(SQL["spent"], columns, day=day)
    assert row is not None
    tokens: int = row["tokens"]
    return tokens
