"""What calls of chat models cost, and the answers that nobody could use."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from uuid import UUID

from memstore.models import InvalidResponse, Usage
from memstore.store.database import Transaction
from memstore.store.sql import statements

SQL = statements("llm_usage")


async def keep(tx: Transaction, cost: Usage, responses: Sequence[InvalidResponse]) -> None:
    """Keep what calls cost, by day of UTC, and the answers that could not be used; one again is one more attempt."""
    if cost.calls:
        await tx.run(SQL["add_usage"], day=datetime.now(UTC).date(), **asdict(cost))
    for response in responses:
        await tx.run(SQL["add_invalid_response"], **dict(response))


async def invalid_responses(tx: Transaction, *, limit: int = 1000) -> list[InvalidResponse]:
    return await tx.all(SQL["invalid_responses"], InvalidResponse.model_construct, limit=limit)


async def remove_invalid_responses(
    tx: Transaction, conversation: UUID, deriver: str, *, but: Sequence[InvalidResponse] = ()
) -> None:
    """Take a conversation's invalid responses of a deriver away, as it was asked again, but those that came again."""
    again = [response.id for response in but]
    await tx.run(SQL["remove_invalid_responses"], conversation_id=conversation, deriver=deriver, again=again)


async def drop_answered(tx: Transaction, response: UUID) -> None:
    """Remove an invalid response, if there is one: its messages were answered."""
    await tx.run(SQL["answered"], id=response)


async def usage(tx: Transaction) -> list[Usage]:
    return await tx.all(SQL["usage"], Usage)


async def total_usage(tx: Transaction) -> list[Usage]:
    """Return what all users' calls cost so far, by deriver and model; in the operator's scope."""
    return await tx.all(SQL["total_usage"], Usage)


async def tokens_left(tx: Transaction, cap: int) -> int:
    """Return the tokens that today's calls (UTC) may still cost, all users together; in the operator's scope."""
    return cap - (await tx.value(SQL["spent"], int, day=datetime.now(UTC).date()) or 0)
