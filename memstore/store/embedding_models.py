"""The embedders of users: one is active, another may replace it; their vectors are never mixed.

A user's active embedder embeds questions and new chunks. Vectors of another are made meanwhile (building), and one
transaction switches the two. The former one is retired, and its vectors are kept until they are cleaned, so that a
migration back only makes those of later chunks. The database decides, not the embedder that a store was opened with, so
running processes go on as well.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import NamedTuple
from uuid import UUID

from memstore.errors import Conflict, EmbedderMismatch
from memstore.models import ChunkKey
from memstore.providers import Embedder, Vectors, setting_of
from memstore.store import chunks
from memstore.store.chunks import ACTIVE, BUILDING, MODELS, RETIRED, Model, active_model, add_vectors, model_id
from memstore.store.database import Database, Transaction, read_all
from memstore.store.errors import ConcurrentUpdate
from memstore.store.sql import statements

SQL = statements("embedding_models")


class ModelChanged(ConcurrentUpdate):
    """Another embedder serves by now than the one that made these vectors, which are dropped."""


async def resolve(database: Database, models: Sequence[Model], embedder: Embedder | None) -> Model | None:
    """Return the embedder that serves a user in place of a store's `embedder`; None where that one does, or none yet.

    Raises `EmbedderMismatch` where nobody's vectors were moved from the one to the other: a wrong setting, it seems.
    Without an embedder of its own, a store would add chunks that are found by words alone, unlike all the rest.
    """
    there = active_model(models)
    if there is None or there.id == model_id(embedder):
        return None
    if embedder is None:
        raise EmbedderMismatch(
            f"This user's vectors were made by {there.name!r} and the store is set to none: new chunks would have no "
            f"vector. Set embedder to {setting_of(there.name)!r} (settings, or MEMSTORE_EMBEDDER)."
        )
    if model_id(embedder) not in {model.id for model in models} and not await _moved(
        database, model_id(embedder), there.id
    ):
        raise EmbedderMismatch(
            f"This user's vectors were made by {there.name!r} and the store is set to {embedder.name!r}; they do not "
            f"mix. Set embedder to {setting_of(there.name)!r} (settings, or MEMSTORE_EMBEDDER), or migrate: "
            f"memstore embeddings migrate --to {embedder.name}"
        )
    return there


async def _moved(database: Database, model: UUID, other: UUID) -> bool:
    async with database.admin_transaction() as tx:
        return await tx.value(SQL["moved"], bool, one=model, other=other) or False


async def lock_and_read(tx: Transaction) -> tuple[bool, list[Model]]:
    """Lock; return whether the user has chunks, and the embedders as they then are, in one round trip."""
    locked, models = await tx.all_together([read_all(chunks.SQL["lock"], dict), MODELS])
    return any(user["chunks"] for user in locked), models


async def lock_active(tx: Transaction, embedder: Embedder | None) -> UUID | None:
    """Return the id under which vectors of the embedder that serves are to be written, None for none.

    It goes on serving until the transaction ends; the first one to come does from now on. Raises `ModelChanged` where
    `embedder` is not the one, and `EmbedderMismatch` where there is none to write with.
    """
    _, models = await lock_and_read(tx)
    there = active_model(models)
    if embedder is None:
        if there is not None:
            raise EmbedderMismatch(f"This user's vectors are made by {there.name!r}: new chunks would have none.")
        return None
    model = model_id(embedder)
    if there is not None and there.id != model:
        raise ModelChanged
    if there is None:
        await tx.run(SQL["add"], id=model, name=embedder.name, dimensions=embedder.dimensions, state=ACTIVE)
    return model


class ChunkWithoutVector(NamedTuple):
    """A chunk without a vector, its number, and its part of the item's text."""

    number: int
    item_id: UUID
    chunk_index: int
    tier: str
    speaker: str | None
    text: str


