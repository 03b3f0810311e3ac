"""Events for webhooks: the transaction of a change leaves them in a table, and a worker moves them into the queue.

An application may not touch the queue itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from uuid import UUID

from psycopg import AsyncConnection

from memstore.ids import uuid7
from memstore.models import Json, WebhookEvent
from memstore.store.sql import statements

SQL = statements("webhooks")


def make_event(kind: WebhookEvent, data: Json) -> Json:
    return {"id": str(uuid7()), "type": kind, "timestamp": datetime.now(UTC).isoformat(), "data": data}


async def write_wanted(connection: AsyncConnection, user_id: UUID, events: Sequence[Json]) -> None:
    """Write the events that a webhook wants. What the transaction does afterwards, it does as the operator."""
    async with connection.pipeline(), connection.cursor() as cursor:
        await cursor.execute(SQL["as_operator"])
        await cursor.execute(SQL["wanted"])
        wanted = {kind for (kind,) in await cursor.fetchall()}
        rows = [{"id": event["id"], "user": user_id, "body": event} for event in events if event["type"] in wanted]
        if rows:
            await cursor.executemany(SQL["add_event"], rows)
