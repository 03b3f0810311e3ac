"""Vectors that chunks of a user have or lack, by embedding model: what a migration makes, counts and removes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import NamedTuple
from uuid import UUID

from memstore.models import ChunkKey
from memstore.providers import Vectors
from memstore.store.chunks import add_vectors
from memstore.store.database import Database, Transaction
from memstore.store.sql import statements

SQL = statements("vectors")


class UserReach(NamedTuple):
    """A user, and the number of the last chunk; a written document raises it too, while a model is building."""

    id: UUID
    name: str
    last_chunk: int


async def read_reach(database: Database) -> AsyncIterator[UserReach]:
    """Return all users, sorted by name; no transaction is open in between."""
    after = ""
    while True:
        async with database.admin_transaction() as tx:
            page = await tx.all(SQL["reach"], UserReach, after=after, limit=1000)
        for user in page:
            yield user
        if not page:
            return
        after = page[-1].name


class ChunkWithoutVector(NamedTuple):
    """A chunk without a vector, its number, and its part of the item's text."""

    number: int
    item_id: UUID
    chunk_index: int
    tier: str
    speaker: str | None
    text: str


async def chunks_without_vector(tx: Transaction, model: UUID, *, limit: int, after: int) -> list[ChunkWithoutVector]:
    """Return chunks after a number that have no vector of this model, in the order of numbers.

    No new number comes below one that was seen, so later chunks stand after the last one.
    """
    return await tx.all(SQL["lacking"], ChunkWithoutVector, model_id=model, limit=limit, after=after)


async def add_missing(
    tx: Transaction, vectors: Sequence[tuple[ChunkKey, Vectors]], model: UUID, *, is_active: bool
) -> int:
    """Store vectors of chunks that had none; of the active model, arrays in every process are read anew."""
    if is_active and vectors:
        await tx.run(SQL["count_fill"])
    return await add_vectors(tx, vectors, model)


async def count(tx: Transaction) -> list[tuple[UUID, str, int, str, int, int]]:
    """Return each model of the store, the user's chunks, and the vectors of these."""
    return await tx.tuples(SQL["counts"])


async def remove(tx: Transaction, model: UUID) -> int:
    return await tx.run(SQL["remove"], model_id=model)
