"""What a user has in the database, row by row, to be compared with what another history left there."""

from collections.abc import Collection
from typing import Any

import psycopg

from memstore import ids
from memstore.store import tables

# But for when, in which order and in which backfill it was recorded, and for earlier settings, whose ids are made by
# chance.
TABLES = [table.name for table in tables.TABLES if table.exported and table.name != "setting_changes"]
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
            for table in (table for table in TABLES if table not in without):
                statement = f"SELECT to_jsonb(t) - %s::text[] FROM {table} t WHERE user_id = %s ORDER BY 1"
                found[f"{user}: {table}"] = [row[0] for row in connection.execute(statement, [CLOCKS, identity])]
    return found
