"""Replaces the embedding model of a store while recall goes on: vectors of all users are made, then one row changes.

Nothing else is kept of a migration: the database says which vectors are missing. Killed anywhere and run again, it goes
on. Recall uses the old vectors of all users until the new ones are all there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias
from uuid import UUID

from memstore._compat import to_thread
from memstore.derive.chunks import document_text
from memstore.derive.dependencies import Dependencies
from memstore.errors import DatabaseError
from memstore.models import ChunkKey, EmbeddingStatus, MigrationReport
from memstore.providers import Embedder, Vectors
from memstore.store import chunks, documents, embedding_models, erasure, messages, postings, vector_indexes, vectors
from memstore.store.chunks import text_of_chunk
from memstore.store.database import Database, Transaction
from memstore.store.documents import MissingVector
from memstore.store.errors import ConcurrentUpdate
from memstore.store.rows import EmbeddingModel
from memstore.store.vectors import ChunkWithoutVector, UserReach

# Chunks or documents: at most so many are lost when this is killed, and writers wait for no more at the end.
MAX_BATCH_ITEMS = 256

# Called with the chunks done and the chunks in all.
Progress = Callable[[int, int], None]
# Of documents, by their ids and paths.
RefusedTexts: TypeAlias = dict[tuple[UUID, str], MissingVector]


@dataclass(slots=True)
class _Counts:
    """The vectors made so far, for whom, and the texts that the embedder refuses."""

    progress: Progress
    total: int = 0
    vectors: int = 0
    users: set[UUID] = field(default_factory=set)
    refused: dict[str, None] = field(default_factory=dict)

    def add(self, user: UserReach, vectors: int, refused: Iterable[str]) -> None:
        names = [f"{item} of {user.name}" for item in refused]
        if vectors or names:
            self.users.add(user.id)
        self.vectors += vectors
        self.refused.update(dict.fromkeys(names))
        done = self.vectors + len(self.refused)
        self.progress(done, max(done, self.total))


async def migrate(
    database: Database, dependencies: Dependencies, target: Embedder, progress: Progress
) -> MigrationReport:
    """Make an embedder the active one; return how many users got vectors, and how many these are.

    If it is active, chunks that lack a vector get theirs, as those that were derived without an embedder. Texts that
    the embedder refuses get none, and are reported. Raises `Conflict` if another process migrates, or if a migration to
    a third embedder is not done.
    """
    model = EmbeddingModel.of(target)
    counts = _Counts(progress)
    async with embedding_models.advisory_lock(database):
        is_active = (await embedding_models.begin(database, model)).id == model.id
        migration = _Migration(database, replace(dependencies, embedder=target), model, is_active, counts)
        await migration.count_missing()
        await migration.fill()
        if not is_active:
            async with embedding_models.separate_pool(database) as separate:
                last = replace(migration, database=separate)
                while not await last.switch():
                    await migration.fill()
    return MigrationReport(len(counts.users), counts.vectors, tuple(counts.refused))


@dataclass(slots=True)
class _Migration:
    """Makes the vectors of a model that users lack; `done` has the number of the last chunk of those who have all."""

    database: Database
    dependencies: Dependencies
    model: EmbeddingModel
    is_active: bool
    counts: _Counts
    done: dict[UUID, int] = field(default_factory=dict)
    refused: RefusedTexts = field(default_factory=dict)

    async def count_missing(self) -> None:
        async for user in vectors.read_reach(self.database):
            async with self.database.user_transaction(user.id) as tx:
                missing = {id: chunk_count - made for id, *_, chunk_count, made in await vectors.count(tx)}
                self.counts.total += missing.get(self.model.id, 0) + await documents.count_lacking(tx, self.model.id)

    async def fill(self) -> None:
        """Make the vectors that users lack who have written since they were looked at, while they go on."""
        async for user in vectors.read_reach(self.database):
            if self.done.get(user.id) != user.last_chunk:
                await self._fill_chunks(user)
                await self._fill_documents(user)
                # The index is made before it is used, and after it was filled: 60 times quicker.
                await self._build_index(user)
                self.done[user.id] = user.last_chunk

    async def switch(self) -> bool:
        """Make the model active, and what lacks vectors meanwhile; False if that would take long."""
        try:
            async with embedding_models.switch(self.database, self.model):
                await self._fill_rest()
        except ConcurrentUpdate:
            return False
        return True

    async def _fill_rest(self) -> None:
        """Fill while writers wait; raises `ConcurrentUpdate` if that would take long, or somebody holds what it needs.

        Nothing is locked but rows of what is embedded: who waits may hold the user's.
        """
        left = MAX_BATCH_ITEMS
        try:
            async for user in vectors.read_reach(self.database):
                if self.done.get(user.id) != user.last_chunk:
                    left -= await self._fill_rest_of(user, left)
        except DatabaseError as error:
            if erasure.is_blocked(error):
                raise ConcurrentUpdate from None
            raise

    async def _fill_rest_of(self, user: UserReach, most: int) -> int:
        model = self.model.id
        async with self.database.user_transaction(user.id) as tx:
            # Who waited for a writer who waits for this process would wait forever.
            await tx.run(erasure.SQL["impatiently"])
            bare = await vectors.chunks_without_vector(tx, model, limit=most, after=self.done.get(user.id, 0))
            texts = await self._missing_texts(tx)
            if len(bare) + len(texts) >= most:
                raise ConcurrentUpdate
            made, refused = await to_thread(_embed_chunks, self.dependencies, bare)
            self.counts.add(user, await chunks.add_vectors(tx, made, model), refused)
            of_documents = await to_thread(_embed_documents, self.dependencies, texts, self.refused)
            self.counts.add(user, await documents.add_vectors(tx, of_documents, model), self._refused_of(texts))
        return len(bare) + len(texts)

    async def _fill_chunks(self, user: UserReach) -> None:
        """Embed chunks that lack a vector. No transaction is open while the embedder works."""
        after = self.done.get(user.id, 0)
        while True:
            async with self.database.user_transaction(user.id, [erasure.VERSION]) as tx:
                version = tx.result(erasure.VERSION)
                batch = await vectors.chunks_without_vector(tx, self.model.id, limit=MAX_BATCH_ITEMS, after=after)
            made, refused = await to_thread(_embed_chunks, self.dependencies, batch)
            try:
                async with erasure.transaction_if_unchanged(self.database, user.id, version) as tx:
                    await vectors.add_missing(tx, made, self.model.id, is_active=self.is_active)
            except ConcurrentUpdate:  # something was erased meanwhile, maybe one of the chunks: read the others again
                continue
            self.counts.add(user, len(made), refused)
            # What comes meanwhile could be embedded for as long as somebody talks.
            if len(batch) < MAX_BATCH_ITEMS:
                return
            after = batch[-1].number

    async def _fill_documents(self, user: UserReach) -> None:
        """Embed texts of documents that lack a vector. A writer waits for a batch to be stored, not for the embedder.

        Documents that are put anew meanwhile are embedded again.
        """
        while True:
            async with self.database.user_transaction(user.id) as tx:
                batch = await self._missing_texts(tx)
            if not batch:
                return
            made = await to_thread(_embed_documents, self.dependencies, batch, self.refused)
            async with self.database.user_transaction(user.id) as tx:
                await chunks.lock_user(tx)
                stored = await documents.add_vectors(tx, made, self.model.id)
            self.counts.add(user, stored, self._refused_of(batch))

    async def _build_index(self, user: UserReach) -> None:
        async with self.database.user_transaction(user.id) as tx:
            reach = await postings.reach(tx)
        dimensions = self.model.dimensions
        if reach.chunks > self.database.max_chunks and vector_indexes.is_possible(dimensions):
            await vector_indexes.build(self.database, user.id, self.model.id, dimensions, reach.chunks)

    async def _missing_texts(self, tx: Transaction) -> list[MissingVector]:
        texts = await documents.lacking_texts(tx, self.model.id, limit=MAX_BATCH_ITEMS + len(self.refused))
        return [text for text in texts if self.refused.get((text.id, text.path)) != text][:MAX_BATCH_ITEMS]

    def _refused_of(self, texts: Sequence[MissingVector]) -> list[str]:
        return [f"documents {text.id}" for text in texts if (text.id, text.path) in self.refused]


async def clean(database: Database) -> MigrationReport:
    """Remove vectors and indexes of retired models; return of how many users, and how many vectors.

    The models are still known, so that a store that is set to one of them uses the active one. Raises `Conflict` while
    a migration is not done.
    """
    done: Counter[str] = Counter()
    async with embedding_models.advisory_lock(database):
        retired = await embedding_models.read_retired(database)
        async for user, _ in messages.everybody(database):
            removed = await _clean_user(database, user, retired) if retired else 0
            done.update(users=int(removed > 0), vectors=removed)
    return MigrationReport(done["users"], done["vectors"])


async def _clean_user(database: Database, user: UUID, retired: Sequence[UUID]) -> int:
    async with database.user_transaction(user) as tx:
        indexed = [model for model in retired if await vector_indexes.is_made(tx, model)]
    # First: else it would be changed for each vector.
    for model in indexed:
        await vector_indexes.drop(database, user, model)
    async with database.user_transaction(user) as tx:
        removed = 0
        for model in retired:
            removed += await vectors.remove(tx, model) + await documents.remove_model(tx, model)
        return removed


async def status(database: Database) -> list[EmbeddingStatus]:
    """Return each model: its state, how many users have vectors of it, the store's chunks, and what is missing."""
    totals: dict[tuple[Any, ...], Counter[str]] = {}
    async for user, _ in messages.everybody(database):
        async with database.user_transaction(user) as tx:
            for _, *model, chunk_count, made in await vectors.count(tx):
                missing = 0 if model[-1] == "retired" else chunk_count - made
                total = totals.setdefault(tuple(model), Counter())
                total.update(users=int(made > 0), chunks=chunk_count, vectors=made, missing=missing)
    return [
        EmbeddingStatus(*key, *(total[kind] for kind in ("users", "chunks", "vectors", "missing")))
        for key, total in totals.items()
    ]


def _embed_chunks(
    dependencies: Dependencies, chunks: Sequence[ChunkWithoutVector]
) -> tuple[list[tuple[ChunkKey, Vectors]], list[str]]:
    texts = [text_of_chunk(chunk.tier, chunk.speaker, chunk.text) for chunk in chunks]
    vectors = [*zip(chunks, dependencies.embed(texts), strict=True)]
    made = [(ChunkKey(chunk.item_id, chunk.chunk_index), vector) for chunk, vector in vectors if vector is not None]
    return made, [f"{chunk.tier} {chunk.item_id}" for chunk, vector in vectors if vector is None]


def _embed_documents(
    dependencies: Dependencies, lacking: Sequence[MissingVector], refused: RefusedTexts
) -> list[tuple[MissingVector, Vectors]]:
    """Return the vectors of texts; add those that the embedder refuses to `refused`."""
    texts = [document_text(text.value or {}) if text.text is None else text.text for text in lacking]
    vectors = [*zip(lacking, dependencies.embed(texts), strict=True)]
    refused.update({(text.id, text.path): text for text, vector in vectors if vector is None})
    return [(text, vector) for text, vector in vectors if vector is not None]
