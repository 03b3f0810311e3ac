"""Replaces the embedder of users while recall goes on: vectors beside the old ones, then a switch, user by user.

No state is kept in between: what is left is what the database says is missing. Killed anywhere and run again, it goes
on; recall uses the old vectors until the one transaction that makes the new ones active.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from uuid import UUID

from memstore._compat import to_thread
from memstore.derive.chunks import document_text, run_with_active_embedder, speaker_prefixed
from memstore.derive.dependencies import Dependencies
from memstore.errors import Conflict
from memstore.models import EmbeddingStatus, MigrationReport, Tier, UnitKey
from memstore.providers import Embedder, Vectors
from memstore.store import chunks, documents, embedding_models, erasure, messages, postings, vector_indexes
from memstore.store.chunks import BUILDING, RETIRED, STATES, Model, model_id
from memstore.store.database import Database, Transaction
from memstore.store.embedding_models import ChunkWithoutVector, ModelChanged
from memstore.store.errors import ConcurrentUpdate

BATCH = 256  # units or documents: what is lost when this is killed

Progress = Callable[[int, int], None]  # units done, units in all


class _Migration:
    """Counts what was made, of how much."""

    def __init__(self, progress: Progress) -> None:
        self.done = self.total = self.users = self.vectors = 0
        self._progress = progress

    def advance(self, units: int) -> None:
        self.done += units
        self._progress(self.done, max(self.done, self.total))

    @property
    def moved(self) -> MigrationReport:
        return MigrationReport(self.users, self.vectors)


async def migrate(
    database: Database, dependencies: Dependencies, target: Embedder, progress: Progress
) -> MigrationReport:
    """Make an embedder active for every user; return how many were moved, and the vectors made.

    Users who come meanwhile are moved too. Raises `Conflict` if another process migrates, or if a migration to a third
    embedder is not done.
    """
    model, migration = Model(model_id(target), target.name, target.dimensions), _Migration(progress)
    by_target = replace(dependencies, embedder=target)
    async with embedding_models.advisory_lock(database):
        while users := await _begin(database, model, migration):
            for user in users:
                await _move(database, by_target, user, model, migration)
    return migration.moved


async def _begin(database: Database, model: Model, migration: _Migration) -> list[UUID]:
    """Let vectors of a model be made for all whom it does not serve; return their ids.

    For all before the first: so stores that are set to the new embedder already are served by the old one until then.
    """
    users = []
    async for user, _ in messages.everybody(database):
        async with database.user_transaction(user) as scope:
            if await embedding_models.begin(scope, model):
                users.append(user)
                migration.total += await _count_missing(scope, model.id)
    return users


async def _count_missing(scope: Transaction, model: UUID) -> int:
    units = sum(
        of_model.units - of_model.vectors
        for of_model in await embedding_models.count_vectors(scope)
        if of_model.id == model
    )
    return units + await documents.count_lacking(scope, model)


async def _move(
    database: Database, dependencies: Dependencies, user: UUID, model: Model, migration: _Migration
) -> None:
    """Make a user's missing vectors, and then the model active."""
    after = 0
    while True:
        async with database.user_transaction(user) as scope:
            reach = await postings.reach(scope)
        upto = reach.last_unit  # what comes meanwhile is for the next round
        units = await fill_units(database, dependencies, user, model.id, migration.advance, after=after, upto=upto)
        migration.vectors += units
        after = upto
        texts = await _fill_documents(database, dependencies, user, model.id)
        migration.vectors += texts
        migration.advance(texts)
        # The index is made before it is used, and after it was filled: 60 times quicker.
        if reach.units > database.most_units and vector_indexes.is_possible(model.dimensions):
            await vector_indexes.build(database, user, model.id, model.dimensions, reach.units)
        if units + texts > BATCH:  # as much may have come since: derivers are not to wait for that
            continue
        try:
            async with database.user_transaction(user) as scope:
                await chunks.lock_user(scope)
                migration.vectors += await _fill_locked_units(scope, dependencies, model.id, after)
                while batch := await documents.lacking(scope, model.id, limit=BATCH):
                    vectors = await to_thread(_embed_documents, dependencies, batch)
                    migration.vectors += await documents.add_vectors(scope, vectors, model.id)
                await embedding_models.switch(scope, model)
        except ConcurrentUpdate:  # a unit was erased meanwhile
            continue
        migration.users += 1
        return


async def _fill_locked_units(scope: Transaction, dependencies: Dependencies, model: UUID, after: int) -> int:
    """Embed the rest while derivers wait: what was derived since the last round, mostly less than a batch.

    Who adds messages or asks does not wait.
    """
    made = 0
    while batch := await embedding_models.chunks_without_vector(scope, model, limit=BATCH, after=after):
        made += await chunks.add_vectors(scope, await to_thread(_embed_units, dependencies, batch), model)
        after = batch[-1].number
    return made


async def clean(database: Database) -> MigrationReport:
    """Remove vectors and indexes of retired embedders; return of how many users, and how many vectors.

    Raises `Conflict` while a migration is not done.
    """
    done: Counter[str] = Counter()
    async with embedding_models.advisory_lock(database):
        users = [user async for user, _ in messages.everybody(database)]
        for user in users:
            async with database.user_transaction(user) as scope:
                if building := [model.name for model in await chunks.read_models(scope) if model.state == BUILDING]:
                    raise Conflict(
                        f"Vectors by {building[0]!r} are in the making: finish that with memstore embeddings migrate "
                        f"--to {building[0]}, or give it up with a migration to the embedder that serves. Nothing was "
                        "removed."
                    )
        for user in users:
            removed = await _clean_user(database, user)
            done.update(users=removed > 0, vectors=removed)
    return MigrationReport(done["users"], done["vectors"])


