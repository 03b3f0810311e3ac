"""What recall over very many units of one user stands on, made behind the derivers: postings and an index of vectors.

Recall is right without them, and slower. A user with fewer units needs none: all of them are held in the process.
"""

from __future__ import annotations

from uuid import UUID

from memstore import ids
from memstore.providers import Embedder
from memstore.store import postings, vector_indexes
from memstore.store.database import Database
from memstore.store.postings import Reach
from memstore.store.watermarks import LostRace


async def tend(database: Database, user: UUID, embedder: Embedder | None) -> bool:
    """Make or drop what a user's number of units calls for; False where this login may not make the index of vectors.

    Postings follow in runs, of 100,000 units in ten seconds; the index takes a minute for 100,000, once.
    """
    async with database.scope(user) as scope:
        reach = await postings.reach(scope)
    if reach.units <= database.most_units // 2:
        return not reach.posted or await _drop(database, user, embedder)
    if reach.units <= database.most_units:  # so that who stands at the border does not fall to and fro
        return True
    await _post(database, user, reach)
    return embedder is None or await _index(database, user, embedder, reach.units)


async def _post(database: Database, user: UUID, reach: Reach) -> None:
    after = reach.posted
    while reach.last_unit - after >= postings.FEWEST:
        async with database.scope(user) as scope:
            run = await postings.unposted(scope, after)
        if not run.units:  # the last ones are gone
            return
        try:
            async with database.scope(user, lazily=True) as scope:
                await postings.post(scope, run)
        except LostRace:  # another process does it
            return
        after = run.units[-1][0]


async def _index(database: Database, user: UUID, embedder: Embedder, units: int) -> bool:
    model = ids.model_id(embedder.name, embedder.dimensions)
    if not vector_indexes.is_possible(embedder.dimensions):
        return True
    async with database.scope(user) as scope:
        ready = await vector_indexes.is_ready(scope, model)
    return ready or await vector_indexes.build(database, user, model, embedder.dimensions, units)


async def _drop(database: Database, user: UUID, embedder: Embedder | None) -> bool:
    async with database.scope(user) as scope:
        await postings.forget(scope)
    if embedder is None:
        return True
    return await vector_indexes.drop(database, user, ids.model_id(embedder.name, embedder.dimensions))
