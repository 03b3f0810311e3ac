"""The embedder that is active for a user; another process may change it meanwhile."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol, TypeVar
from uuid import UUID

from memstore._compat import to_thread
from memstore.derive.dependencies import Dependencies
from memstore.store import embedding_models
from memstore.store.database import Database
from memstore.store.embedding_models import Model, ModelChanged

T = TypeVar("T", covariant=True)


async def with_active_embedder(database: Database, dependencies: Dependencies, models: Sequence[Model]) -> Dependencies:
    """Return dependencies with the embedder that is active for a user who has these models.

    Loading it may take seconds. Raises `EmbedderMismatch` if none may be used.
    """
    model = await embedding_models.resolve(database, models, dependencies.embedder)
    if model is None:
        return dependencies
    embedder = await to_thread(dependencies.exactly, model.name, model.dimensions)
    return replace(dependencies, embedder=embedder)


class EmbeddingTask(Protocol[T]):
    """Makes something with vectors for a user, and stores it."""

    async def __call__(self, dependencies: Dependencies, /) -> T:
        """Raise `OtherServes` if another embedder is active by the time of storing."""


async def run_with_active_embedder(
    database: Database, dependencies: Dependencies, user: UUID, task: EmbeddingTask[T]
) -> T:
    """Return the task's result; the task is repeated if another embedder becomes active meanwhile."""
    while True:
        async with database.user_transaction(user, [embedding_models.MODELS]) as scope:
            [models] = scope.first
        try:
            return await task(await with_active_embedder(database, dependencies, models))
        except ModelChanged:
            continue
