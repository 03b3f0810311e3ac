"""Vectors for units that have none of the present embedder: they were made while none was set."""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

from memstore.ingest.embed import said_by
from memstore.ingest.resources import Resources
from memstore.models import Key, Tier
from memstore.store import items
from memstore.store.database import Database
from memstore.store.items import Unembedded
from memstore.waiting import in_thread

BATCH = 256  # units: what is lost when this is killed


async def embed_missing(
    database: Database, resources: Resources, user: UUID, progress: Callable[[int], None] = lambda _: None
) -> int:
    """Embed every unit of a user that lacks a vector, a batch at a time; give how many that were.

    No transaction is open while the embedder works. Killed anywhere and run again, it goes on with what is left. Calls
    `progress` with the number of each batch. Raises `EmbedderMismatch` where another embedder made vectors of the user.
    """
    made = 0
    while True:
        async with database.scope(user) as scope:
            model = await items.bind_embedder(scope, resources.embedder)
            batch = await items.unembedded(scope, model, limit=BATCH) if model is not None else []
        if not batch or model is None:
            return made
        vectors = await in_thread(resources.embed, [_text(one) for one in batch])
        found = [
            (Key(one.item_id, one.chunk), vector)
            for one, vector in zip(batch, vectors, strict=True)
            if vector is not None
        ]
        async with database.scope(user) as scope:
            made += await items.add_vectors(scope, found, model)
        progress(len(batch))


def _text(unit: Unembedded) -> str:
    """Give what a unit is embedded by."""
    return said_by(unit.speaker or "", unit.text) if unit.tier == Tier.MESSAGES else unit.text
