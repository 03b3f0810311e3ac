"""What a user has in the database, row by row, to be compared with what another history left there; invented rows."""

from collections.abc import Collection
from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4

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


def add_missing_rows(connection: psycopg.Connection[Any], user: UUID, names: Collection[str] = ()) -> None:
    """Add a row of the user to each table that has none, or of these: nothing else makes one in a test."""
    for table in names or tables.tables_of("user", "kept"):
        [(count,)] = connection.execute(f"select count(*) from {table} where user_id = %s", [user]).fetchall()
        if not count:
            _add_row(connection, table, user)


def _add_row(connection: psycopg.Connection[Any], table: str, user: UUID) -> None:
    """Add a row of a user: with the keys of a message, a conversation and so on of this user, the rest invented."""
    values: dict[str, object] = {"user_id": user}
    keys = connection.execute(
        """select confrelid::regclass::text,
                  array(select a.attname::text from unnest(k.conkey) with ordinality u (n, i)
                        join pg_attribute a on a.attrelid = k.conrelid and a.attnum = u.n order by i),
                  array(select a.attname::text from unnest(k.confkey) with ordinality u (n, i)
                        join pg_attribute a on a.attrelid = k.confrelid and a.attnum = u.n order by i)
           from pg_constraint k where k.conrelid = %s::regclass and k.contype = 'f'""",
        [table],
    ).fetchall()
    for parent, columns, of_parent in keys:
        row = connection.execute(f"select {', '.join(of_parent)} from {parent} where user_id = %s limit 1", [user])
        values |= dict(zip(columns, row.fetchone() or (), strict=True))
    needed = connection.execute(
        r"""select a.attname, format_type(a.atttypid, null),
                   (select substring(pg_get_constraintdef(k.oid) from 'ARRAY\[''(\w+)''') from pg_constraint k
                    where k.conrelid = a.attrelid and k.contype = 'c' and k.conkey = array[a.attnum] limit 1)
            from pg_attribute a
            where a.attrelid = %s::regclass and a.attnum > 0 and not a.attisdropped and a.attnotnull
              and not a.atthasdef""",
        [table],
    ).fetchall()
    time = datetime(2024, 1, 1, tzinfo=UTC)
    invented = {"uuid": uuid4(), "text": "x", "jsonb": "{}", "bytea": b"", "text[]": [], "date": time.date()}
    invented["timestamp with time zone"] = time
    for column, kind, allowed in needed:
        values.setdefault(column, allowed or invented.get(kind, 1))
    places = ", ".join(["%s"] * len(values))
    connection.execute(f"insert into {table} ({', '.join(values)}) values ({places})", list(values.values()))
