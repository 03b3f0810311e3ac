"""Retention: for how long messages are kept, by the rules of conversations, of users and of the store."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from memstore.models import Json
from memstore.store.database import Transaction, columns
from memstore.store.statements import statements

SQL = statements("retention")


class Expired(NamedTuple):
    """A conversation with messages that were said before a moment, until which its rule keeps none."""

    conversation_id: UUID
    before: datetime
    messages: int


async def expired(scope: Transaction, days: float) -> list[Expired]:
    """Give a user's conversations with messages older than they are kept; `days` is the store's rule, 0 for ever."""
    return await scope.all(SQL["expired"], Expired, days=days)


async def keep_settings(scope: Transaction, settings: Json) -> None:
    """Set settings of the user's own; None takes one away."""
    await scope.run(SQL["keep_settings"], settings=settings)


async def settings(scope: Transaction) -> Json:
    """Give the settings of the user's own."""
    row = await scope.one(SQL["settings"], columns)
    found: Json = row["settings"] if row else {}
    return found
