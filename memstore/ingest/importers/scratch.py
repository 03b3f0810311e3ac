"""What of a long file is too much for memory: counts of what came before, and an order by time.

Kept in SQLite databases without a name, which live in memory while they are small, then in the system's temporary
folder, and are gone when they are closed. They hold one reader's notes and nothing of the store, so their three
statements stand here.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from hashlib import sha256
from typing import Any

from memstore.errors import InvalidInput


class Occurrences:
    """Counts equal things, in bounded memory however many there are."""

    def __init__(self) -> None:
        self._notes = _notes("create table seen (key blob primary key, count integer) without rowid")

    def __enter__(self) -> Occurrences:
        return self

    def __exit__(self, *_: object) -> None:
        self._notes.close()

    def count(self, key: str) -> int:
        """Say how often this came until now, this time included."""
        # Half a digest is kept; two that met by chance would still be told apart by their numbers.
        place = sha256(key.encode("utf-8", "surrogatepass")).digest()[:16]
        statement = "insert into seen values (?, 1) on conflict (key) do update set count = count + 1 returning count"
        with _room():
            return int(self._notes.execute(statement, (place,)).fetchone()[0])


def in_order(rows: Iterable[tuple[str, Any]]) -> Iterator[tuple[str, Any]]:
    """Give rows of a key and of JSON by their keys, and equal ones as they came, in bounded memory."""
    with _room(), closing(_notes("create table rows (key text, value text)")) as notes:
        written = ((key, json.dumps(value)) for key, value in rows)
        notes.executemany("insert into rows values (?, ?)", written)
        for key, value in notes.execute("select key, value from rows order by key, rowid"):
            yield key, json.loads(value)


@contextmanager
def _room() -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise InvalidInput(f"the system's temporary folder has no room for notes on the file: {error}") from error


def _notes(table: str) -> sqlite3.Connection:
    # A generator may be read by one thread after the other, never by two at once.
    notes = sqlite3.connect("", isolation_level=None, check_same_thread=False)
    notes.execute("pragma journal_mode = off")
    notes.execute("pragma cache_size = -32768")  # kibibytes
    notes.execute(table)
    notes.execute("begin")
    return notes
