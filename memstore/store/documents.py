"""Documents: JSON values by namespace and key, the vectors of their texts, and for how long they live."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, NamedTuple
from uuid import UUID

from memstore import ids
from memstore.models import Document, Json, Namespace, NewDocument
from memstore.providers import Vectors
from memstore.store.database import Transaction
from memstore.store.sql import statements

SQL = statements("documents")
Distance = Literal["cosine", "l2", "inner_product"]


@dataclass(frozen=True, slots=True)
class Match:
    """Labels with which a namespace begins or, `at_end`, ends; "*" is any one."""

    path: Sequence[str]
    at_end: bool = False


class MissingVector(NamedTuple):
    """A text of a document without a vector of an embedder; None for the whole value."""

    id: UUID
    path: str
    text: str | None
    value: Json | None


async def put(
    tx: Transaction, new: Sequence[NewDocument], vectors: Sequence[Mapping[str, Vectors]], model: UUID
) -> None:
    """Store documents, replacing those of the same names; the vectors of their texts by path are of this model."""
    rows: list[dict[str, Any]] = []
    for document in new:
        id = ids.document_id(tx.user_id, document.namespace, document.key)
        rows.append(
            {
                "id": id,
                "namespace": list(document.namespace),
                "key": document.key,
                "value": document.value,
                "ttl": document.ttl,
            }
        )
    await tx.run_many(SQL["put"], rows)
    await tx.run(SQL["remove_vectors"], ids=[row["id"] for row in rows])
    places = [
        {
            "id": row["id"],
            "path": path,
            "model_id": model,
            "embedding": vector,
            "text": (document.texts or {}).get(path),
        }
        for row, document, by_path in zip(rows, new, vectors, strict=True)
        for path, vector in by_path.items()
    ]
    await tx.run_many(SQL["add_vector"], places)


async def lacking_texts(tx: Transaction, model: UUID, *, limit: int) -> list[MissingVector]:
    """Return texts with a vector of another model of the store and none of this one."""
    return await tx.all(SQL["lacking"], MissingVector, model_id=model, limit=limit)


async def count_lacking(tx: Transaction, model: UUID) -> int:
    """Return how many texts lack one."""
    return await tx.value(SQL["count_lacking"], int, model_id=model) or 0


async def add_vectors(tx: Transaction, made: Sequence[tuple[MissingVector, Vectors]], model: UUID) -> int:
    """Store vectors of texts that are still as they were read; return how many."""
    ids = sorted({text.id for text, _ in made})
    await lock(tx, ids)
    there = {
        (text.id, text.path): text
        for text in await tx.all(SQL["still_lacking"], MissingVector, model_id=model, ids=ids)
    }
    rows = [
        {"id": text.id, "path": text.path, "model_id": model, "embedding": vector, "text": text.text}
        for text, vector in made
        if there.get((text.id, text.path)) == text
    ]
    return await tx.run_many(SQL["add_vector"], rows)


async def remove_model(tx: Transaction, model: UUID) -> int:
    """Remove the vectors of a retired model, but of texts that the active one has none of; return how many."""
    return await tx.run(SQL["remove_model"], model_id=model)


async def remove(tx: Transaction, ids: Sequence[UUID]) -> int:
    await tx.run(SQL["remove_vectors"], ids=list(ids))
    return await tx.run(SQL["remove"], ids=list(ids))


async def expire(tx: Transaction) -> int:
    return await tx.run(SQL["expire"])


async def refresh(tx: Transaction, rows: Iterable[Document], *, expired: bool) -> None:
    living = [ids.document_id(tx.user_id, row.namespace, row.key) for row in rows if row.expires_at is not None]
    if living:
        await tx.run(SQL["refresh"], ids=living, expired=expired)


async def lock(tx: Transaction, ids: Sequence[UUID]) -> list[Document]:
    """Return these documents, locked until the transaction ends; missing ones are left out."""
    return await tx.all(SQL["lock"], _document, ids=list(ids))


async def documents(tx: Transaction, ids: Sequence[UUID], *, expired: bool = False) -> list[Document]:
    return await tx.all(SQL["documents"], _document, ids=list(ids), expired=expired)


async def latest(tx: Transaction, page: Json) -> list[Document]:
    """Return documents, the latest change first; `page` are the values that the statement takes."""
    return await tx.all(SQL["latest"], _document, **page)


async def nearest(tx: Transaction, page: Json, question: Vectors, model: UUID, distance: Distance) -> list[Document]:
    """Return documents that have vectors of this model, the nearest first; a document is as near as its nearest text.

    Scores: the cosine, the inner product, or the negative Euclidean distance.
    """
    return await tx.all(SQL["nearest"], _document, question=question, model_id=model, distance=distance, **page)


async def namespaces(
    tx: Transaction, matches: Sequence[Match], depth: int | None, limit: int, offset: int, *, expired: bool = False
) -> list[Namespace]:
    """Return the namespaces that match, in order, cut to a depth."""
    asked = {"all": [asdict(match) for match in matches]}
    page = {"depth": depth, "limit": limit, "offset": offset, "expired": expired}
    return [tuple(labels) for labels in await tx.column(SQL["namespaces"], matches=asked, **page)]


def _document(namespace: list[str], **columns: Any) -> Document:
    return Document(tuple(namespace), **columns)
