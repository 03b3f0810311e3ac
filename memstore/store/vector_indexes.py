"""An HNSW over the vectors of one user, for users with very many chunks: made, looked for, asked and dropped here.

Never one over all users: behind a filter by user it has a recall of 0.08. As its predicate names the user and the
embedder, statements name them as literals. While it is missing, invalid or being made, recall scans: slower, not wrong.
"""

from __future__ import annotations

from typing import Any, LiteralString
from uuid import UUID

from psycopg import AsyncClientCursor, AsyncConnection
from psycopg.sql import SQL as Composable, Identifier, Literal

from memstore.models import ChunkKey
from memstore.providers import Vectors
from memstore.store.database import Database, Transaction
from memstore.store.embedding_models import MODELS
from memstore.store.sql import statements

SQL = statements("vector_indexes")


def name_of(user_id: UUID, model: UUID) -> str:
    return f"hnsw_{user_id.hex}_{model.hex[:12]}"


def is_possible(dimensions: int) -> bool:
    """Whether pgvector makes an index of vectors of so many dimensions, as half-precision numbers."""
    return 0 < dimensions <= 4000


async def is_ready(tx: Transaction, model: UUID) -> bool:
    """Return whether the user's vectors by this model have an index that can be asked."""
    return await tx.value(SQL["state"], bool, name=name_of(tx.user_id, model)) or False


async def is_made(tx: Transaction, model: UUID) -> bool:
    """Return whether there is an index of the user's vectors by this model, whole or not."""
    return bool(await tx.tuples(SQL["state"], name=name_of(tx.user_id, model)))


async def nearest(tx: Transaction, query: Vectors, model: UUID, limit: int) -> list[ChunkKey]:
    """Return the chunks nearest to a vector, about: nearly all are found, the fewer the more there are (scale.md)."""
    # ef_search: recall@20 of 0.99 with 500,000 chunks; 400 gives 0.987 in two thirds of the time, 200 gives 0.91.
    # pgvector allows 1,000.
    effort = min(max(800, limit), 1000)
    values = {"model_id": str(model), "dimensions": len(query), "effort": effort, "limit": limit}
    return [ChunkKey(*row) for row in await literally(tx, SQL["nearest"], query=query, **values)]


async def literally(tx: Transaction, statement: LiteralString, **values: Any) -> list[Any]:
    """Return the rows of the one query among statements that are sent as text, with literals for values.

    For what a parameter cannot say: SET, and the dimensions of a type. On a Citus each is a message of its own, as when
    a transaction begins.
    """
    rows: list[Any] = []
    async with AsyncClientCursor(tx.connection) as cursor:
        for message in statement.split(";\n") if tx.citus else [statement]:
            await cursor.execute(message, {**values, "user_id": str(tx.user_id)})
            while cursor.description is None and cursor.nextset():
                pass
            if cursor.description is not None:
                rows = await cursor.fetchall()
    return rows


async def indexed_models(tx: Transaction) -> list[UUID]:
    """Return the embedders whose vectors of the user have an index, whole or not."""
    return [model.id for model in await tx.get(MODELS) if await is_made(tx, model.id)]


async def build(database: Database, user_id: UUID, model: UUID, dimensions: int, chunks: int) -> bool:
    """Make the index of a user's vectors, where it is missing; False where this login may not.

    A minute and more for 100,000 chunks. Reads and writes go on. An invalid index of an earlier try is replaced; one
    that another process builds is left to it.
    """
    name = name_of(user_id, model)
    # The login keeps the lock.
    async with database.owner_transaction() as login:
        if not await _first(login, SQL["owner"]):
            return False
        is_mine = await _first(login, SQL["building_lock"], name=name)
        # Who had the lock before has made it.
        if not is_mine or await _first(login, SQL["state"], name=name):
            return True
        async with database.raw_connection() as session:
            # Else the memory would stay with a session that others use.
            if not database.capabilities.pooled:
                # A gigabyte holds the graph of 900,000 chunks with 384 dimensions.
                kilobytes = min(chunks * (2 * dimensions + 400) // 1024 + 2**16, 2**20)
                await session.execute(SQL["building_memory"], {"kilobytes": kilobytes})
            await session.execute(_named(database, SQL["drop"], name))
            literals = {"user_id": Literal(user_id), "model_id": Literal(model), "dimensions": Literal(dimensions)}
            await session.execute(_named(database, SQL["build"], name, **literals))
    return True


async def drop(database: Database, user_id: UUID, model: UUID) -> bool:
    """Drop the index of a user's vectors; False where this login may not, or another process is at it."""
    name = name_of(user_id, model)
    async with database.owner_transaction() as login:
        if not (await _first(login, SQL["owner"]) and await _first(login, SQL["building_lock"], name=name)):
            return False
        async with database.raw_connection() as session:
            await session.execute(_named(database, SQL["drop"], name))
    return True


async def _first(connection: AsyncConnection[Any], statement: LiteralString, **values: Any) -> bool:
    row = await (await connection.execute(statement, values)).fetchone()
    return bool(row and row[0])


def _named(database: Database, statement: LiteralString, name: str, **literals: Any) -> Any:
    places = {"schema": database.capabilities.schema, "vectors": database.capabilities.vectors, "name": name}
    return Composable(statement).format(**{key: Identifier(value) for key, value in places.items()}, **literals)
