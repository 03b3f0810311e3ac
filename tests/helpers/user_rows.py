"""What a user has in the database, row by row, to be compared with what another history left there."""

from collections.abc import Collection
from typing import Any

import psycopg

from memstore import ids

# But for when, in which order and in which backfill it was recorded, and for the outbox and receipts, whose ids are
# made by chance.
TABLES = {
    "users": "user_id",
    "conversations": "id",
    "messages": "id",
    "item_text": "item_id, chunk_index",
    "item_vectors": "item_id, chunk_index",
    "summaries": "id",
    "facts": "id",
    "fact_sources": "fact_id, message_id",
    "fact_changes": "id",
    "derivations": "conversation_id, deriver",
    "documents": "id",
    "document_vectors": "id, path",
}
CLOCKS = [
    "recorded_at",
    "created_at",
    "updated_at",
    "last_seen",
    "closes_at",
    "pending_since",
    "number",
    "last_chunk",
    "backfill",
]


def rows(url: str, *users: str, without: Collection[str] = ()) -> dict[str, list[dict[str, Any]]]:
    """Give every row of the users, table by table, without those of some tables."""
    found: dict[str, list[dict[str, Any]]] = {}
    with psycopg.connect(url, autocommit=True) as connection:
        for user in users:
            identity = str(ids.user_id(user))
            for table, key in ((table, key) for table, key in TABLES.items() if table not in without):
                statement = f"SELECT to_jsonb(t) - %s::text[] FROM {table} t WHERE user_id = %s ORDER BY {key}"
                found[f"{user}: {table}"] = [row[0] for row in connection.execute(statement, [CLOCKS, identity])]
    return found