async def chunks_without_vector(
    tx: Transaction, model: UUID, *, limit: int, after: int = 0
) -> list[ChunkWithoutVector]:
    """Return chunks after a number that have no vector of this embedder, in the order of numbers.

    No new number comes below one that was seen, so later chunks stand after the last one.
    """
    return await tx.all(SQL["lacking"], ChunkWithoutVector, model_id=model, limit=limit, after=after)


async def add_missing(tx: Transaction, vectors: Sequence[tuple[ChunkKey, Vectors]], model: UUID) -> int:
    """Store vectors of chunks that had none; where this embedder serves, arrays in every process are read anew."""
    there = active_model(await chunks.read_models(tx))
    if there is not None and there.id == model:
        await _renew(tx, model)
    return await add_vectors(tx, vectors, model)


async def _renew(tx: Transaction, model: UUID) -> None:
    await tx.run(SQL["renew"], id=model)
    await tx.run(SQL["touch"])


async def begin(tx: Transaction, target: Model, *, after: int = 0) -> bool:
    """Let vectors of the target be made while the active embedder serves; False if there is nothing to do.

    If the target is active already, a migration away from it is given up, and chunks after a number
    that have no vector get theirs.
    Raises `Conflict` if vectors of a third one are in the making.
    """
    has_chunks, models = await lock_and_read(tx)
    there, begun = active_model(models), [model for model in models if model.state == BUILDING]
    if there is not None and there.id == target.id:
        for model in begun:
            await _change(tx, model, RETIRED)
        return bool(await chunks_without_vector(tx, target.id, limit=1, after=after))
    if other_names := [model.name for model in begun if model.id != target.id]:
        raise Conflict(
            f"Vectors by {other_names[0]!r} are in the making, and are not done: finish that with memstore embeddings "
            f"migrate --to {other_names[0]}, or give it up with a migration to the embedder that serves."
        )
    # The first to embed becomes active.
    if there is None and not has_chunks:
        return False
    await tx.run(SQL["add"], id=target.id, name=target.name, dimensions=target.dimensions, state=BUILDING)
    return True


async def switch(tx: Transaction, target: Model) -> None:
    """Let the target serve from now on: every chunk has its vector, and the user has been locked since that was seen.

    Derivers wait for that, and find that their vectors are of the other one; who asks sees the one or the other. Raises
    `Conflict` where somebody else has ended it.
    """
    _, models = await lock_and_read(tx)
    there = active_model(models)
    if not models:  # the user was erased meanwhile
        return
    if not any(model.id == target.id and model.state != RETIRED for model in models):
        raise Conflict(f"Another process has ended this migration to {target.name!r}: memstore embeddings status")
    if there is not None:
        await _change(tx, there, RETIRED)
    await _change(tx, target, ACTIVE)
    await _renew(tx, target.id)


async def remove_retired(tx: Transaction) -> int:
    """Remove the vectors of retired embedders; return how many.

    The embedders are still known to the user, so that a store that is set to one of them is served by the new one.
    """
    _, models = await lock_and_read(tx)
    retired = [model.id for model in models if model.state == RETIRED]
    return sum([await tx.run(SQL["remove_vectors"], model_id=model) for model in retired])


class VectorCount(NamedTuple):
    """An embedder of a user, with how many chunks the user has, and how many vectors of it."""

    id: UUID
    name: str
    dimensions: int
    state: str
    chunks: int
    vectors: int


async def count_vectors(tx: Transaction) -> list[VectorCount]:
    """Return how many vectors there are of each embedder of the user."""
    return await tx.all(SQL["counts"], VectorCount)


async def _change(tx: Transaction, model: Model, state: str) -> None:
    await tx.run(SQL["change"], id=model.id, state=state)


@asynccontextmanager
async def advisory_lock(database: Database) -> AsyncIterator[None]:
    """Keep other processes from migrating embeddings meanwhile; raises `Conflict` where one does.

    The lock is that of a transaction, which is open for as long: killed, a process lets go of it.
    """
    async with database.owner_transaction() as connection:
        row = await (await connection.execute(SQL["alone"])).fetchone()
        if row is None or not row[0]:
            raise Conflict("Embeddings are being migrated by another process: let it end, or stop it, then try again.")
        yield
