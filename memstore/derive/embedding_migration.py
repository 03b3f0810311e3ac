"""Replaces the embedder of users while recall goes on: new vectors are made, then one user after another is switched.

No state is kept: the database says which vectors are missing. Killed anywhere and run again, it goes on. Recall uses
the old vectors until one transaction makes the new ones active.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from uuid import UUID

from memstore._compat import to_thread
from memstore.derive.chunks import document_text
from memstore.derive.dependencies import Dependencies
from memstore.errors import Conflict
from memstore.models import ChunkKey, EmbeddingStatus, MigrationReport, Tier
from memstore.providers import Embedder, Vectors
from memstore.store import chunks, documents, embedding_models, erasure, messages, postings, vector_indexes
from memstore.store.chunks import BUILDING, RETIRED, STATES, Model, model_id, speaker_prefixed
from memstore.store.database import Database, Transaction
from memstore.store.embedding_models import ChunkWithoutVector
from memstore.store.errors import ConcurrentUpdate

BATCH = 256  # chunks or documents: at most so many are lost when this is killed

Progress = Callable[[int, int], None]  # chunks done, chunks in all


async def migrate(
    database: Database, dependencies: Dependencies, target: Embedder, progress: Progress
) -> MigrationReport:
    """Make an embedder active for every user; return how many were moved, and the vectors made.

    Users for whom it is get the vectors that they lack, as of chunks that were derived without an embedder. Users who
    come meanwhile are moved too. Raises `Conflict` if another process migrates, or if a migration to a third embedder
    is not done.
    """
    model = Model(model_id(target), target.name, target.dimensions)
    by_target = replace(dependencies, embedder=target)
    counts: Counter[str] = Counter()

    def advance(vectors: int) -> None:
        counts["done"] += vectors
        progress(counts["done"], max(counts["done"], counts["total"]))

    async with embedding_models.advisory_lock(database):
        while missing := await _begin(database, model):
            counts.update(users=len(missing), total=sum(missing.values()))
            for user in missing:
                await _move(database, by_target, user, model, advance)
    return MigrationReport(counts["users"], counts["done"])


async def _begin(database: Database, model: Model) -> dict[UUID, int]:
    """Let vectors of a model be made for all whom it does not serve; return how many vectors each of them lacks.

    For all before the first: so stores that are set to the new embedder already are served by the old one until then.
    """
    missing = {}
    async for user, _ in messages.everybody(database):
        async with database.user_transaction(user) as tx:
            if await embedding_models.begin(tx, model):
                missing[user] = await _count_missing(tx, model.id)
    return missing


async def _count_missing(tx: Transaction, model: UUID) -> int:
    counts = await embedding_models.count_vectors(tx)
    chunks = sum(count.chunks - count.vectors for count in counts if count.id == model)
    return chunks + await documents.count_lacking(tx, model)


async def _move(
    database: Database, dependencies: Dependencies, user: UUID, model: Model, advance: Callable[[int], None]
) -> None:
    while True:
        await _fill_chunks(database, dependencies, user, model.id, advance)
        await _fill_documents(database, dependencies, user, model.id, advance)
        async with database.user_transaction(user) as tx:
            reach = await postings.reach(tx)
        # The index is made before it is used, and after it was filled: 60 times quicker.
        if reach.chunks > database.max_chunks and vector_indexes.is_possible(model.dimensions):
            await vector_indexes.build(database, user, model.id, model.dimensions, reach.chunks)
        async with database.user_transaction(user) as tx:
            await chunks.lock_user(tx)
            bare = await embedding_models.chunks_without_vector(tx, model.id, limit=BATCH)
            texts = await documents.lacking_texts(tx, model.id, limit=BATCH)
            if len(bare) + len(texts) >= BATCH:  # derivers are not to wait for that
                continue
            made = await chunks.add_vectors(tx, await to_thread(_embed_chunks, dependencies, bare), model.id)
            vectors = await to_thread(_embed_documents, dependencies, texts)
            advance(made + await documents.add_vectors(tx, vectors, model.id))
            await embedding_models.switch(tx, model)
        return


async def clean(database: Database) -> MigrationReport:
    """Remove vectors and indexes of retired embedders; return of how many users, and how many vectors.

    Raises `Conflict` while a migration is not done.
    """
    done: Counter[str] = Counter()
    async with embedding_models.advisory_lock(database):
        retired: list[tuple[UUID, list[Model]]] = []
        async for user, _ in messages.everybody(database):
            async with database.user_transaction(user) as tx:
                models = await chunks.read_models(tx)
            if building := [model.name for model in models if model.state == BUILDING]:
                raise Conflict(
                    f"Vectors by {building[0]!r} are in the making: finish that with memstore embeddings migrate "
                    f"--to {building[0]}, or give it up with a migration to the embedder that serves. Nothing was "
                    "removed."
                )
            retired.append((user, [model for model in models if model.state == RETIRED]))
        for user, models in retired:
            removed = await _clean_user(database, user, models) if models else 0
            done.update(users=removed > 0, vectors=removed)
    return MigrationReport(done["users"], done["vectors"])


async def _clean_user(database: Database, user: UUID, retired: Sequence[Model]) -> int:
    async with database.user_transaction(user) as tx:
        indexed = [model for model in retired if await vector_indexes.is_made(tx, model.id)]
    for model in indexed:  # first: else it would be changed for each vector
        await vector_indexes.drop(database, user, model.id)
    async with database.user_transaction(user) as tx:
        removed = await embedding_models.remove_retired(tx)
        for model in retired:
            removed += await documents.remove_model(tx, model.id)
        return removed


async def status(database: Database) -> list[EmbeddingStatus]:
    """Return each embedder by its state: how many users it has, their chunks and vectors, and what is missing."""
    totals: defaultdict[tuple[str, int, str], Counter[str]] = defaultdict(Counter)
    async for user, _ in messages.everybody(database):
        async with database.user_transaction(user) as tx:
            for model in await embedding_models.count_vectors(tx):
                missing = 0 if model.state == RETIRED else model.chunks - model.vectors
                total = totals[model.name, model.dimensions, model.state]
                total.update(users=1, chunks=model.chunks, vectors=model.vectors, missing=missing)
    statuses = [
        EmbeddingStatus(*key, *(total[kind] for kind in ("users", "chunks", "vectors", "missing")))
        for key, total in totals.items()
    ]
    return sorted(statuses, key=lambda one: (STATES.index(one.state), one.name, one.dimensions))


async def _fill_chunks(
    database: Database, dependencies: Dependencies, user: UUID, model: UUID, progress: Callable[[int], None]
) -> None:
    """Embed chunks that lack a vector of the model. No transaction is open while the embedder works."""
    after = 0
    while True:
        async with database.user_transaction(user, [erasure.VERSION]) as tx:
            [erasure_version] = tx.first
            batch = await embedding_models.chunks_without_vector(tx, model, limit=BATCH, after=after)
        vectors = await to_thread(_embed_chunks, dependencies, batch)
        try:
            async with erasure.transaction_if_unchanged(database, user, erasure_version) as tx:
                await embedding_models.add_missing(tx, vectors, model)
        except ConcurrentUpdate:  # something was erased meanwhile, maybe one of the chunks: look for the others again
            after = 0
            continue
        progress(len(batch))
        if len(batch) < BATCH:  # what comes meanwhile could be embedded for as long as somebody talks
            return
        after = batch[-1].number


def _embed_chunks(dependencies: Dependencies, chunks: Sequence[ChunkWithoutVector]) -> list[tuple[ChunkKey, Vectors]]:
    texts = [
        speaker_prefixed(chunk.speaker or "", chunk.text) if chunk.tier == Tier.MESSAGES else chunk.text
        for chunk in chunks
    ]
    vectors = zip(chunks, dependencies.embed(texts), strict=True)
    return [(ChunkKey(chunk.item_id, chunk.chunk_index), vector) for chunk, vector in vectors if vector is not None]


async def _fill_documents(
    database: Database, dependencies: Dependencies, user: UUID, model: UUID, progress: Callable[[int], None]
) -> None:
    """Embed texts of a user's documents that lack a vector.

    Documents that are put anew meanwhile are embedded again. A writer waits for a batch to be stored, not for the
    embedder.
    """
    while True:
        async with database.user_transaction(user) as tx:
            batch = await documents.lacking_texts(tx, model, limit=BATCH)
        if not batch:
            return
        vectors = await to_thread(_embed_documents, dependencies, batch)
        async with database.user_transaction(user) as tx:
            await chunks.lock_user(tx)
            made = await documents.add_vectors(tx, vectors, model)
        progress(made)
        if not made:  # the embedder refuses what is left
            return


def _embed_documents(
    dependencies: Dependencies, lacking: Sequence[documents.MissingVector]
) -> list[tuple[documents.MissingVector, Vectors]]:
    texts = [document_text(text.value or {}) if text.text is None else text.text for text in lacking]
    vectors = zip(lacking, dependencies.embed(texts), strict=True)
    return [(text, vector) for text, vector in vectors if vector is not None]
