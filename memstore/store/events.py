"""The outbox: events as they were written, for whoever was not there."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from memstore.errors import InvalidInput
from memstore.events import Event, EventType
from memstore.store.database import Transaction
from memstore.store.sql import statements

SQL = statements("events")
LARGEST = 2**63 - 1  # number of a transaction


async def events(scope: Transaction, *, after: str | None, types: Sequence[str] | None, limit: int) -> list[Event]:
    """Return a user's events after a cursor, in the order in which a reader may rely on seeing all of them."""
    transaction, event = _position(after)
    values = {"after_transaction": transaction, "after_id": event}
    return await scope.all(SQL["events"], _event, **values, types=types and list(types), limit=limit)


async def trim(scope: Transaction, before: datetime) -> int:
    """Forget events that were recorded before a moment; return how many."""
    return await scope.run(SQL["trim_events"], before=before)


def _position(cursor: str | None) -> tuple[int, UUID]:
    try:
        transaction, _, event = (cursor or f"0/{UUID(int=0)}").partition("/")
        place = int(transaction), UUID(event)
        if not 0 <= place[0] <= LARGEST:
            raise ValueError
    except (ValueError, TypeError, AttributeError):
        raise InvalidInput(
            f"after={cursor!r} is no cursor; give Event.cursor of an event that you have read."
        ) from None
    return place


def _event(type: str, **columns: Any) -> Event:
    return Event(type=EventType(type), **columns)
