"""What calls of chat models cost, and the answers that nobody could use."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import NamedTuple
from uuid import UUID

from memstore.models import InvalidResponse, Usage
from memstore.store.database import Transaction
from memstore.store.sql import statements

SQL = statements("llm_usage")


class MeanCost(NamedTuple):
    """The average tokens of a model's calls."""

    model: str
    prompt_tokens: float
    answer_tokens: float


async def keep(scope: Transaction, cost: Usage, responses: Sequence[InvalidResponse]) -> None:
    """Keep what calls cost, by day of UTC, and the answers that could not be used; one again is one more attempt."""
    if cost.calls:
        await scope.run(SQL["add_usage"], day=datetime.now(UTC).date(), **cost._asdict())
    for response in responses:
        await scope.run(SQL["add_invalid_response"], **dict(response))


async def invalid_responses(scope: Transaction, *, limit: int = 1000) -> list[InvalidResponse]:
    """Return the user's invalid responses, the oldest first."""
    return await scope.all(SQL["invalid_responses"], InvalidResponse.model_construct, limit=limit)


async def remove_invalid_responses(
    scope: Transaction, conversation: UUID, deriver: str, *, but: Sequence[InvalidResponse] = ()
) -> None:
    """Take a conversation's invalid responses of a deriver away, as it was asked again, but those that came again."""
    again = [response.id for response in but]
    await scope.run(SQL["remove_invalid_responses"], conversation_id=conversation, deriver=deriver, again=again)


async def answered(scope: Transaction, response: UUID) -> None:
    """Take an invalid response away, if it is there: what it is about was answered."""
    await scope.run(SQL["answered"], id=response)


async def mean_costs(scope: Transaction) -> dict[str, MeanCost]:
    """Return for each model what a call took and gave so far, on average; in the operator's scope."""
    return {one.model: one for one in await scope.all(SQL["mean_costs"], MeanCost)}


async def left(scope: Transaction, cap: int | None) -> int | None:
    """Return the tokens that today's calls (UTC) may still cost, all users together; in the operator's scope."""
    if cap is None:
        return None
    return cap - (await scope.value(SQL["spent"], int, day=datetime.now(UTC).date()) or 0)
