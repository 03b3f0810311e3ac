"""Documents' texts embedded by another embedder than the one that serves, beside what that has made."""

from __future__ import annotations

import json
from uuid import UUID

from memstore._compat import to_thread
from memstore.derive.resources import Resources
from memstore.models import Json
from memstore.providers import Vectors
from memstore.store import documents, embedders
from memstore.store.database import Database, Transaction
from memstore.store.documents import Lacking

BATCH = 256  # texts: what is lost when this is killed


def whole_text(value: Json) -> str:
    """Give the text of all of a value, by which a document is found where it names none."""
    return json.dumps(value, ensure_ascii=False)


async def fill_documents(database: Database, resources: Resources, user: UUID, model: UUID) -> int:
    """Give texts of a user's documents the vectors that they lack; give how many were made.

    What is put anew meanwhile is looked for again. Who writes waits for a batch to be stored, and not for the embedder.
    """
    made = 0
    while True:
        async with database.scope(user) as scope:
            batch = await documents.lacking(scope, model, limit=BATCH)
        if not batch:
            return made
        found = await to_thread(_embedded, resources, batch)
        async with database.scope(user) as scope:
            await embedders.lock(scope)
            made += await documents.add_vectors(scope, found, model)


async def fill_rest(scope: Transaction, resources: Resources, model: UUID) -> int:
    """Do the same while nobody else writes vectors of this user: the row is locked."""
    made = 0
    while batch := await documents.lacking(scope, model, limit=BATCH):
        made += await documents.add_vectors(scope, await to_thread(_embedded, resources, batch), model)
    return made


def _embedded(resources: Resources, batch: list[Lacking]) -> list[tuple[Lacking, Vectors]]:
    texts = [whole_text(one.value or {}) if one.text is None else one.text for one in batch]
    vectors = zip(batch, resources.embed(texts), strict=True)
    return [(one, vector) for one, vector in vectors if vector is not None]
