"""What calls of chat models cost, and the answers that nobody could use."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import NamedTuple
from uuid import UUID

from memstore.models import DeadLetter, Usage
from memstore.store.database import Transaction
from memstore.store.sql import statements

SQL = statements("llm_usage")


class MeanCost(NamedTuple):
    """The average tokens and seconds of a model's calls; `seconds` is None where no call was timed."""

    model: str
    prompt_tokens: float
    answer_tokens: float
    seconds: float | None


async def keep(scope: Transaction, cost: Usage, letters: Sequence[DeadLetter]) -> None:
    """Keep what calls cost, by day of UTC, and the answers that could not be used; one again is one more attempt."""
    if cost.calls:
        await scope.run(SQL["add_usage"], day=datetime.now(UTC).date(), **cost._asdict())
    for letter in letters:
        await scope.run(SQL["add_letter"], **dict(letter))


async def letters(scope: Transaction, *, limit: int = 1000) -> list[DeadLetter]:
    """Return the user's dead letters, the oldest first."""
    return await scope.all(SQL["letters"], DeadLetter.model_construct, limit=limit)


async def remove_letters(
    scope: Transaction, conversation: UUID, deriver: str, *, but: Sequence[DeadLetter] = ()
) -> None:
    """Take a conversation's letters of a deriver away, as it was asked again, but those that came again."""
    again = [letter.id for letter in but]
    await scope.run(SQL["remove_letters"], conversation_id=conversation, deriver=deriver, again=again)


async def answered(scope: Transaction, letter: UUID) -> None:
    """Take a letter away, if it is there: what it is about was answered."""
    await scope.run(SQL["answered"], id=letter)


async def mean_costs(scope: Transaction) -> dict[str, MeanCost]:
    """Return for each model what a call took and gave so far, on average; in the operator's scope."""
    return {one.model: one for one in await scope.all(SQL["mean_costs"], MeanCost)}


async def left(scope: Transaction, cap: int | None) -> int | None:
    """Return the tokens that today's calls (UTC) may still cost, all users together; in the operator's scope."""
    if cap is None:
        return None
    return cap - (await scope.value(SQL["spent"], int, day=datetime.now(UTC).date()) or 0)
