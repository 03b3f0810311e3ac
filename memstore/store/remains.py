"""Remains: whether anything of what was erased still stands somewhere, asked in the user's own scope.

What is left beyond rows, in pages that no row uses and in the log of the server, `searching` looks for.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple
from uuid import UUID

from memstore.store.database import Transaction
from memstore.store.statements import statements

SQL = statements("remains")
TABLES = 18  # that a user has rows in


class Word(NamedTuple):
    """A word of an erased text, and in which row of which table it stands."""

    place: str
    id: UUID
    word: str


async def words(scope: Transaction, words: Sequence[str], doomed: Sequence[UUID]) -> list[Word]:
    """Give where words stand that no message says but those that are to go; in messages themselves is not looked."""
    if not words:
        return []
    found = [Word(*row) for row in await scope.tuples(SQL["words_left"], pattern=_pattern(words))]
    if not found:
        return []
    asked = _pattern({one.word for one in found})
    said = {word for (word,) in await scope.tuples(SQL["words_said"], pattern=asked, doomed=list(doomed))}
    return [one for one in found if one.word not in said]


def _pattern(words: Sequence[str] | set[str]) -> str:
    """Give a regular expression of Postgres for whole words, which are letters and digits."""
    return rf"\m({'|'.join(sorted(words, key=lambda word: (-len(word), word)))})\M"


async def ids(scope: Transaction, ids: Sequence[UUID]) -> dict[str, int]:
    """Give how many rows name these messages, facts or conversations, by table."""
    return dict(await scope.tuples(SQL["ids_left"], ids=list(ids), texts=[str(id) for id in ids]))


async def of_user(scope: Transaction) -> dict[str, int]:
    """Give how many rows the user has, by table, where there are any."""
    return {place: rows for place, rows in await scope.tuples(SQL["rows_of_user"]) if rows}
