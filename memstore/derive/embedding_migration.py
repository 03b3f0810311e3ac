"""Replaces the embedder of users while recall goes on: new vectors are made, then one user after another is switched.

No state is kept: the database says which vectors are missing. Killed anywhere and run again, it goes on. Recall uses
the old vectors until one transaction makes the new ones active.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias
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
from memstore.store.documents import MissingVector
from memstore.store.embedding_models import ChunkWithoutVector
from memstore.store.errors import ConcurrentUpdate

# Chunks or documents: at most so many are lost when this is killed.
MAX_BATCH_ITEMS = 256

# Called with the chunks done and the chunks in all.
Progress = Callable[[int, int], None]
# Of documents, by their ids and paths.
RefusedTexts: TypeAlias = dict[tuple[UUID, str], MissingVector]


@dataclass(slots=True)
class _Counts:
    """The vectors made so far, and the texts that the embedder refuses."""

    progress: Progress
    user: str = ""
    total: int = 0
    vectors: int = 0
    refused: dict[str, None] = field(default_factory=dict)

    def add(self, vectors: int, refused: Iterable[str]) -> None:
        """Count what a batch made."""
        self.vectors += vectors
        self.refused.update(dict.fromkeys(f"{item} of {self.user}" for item in refused))
        done = self.vectors + len(self.refused)
        self.progress(done, max(done, self.total))


async def migrate(
    database: Database, dependencies: Dependencies, target: Embedder, progress: Progress
) -> MigrationReport:
    """Make an embedder active for every user; return how many were moved, and the vectors made.

    Users for whom it is get the vectors that they lack, as of chunks that were derived without an embedder. Users who
    come meanwhile are moved too. Texts that the embedder refuses get none, and are reported. Raises `Conflict` if
    another process migrates, or if a migration to a third embedder is not done.
    """
    model = Model(model_id(target), target.name, target.dimensions)
    by_target = replace(dependencies, embedder=target)
    counts, moved = _Counts(progress), dict[UUID, int]()
    async with embedding_models.advisory_lock(database):
        while missing := await _begin(database, model, moved):
            counts.total += sum(missing.values())
            for user, counts.user in missing:
                moved[user] = await _move(database, by_target, user, model, counts)
    return MigrationReport(len(moved), counts.vectors, tuple(counts.refused))


async def _begin(database: Database, model: Model, moved: Mapping[UUID, int]) -> dict[tuple[UUID, str], int]:
    """Let vectors of a model be made for all whom it does not serve; return how many vectors each of them lacks.

    For all before the first: so stores that are set to the new embedder already are served by the old one until then.
    Of users who were `moved`, only chunks after that number count: those up to it that have no vector were refused.
    """
    missing = {}
    async for user, name in messages.everybody(database):
        async with database.user_transaction(user) as tx:
            if await embedding_models.begin(tx, model, after=moved.get(user, 0)):
                missing[user, name] = await _count_missing(tx, model.id)
    return missing


async def _count_missing(tx: Transaction, model: UUID) -> int:
    counts = await embedding_models.count_vectors(tx)
    chunks = sum(count.chunks - count.vectors for count in counts if count.id == model)
    return chunks + await documents.count_lacking(tx, model)


async def _move(database: Database, dependencies: Dependencies, user: UUID, model: Model, counts: _Counts) -> int:
    """Make the vectors that a user lacks, and switch; return the number of the last chunk."""
    after, refused = 0, RefusedTexts()
    while True:
        after = await _fill_chunks(database, dependencies, user, model.id, counts, after)
        await _fill_documents(database, dependencies, user, model.id, counts, refused)
        async with database.user_transaction(user) as tx:
            reach = await postings.reach(tx)
        # The index is made before it is used, and after it was filled: 60 times quicker.
        if reach.chunks > database.max_chunks and vector_indexes.is_possible(model.dimensions):
            await vector_indexes.build(database, user, model.id, model.dimensions, reach.chunks)
        async with database.user_transaction(user) as tx:
            await chunks.lock_user(tx)
            bare = await embedding_models.chunks_without_vector(tx, model.id, limit=MAX_BATCH_ITEMS, after=after)
            texts = await _missing_texts(tx, model.id, refused)
            # Derivers are not to wait for that many.
            if len(bare) + len(texts) >= MAX_BATCH_ITEMS:
                continue
            made, without = await to_thread(_embed_chunks, dependencies, bare)
            counts.add(await chunks.add_vectors(tx, made, model.id), without)
            vectors = await to_thread(_embed_documents, dependencies, texts, refused)
            counts.add(await documents.add_vectors(tx, vectors, model.id), (f"documents {id}" for id, _ in refused))
            await embedding_models.switch(tx, model)
        return bare[-1].number if bare else after


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
    # First: else it would be changed for each vector.
    for model in indexed:
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
    return sorted(statuses, key=lambda embedder: (STATES.index(embedder.state), embedder.name, embedder.dimensions))


async def _fill_chunks(
    database: Database, dependencies: Dependencies, user: UUID, model: UUID, counts: _Counts, after: int
) -> int:
    """Embed chunks after a number that lack a vector of the model; return the number of the last one.

    No transaction is open while the embedder works.
    """
    while True:
        async with database.user_transaction(user, [erasure.VERSION]) as tx:
            [erasure_version] = tx.first
            batch = await embedding_models.chunks_without_vector(tx, model, limit=MAX_BATCH_ITEMS, after=after)
        vectors, refused = await to_thread(_embed_chunks, dependencies, batch)
        try:
            async with erasure.transaction_if_unchanged(database, user, erasure_version) as tx:
                await embedding_models.add_missing(tx, vectors, model)
        except ConcurrentUpdate:  # something was erased meanwhile, maybe one of the chunks: read the others again
            continue
        counts.add(len(vectors), refused)
        after = batch[-1].number if batch else after
        # What comes meanwhile could be embedded for as long as somebody talks.
        if len(batch) < MAX_BATCH_ITEMS:
            return after


def _embed_chunks(
    dependencies: Dependencies, chunks: Sequence[ChunkWithoutVector]
) -> tuple[list[tuple[ChunkKey, Vectors]], list[str]]:
    """Return the vectors of chunks, and the items of those that are refused."""
    texts = [
        speaker_prefixed(chunk.speaker or "", chunk.text) if chunk.tier == Tier.MESSAGES else chunk.text
        for chunk in chunks
    ]
    vectors = [*zip(chunks, dependencies.embed(texts), strict=True)]
    made = [(ChunkKey(chunk.item_id, chunk.chunk_index), vector) for chunk, vector in vectors if vector is not None]
    return made, [f"{chunk.tier} {chunk.item_id}" for chunk, vector in vectors if vector is None]


async def _fill_documents(
    database: Database,
    dependencies: Dependencies,
    user: UUID,
    model: UUID,
    counts: _Counts,
    refused: RefusedTexts,
) -> None:
    """Embed texts of a user's documents that lack a vector.

    Documents that are put anew meanwhile are embedded again. A writer waits for a batch to be stored, not for the
    embedder.
    """
    while True:
        async with database.user_transaction(user) as tx:
            batch = await _missing_texts(tx, model, refused)
        if not batch:
            return
        vectors = await to_thread(_embed_documents, dependencies, batch, refused)
        async with database.user_transaction(user) as tx:
            await chunks.lock_user(tx)
            made = await documents.add_vectors(tx, vectors, model)
        counts.add(made, (f"documents {id}" for id, _ in refused))


async def _missing_texts(tx: Transaction, model: UUID, refused: RefusedTexts) -> list[MissingVector]:
    texts = await documents.lacking_texts(tx, model, limit=MAX_BATCH_ITEMS + len(refused))
    return [text for text in texts if refused.get((text.id, text.path)) != text][:MAX_BATCH_ITEMS]


def _embed_documents(
    dependencies: Dependencies, lacking: Sequence[MissingVector], refused: RefusedTexts
) -> list[tuple[MissingVector, Vectors]]:
    """Return the vectors of texts; add those that the embedder refuses to `refused`."""
    texts = [document_text(text.value or {}) if text.text is None else text.text for text in lacking]
    vectors = [*zip(lacking, dependencies.embed(texts), strict=True)]
    refused.update({(text.id, text.path): text for text, vector in vectors if vector is None})
    return [(text, vector) for text, vector in vectors if vector is not None]
