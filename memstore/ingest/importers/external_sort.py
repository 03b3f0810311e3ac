"""What of a long file is too much for memory: counts of what came before, ids that follow from them, order by time.

Kept in SQLite databases without a name, which live in memory while they are small, then in the system's temporary
folder, and are gone when they are closed. They hold nothing of the store, so their three statements stand here.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from hashlib import sha256
from typing import Any

from memstore.errors import InvalidInput


class Occurrences:
    """Counts equal things, in bounded memory however many there are."""

    def __init__(self) -> None:
        self._database = _open("create table seen (key blob primary key, count integer) without rowid")

    def __enter__(self) -> Occurrences:
        return self

    def __exit__(self, *_: object) -> None:
        self._database.close()

    def count(self, key: str) -> int:
        """Return how often this came until now, this time included."""
        place = sha256(key.encode("utf-8", "surrogatepass")).digest()[:16]
        statement = "insert into seen values (?, 1) on conflict (key) do update set count = count + 1 returning count"
        with _explain_full_disk():
            return int(self._database.execute(statement, (place,)).fetchone()[0])


def in_order(rows: Iterable[tuple[str, Any]]) -> Iterator[tuple[str, Any]]:
    """Yield rows of a key and of JSON by their keys, and equal ones as they came, in bounded memory."""
    with _explain_full_disk(), closing(_open("create table rows (key text, value text)")) as database:
        written = ((key, json.dumps(value)) for key, value in rows)
        database.executemany("insert into rows values (?, ?)", written)
        for key, value in database.execute("select key, value from rows order by key, rowid"):
            yield key, json.loads(value)


def derive_id(user: str | None, conversation: str, message: Mapping[str, Any], seen: Occurrences) -> str:
    """Return an id that follows from the message and from how many equal ones came before it."""
    said = [message.get(key) for key in ("role", "name", "content", "tool_calls", "tool_call_id", "occurred_at")]
    place = json.dumps([conversation, said], sort_keys=True, default=str)
    # The user counts but is no part of the id: a file has the same ids whether it or the caller names the user.
    count = seen.count(json.dumps([user, place]))
    return "line:" + sha256(json.dumps([place, count]).encode()).hexdigest()


def derive_name(messages: object, kind: str, seen: Occurrences) -> str:
    """Return a name that follows from a conversation's messages, and from how many equal ones came before it."""
    name = digest(messages)
    count = seen.count(name)
    return f"{kind}-{name}" + (f"-{count}" if count > 1 else "")


def digest(value: object) -> str:
    """Return a short name that follows from JSON: 20 hexadecimal digits."""
    return sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:20]


@contextmanager
def _explain_full_disk() -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise InvalidInput(f"the system's temporary folder has no room for notes on the file: {error}") from error


def _open(table: str) -> sqlite3.Connection:
    # A generator may be read by one thread after the other, never by two at once.
    database = sqlite3.connect("", isolation_level=None, check_same_thread=False)
    database.execute("pragma journal_mode = off")
    database.execute("pragma cache_size = -32768")  # kibibytes
    database.execute(table)
    database.execute("begin")
    return database
