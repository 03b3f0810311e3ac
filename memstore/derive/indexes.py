"""What recall over very many units of one user stands on, made behind the derivers: postings and an index of vectors.

Recall is right without them, and slower. A user with fewer units needs none: all of them are held in the process.
"""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

from memstore.models import LargeUser
from memstore.store import embedders, postings, vector_indexes
from memstore.store.database import Database
from memstore.store.embedders import Model
from memstore.store.postings import Reach
from memstore.store.vector_indexes import Built
from memstore.store.watermarks import LostRace


async def large(database: Database) -> list[LargeUser]:
    """Give the users with more units than are held in a process."""
    async with database.operator() as scope:
        users = await postings.large(scope, database.most_units)
    found = []
    for user in users:
        posted = user.unposted < postings.FEWEST
        found.append(LargeUser(user.id, user.name, user.units, posted and not await _unindexed(database, user.id)))
    return found


async def tend_all(database: Database, progress: Callable[[LargeUser], None] = lambda _: None) -> list[LargeUser]:
    """Make what is missing for every user with very many units; give those for whom this login may not."""
    refused = []
    for user in await large(database):
        progress(user)
        if not await tend(database, user.id):
            refused.append(user)
    return refused


async def tend(database: Database, user: UUID) -> bool:
    """Make or drop what a user's number of units calls for; False where this login may not make an index.

    Postings follow in runs, those of 100,000 units in ten seconds; the index takes a minute for 100,000, once. What
    another process does at the same moment is left to it.
    """
    async with database.scope(user) as scope:
        reach = await postings.reach(scope)
    if reach.units > database.most_units:
        await _post(database, user, reach)
        return await _index(database, user, reach.units)
    if reach.posted and reach.units <= database.most_units // 2:  # who stands at the border does not fall to and fro
        await _drop(database, user)
    return True


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
        after = run.units[-1].number


async def _index(database: Database, user: UUID, units: int) -> bool:
    model = await _unindexed(database, user)
    return model is None or await build(database, user, model, units)


async def build(database: Database, user: UUID, model: Model, units: int) -> bool:
    """Make the index of a user's vectors by an embedder; False where this login may not."""
    built = await vector_indexes.build(database, user, model.id, model.dimensions, units)
    return built is not Built.REFUSED


async def _unindexed(database: Database, user: UUID) -> Model | None:
    """Give the embedder that serves a user where its vectors could have an index, and have none."""
    async with database.scope(user) as scope:
        there = embedders.serving(await embedders.models(scope))
        if there is None or not vector_indexes.is_possible(there.dimensions):
            return None
        return None if await vector_indexes.is_ready(scope, there.id) else there


async def _drop(database: Database, user: UUID) -> None:
    try:
        async with database.scope(user) as scope:
            await postings.forget(scope)
            models = await embedders.models(scope)
    except LostRace:  # another process does it, or makes them
        return
    for model in models:
        await vector_indexes.drop(database, user, model.id)
