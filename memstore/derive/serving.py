"""What is made for a user is made with the embedder that serves the user; which one, others may change meanwhile."""

from __future__ import annotations

from typing import Protocol, TypeVar
from uuid import UUID

from memstore._compat import to_thread
from memstore.derive.resources import Resources
from memstore.store import embedders
from memstore.store.database import Database
from memstore.store.embedders import OtherServes

T = TypeVar("T", covariant=True)


class Making(Protocol[T]):
    """Makes something for a user, with vectors, and stores it."""

    async def __call__(self, resources: Resources) -> T:
        """Make it; raises `OtherServes` where another embedder serves by the time at which it is stored."""


async def resources_for(database: Database, resources: Resources, user: UUID) -> Resources:
    """Give the resources with the embedder that serves a user; raises `EmbedderMismatch` where none may."""
    async with database.scope(user, first=embedders.models) as scope:
        known = await embedders.models(scope)
    model = await embedders.chosen(database, known, resources.embedder)
    return resources if model is None else await to_thread(resources.by, model.name, model.dimensions)


async def made_for(database: Database, resources: Resources, user: UUID, make: Making[T]) -> T:
    """Give what is made for a user; where another embedder has come to serve meanwhile, it is made again."""
    while True:
        try:
            return await make(await resources_for(database, resources, user))
        except OtherServes:
            continue