async def _clean_user(database: Database, user: UUID) -> int:
    async with database.user_transaction(user) as scope:
        retired = [model for model in await chunks.read_models(scope) if model.state == RETIRED]
        indexed = [model for model in retired if await vector_indexes.is_made(scope, model.id)]
    for model in indexed:  # first: else it would be changed for each vector
        await vector_indexes.drop(database, user, model.id)
    if not retired:
        return 0
    async with database.user_transaction(user) as scope:
        removed = await embedding_models.remove_retired(scope)
        for model in retired:
            removed += await documents.remove_model(scope, model.id)
        return removed


async def status(database: Database) -> list[EmbeddingStatus]:
    """Return each embedder by its state: how many users it has, their units and vectors, and what is missing."""
    totals: dict[tuple[str, int, str], Counter[str]] = {}
    async for user, _ in messages.everybody(database):
        async with database.user_transaction(user) as scope:
            for model in await embedding_models.count_vectors(scope):
                missing = 0 if model.state == RETIRED else model.units - model.vectors
                total = totals.setdefault((model.name, model.dimensions, model.state), Counter())
                total.update(users=1, units=model.units, vectors=model.vectors, missing=missing)
    statuses = [
        EmbeddingStatus(*key, total["users"], total["units"], total["vectors"], total["missing"])
        for key, total in totals.items()
    ]
    return sorted(statuses, key=lambda one: (STATES.index(one.state), one.name, one.dimensions))


async def embed_missing_units(
    database: Database, dependencies: Dependencies, user: UUID, progress: Callable[[int], None]
) -> int:
    """Embed every unit of a user that lacks a vector, a batch at a time; return how many.

    No transaction is open while the embedder works. Killed anywhere and run again, it goes on with what is left.
    `progress` is called with the number of each batch. Raises `EmbedderMismatch` if another embedder is active.
    """
    task = partial(_embed_missing_units, database, user, progress)
    return await run_with_active_embedder(database, dependencies, user, task)


async def _embed_missing_units(
    database: Database, user: UUID, progress: Callable[[int], None], dependencies: Dependencies
) -> int:
    async with database.user_transaction(user, [erasure.LOCKED_VERSION]) as scope:
        if scope.first == [None]:  # erased meanwhile
            return 0
        model = await embedding_models.lock_active(scope, dependencies.embedder)
    if model is None:
        return 0
    return await fill_units(database, dependencies, user, model, progress, is_active=True)


async def fill_units(
    database: Database,
    dependencies: Dependencies,
    user: UUID,
    model: UUID,
    progress: Callable[[int], None],
    *,
    after: int = 0,
    upto: int = embedding_models.LAST,
    is_active: bool = False,
) -> int:
    """Embed units after a number, up to another, that lack a vector of the model; return how many.

    Of an active model arrays in every process are read anew after each batch. Raises `OtherServes` if it is no longer
    active.
    """
    made, begun = 0, after
    add = embedding_models.add_late if is_active else chunks.add_vectors
    while True:
        async with database.user_transaction(user, [erasure.VERSION]) as scope:
            [epoch] = scope.first
            batch = await embedding_models.chunks_without_vector(scope, model, limit=BATCH, after=after, upto=upto)
        if not batch:
            return made
        vectors = await to_thread(_embed_units, dependencies, batch)
        try:
            async with erasure.transaction_if_unchanged(database, user, epoch) as scope:
                made += await add(scope, vectors, model)
        except ModelChanged:
            raise
        except (
            ConcurrentUpdate
        ):  # something was erased meanwhile, it may be one of the units: the others are looked for again
            after = begun
            continue
        after = batch[-1].number
        progress(len(batch))


def _embed_units(dependencies: Dependencies, units: Sequence[ChunkWithoutVector]) -> list[tuple[UnitKey, Vectors]]:
    texts = [
        speaker_prefixed(unit.speaker or "", unit.text) if unit.tier == Tier.MESSAGES else unit.text for unit in units
    ]
    vectors = zip(units, dependencies.embed(texts), strict=True)
    return [(UnitKey(unit.item_id, unit.chunk), vector) for unit, vector in vectors if vector is not None]


async def _fill_documents(database: Database, dependencies: Dependencies, user: UUID, model: UUID) -> int:
    """Embed texts of a user's documents that lack a vector; return how many.

    What is put anew meanwhile is looked for again. Who writes waits for a batch to be stored, not for the embedder.
    """
    made = 0
    while True:
        async with database.user_transaction(user) as scope:
            batch = await documents.lacking(scope, model, limit=BATCH)
        if not batch:
            return made
        vectors = await to_thread(_embed_documents, dependencies, batch)
        async with database.user_transaction(user) as scope:
            await chunks.lock_user(scope)
            made += await documents.add_vectors(scope, vectors, model)


def _embed_documents(
    dependencies: Dependencies, lacking: Sequence[documents.Lacking]
) -> list[tuple[documents.Lacking, Vectors]]:
    texts = [document_text(text.value or {}) if text.text is None else text.text for text in lacking]
    vectors = zip(lacking, dependencies.embed(texts), strict=True)
    return [(text, vector) for text, vector in vectors if vector is not None]
