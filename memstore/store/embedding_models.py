"""The embedding models of a store: which is active, its lock, and the switch to another.

The active model embeds every question and new chunk, whatever the settings say. A migration makes vectors of another
(building), and changes one row when all users have them. Those of the former one (retired) are kept until cleaned.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict
from typing import Any
from uuid import UUID

from psycopg import AsyncConnection

from memstore._compat import to_thread
from memstore.errors import Conflict, EmbedderMismatch
from memstore.providers import Embedder, EmbedderLoader, setting_of
from memstore.store.database import Database, Transaction, read_all
from memstore.store.rows import EmbeddingModel, ModelState, model_id
from memstore.store.sql import statements

SQL = statements("embedding_models")


class ModelChanged(Exception):
    """Another model is active than the one that made these vectors, which are dropped: embed again."""


MODELS = read_all(SQL["models"], EmbeddingModel)


def active_model(models: Sequence[EmbeddingModel]) -> EmbeddingModel | None:
    return next((model for model in models if model.state == "serving"), None)


async def load_active_embedder(database: Database, setting: Embedder | None, load: EmbedderLoader) -> Embedder | None:
    """Return the embedder of the active model; that of the settings where none is active, and None where it is None.

    Raises `EmbedderMismatch` where the settings name a model that was never the store's, or it cannot be had.
    """
    if setting is None:
        return None
    async with database.admin_transaction() as tx:
        models = await tx.get(MODELS)
    active = active_model(models)
    if active is None or active.id == model_id(setting):
        return setting
    if model_id(setting) not in {model.id for model in models}:
        raise EmbedderMismatch(
            f"The vectors of this store are made by {active.name!r}, and the embedder is set to {setting.name!r}; they "
            f"do not mix. Set embedder to {setting_of(active.name)!r} (settings, or MEMSTORE_EMBEDDER), or migrate: "
            f"memstore embeddings migrate --to {setting_of(setting.name)}"
        )
    return await to_thread(load, active.name, active.dimensions)


def ensure_active(models: Sequence[EmbeddingModel], model: UUID) -> None:
    """Raise `ModelChanged` if another model is active than the one of some vectors."""
    active = active_model(models)
    if active is not None and active.id != model:
        raise ModelChanged


async def lock(tx: Transaction, model: EmbeddingModel | None, *, for_documents: bool = False) -> None:
    """Keep a model active until the transaction ends, which writes vectors of it; the first of a store becomes active.

    A migration sees that documents were written, whose user is locked, as it sees later chunks. Raises `ModelChanged`
    where another model is active, and `EmbedderMismatch` where one is and there is none to write with.
    """
    if model is not None and tx.embedding_model == model.id:
        return
    await tx.read_together([read_all(SQL["share"], dict), MODELS])
    models = tx.result(MODELS)
    if active_model(models) is None and model is not None:
        await tx.run(SQL["add_first"], id=model.id, name=model.name, dimensions=model.dimensions)
        # Another process may have been first.
        models = await tx.get(MODELS)
    active = active_model(models)
    if model is not None:
        ensure_active(models, model.id)
        tx.embedding_model = model.id
    elif active is not None:
        raise EmbedderMismatch(
            f"The vectors of this store are made by {active.name!r}, and the embedder is set to none: new chunks "
            f"would have no vector. Set embedder to {setting_of(active.name)!r} (settings, or MEMSTORE_EMBEDDER)."
        )
    if for_documents and any(other.state == "building" for other in models):
        await tx.run(SQL["skip_number"])


async def begin(database: Database, target: EmbeddingModel) -> EmbeddingModel:
    """Let vectors of the target be made while the active model goes on; return the active model.

    If the target is active, a migration away from it is given up; where none is, it is active at once. Raises
    `Conflict` if a migration to a third model is not done.
    """
    async with _writers_locked_out(database) as connection:
        models = await _read(connection)
        active = active_model(models)
        if active is not None and active.id == target.id:
            for model in models:
                if model.state == "building":
                    await _change(connection, model, "retired")
            return active
        _ensure_none_building(models, but=target.id)
        await _change(connection, target, "building" if active else "serving")
    return active or target


@asynccontextmanager
async def switch(database: Database, target: EmbeddingModel) -> AsyncIterator[None]:
    """Keep every writer of vectors waiting, and make the target active at the end, if nothing is raised.

    Recall waits for nothing. The database is to be one of `separate_pool`: writers who are kept waiting may hold all
    connections of the other.
    """
    async with _writers_locked_out(database) as connection:
        yield
        models = await _read(connection)
        if not any(model.id == target.id and model.state != "retired" for model in models):
            raise Conflict(f"Another process has ended this migration to {target.name!r}: memstore embeddings status")
        active = active_model(models)
        if active is not None:
            await _change(connection, active, "retired")
        await _change(connection, target, "serving")


@asynccontextmanager
async def advisory_lock(database: Database) -> AsyncIterator[None]:
    """Keep other processes from migrating embeddings meanwhile; raises `Conflict` where one does.

    The lock is that of a transaction, which is open for as long: killed, a process lets go of it.
    """
    async with database.owner_transaction() as connection:
        await connection.execute(SQL["for_hours"])
        row = await (await connection.execute(SQL["alone"])).fetchone()
        if row is None or not row[0]:
            raise Conflict("Embeddings are being migrated by another process: let it end, or stop it, then try again.")
        yield


async def read_retired(database: Database) -> list[UUID]:
    """Return the models that are active no more. Raises `Conflict` while a migration is not done."""
    async with database.admin_transaction() as tx:
        models = await tx.get(MODELS)
    _ensure_none_building(models)
    return [model.id for model in models if model.state == "retired"]


def _ensure_none_building(models: Sequence[EmbeddingModel], but: UUID | None = None) -> None:
    if names := [model.name for model in models if model.state == "building" and model.id != but]:
        raise Conflict(
            f"The vectors by {names[0]!r} are not done: finish that with memstore embeddings migrate --to {names[0]}, "
            "or give it up with a migration to the active embedder."
        )


@asynccontextmanager
async def separate_pool(database: Database) -> AsyncIterator[Database]:
    """Open the same database with connections of its own."""
    separate = Database(database.url, 2, max_chunks=database.max_chunks)
    await separate.open()
    try:
        yield separate
    finally:
        await separate.close()


@asynccontextmanager
async def _writers_locked_out(database: Database) -> AsyncIterator[AsyncConnection[Any]]:
    """Open a transaction on a connection of its own that waits for writers of vectors, and keeps others waiting."""
    async with database.owner_transaction() as connection:
        if database.capabilities.role:
            await database.take_role(connection)
        await connection.execute(SQL["for_minutes"])
        await connection.execute(SQL["exclude"])
        yield connection


async def _read(connection: AsyncConnection[Any]) -> list[EmbeddingModel]:
    return [EmbeddingModel(*row) for row in await (await connection.execute(SQL["models"])).fetchall()]


async def _change(connection: AsyncConnection[Any], model: EmbeddingModel, state: ModelState) -> None:
    await connection.execute(SQL["change"], asdict(model) | {"state": state})
