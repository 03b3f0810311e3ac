"""Another embedder in the place of one while recall goes on: vectors beside the old ones, then a switch, user by user.

Nothing here is remembered in between: what is left is what the database says is missing. Killed anywhere and run again,
it goes on; recall is served by the old vectors until the one transaction that lets the new ones serve.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from itertools import count
from uuid import UUID

from memstore._compat import to_thread
from memstore.derive import indexes
from memstore.derive.document_vectors import fill_documents, fill_rest
from memstore.derive.resources import Resources
from memstore.derive.vectors import BATCH, fill, vectors_of
from memstore.errors import Conflict, InvalidInput
from memstore.models import EmbeddingStatus, MigrationReport
from memstore.providers import Embedder
from memstore.store import documents, embedders, messages, postings, vector_indexes
from memstore.store.database import Database, Transaction
from memstore.store.embedders import BUILDING, RETIRED, STATES, Model, id_of
from memstore.store.watermarks import LostRace

Told = Callable[[int, int], None]
PATIENCE = 3  # times that what came meanwhile is embedded, before derivers are let wait for the rest


class _Making:
    """What was made so far, of how much; `told` hears of it."""

    def __init__(self, told: Told) -> None:
        self.done = self.total = self.users = self.vectors = 0
        self._told = told

    def advanced(self, units: int) -> None:
        self.done += units
        self._told(self.done, max(self.done, self.total))

    @property
    def moved(self) -> MigrationReport:
        return MigrationReport(self.users, self.vectors)


async def migrate(database: Database, resources: Resources, target: Embedder, told: Told) -> MigrationReport:
    """Let an embedder serve every user in place of the present one; give how many were moved, and vectors made.

    `told(done, total)` hears of units. Raises `Conflict` where another process migrates, or a migration to a third
    embedder is not done. Users who come meanwhile are moved too, and those for whom nothing is left to do are not.
    """
    model, making = Model(id_of(target), target.name, target.dimensions), _Making(told)
    by_target = replace(resources, embedder=target)
    async with embedders.alone(database):
        while users := await _begun(database, model, making):
            for user in users:
                await _move(database, by_target, user, model, making)
    return making.moved


async def _begun(database: Database, model: Model, making: _Making) -> list[UUID]:
    """Let vectors of a model be made for all whom it does not serve; give who they are.

    For all before the first: so stores that are set to the new embedder already are served by the old one until then.
    """
    users = []
    async for user, _ in messages.everybody(database):
        async with database.scope(user) as scope:
            if await embedders.begin(scope, model):
                users.append(user)
                making.total += await _missing(scope, model.id)
    return users


async def _missing(scope: Transaction, model: UUID) -> int:
    found = await embedders.counts(scope)
    units = sum(one.units - one.vectors for one in found if one.id == model)
    return units + await documents.count_lacking(scope, model)


async def _move(
    database: Database, resources: Resources, user: UUID, model: Model, making: _Making, *, back: bool = False
) -> None:
    """Give a user the vectors that are missing, and let them serve."""
    after = 0
    for tried in count():
        async with database.scope(user) as scope:
            upto = (await postings.reach(scope)).last_unit  # what comes meanwhile is for the next look
        told = making.advanced
        making.vectors += await fill(database, resources, user, model.id, told, after=after, upto=upto)
        after = upto
        moved_texts = await fill_documents(database, resources, user, model.id)
        making.vectors += moved_texts
        making.advanced(moved_texts)
        if not tried:
            await _index(database, user, model)  # before it is asked, and after it was filled: 60 times quicker
        try:
            async with database.scope(user) as scope:
                held = await embedders.lock(scope)
                if tried >= PATIENCE:
                    making.vectors += await _rest(scope, resources, model.id, after)
                    after = held.last_unit
                making.vectors += await fill_rest(scope, resources, model.id)
                moved = await embedders.switch(scope, model, after=after, back=back)
        except LostRace:  # a unit was erased meanwhile
            continue
        if moved:
            making.users += 1
            return


async def _index(database: Database, user: UUID, model: Model) -> None:
    async with database.scope(user) as scope:
        units = (await postings.reach(scope)).units
    if units > database.most_units and vector_indexes.is_possible(model.dimensions):
        await indexes.build(database, user, model, units)


async def _rest(scope: Transaction, resources: Resources, model: UUID, after: int) -> int:
    """Embed what is left while derivers wait, once: where they are as quick as we are, there would be no end to it.

    Who adds messages or asks does not wait. It is what they have written since the last look, mostly one batch. The
    user's row is locked.
    """
    made = 0
    while batch := await embedders.lacking(scope, model, limit=BATCH, after=after):
        found = await to_thread(vectors_of, resources, batch)
        made += await embedders.add_vectors(scope, found, model)
        after = batch[-1].number
    return made


async def rollback(database: Database, resources: Resources, leaving: str | None, told: Told) -> MigrationReport:
    """Let the embedder serve again that served before `leaving`, the one of the last migration if that is clear.

    A user's old vectors are there, but for what came since, which is made; a migration that is not done is given up.
    Gives how many users have gone back or stayed, and vectors made. Raises `InvalidInput` where there are several.
    """
    making = _Making(told)
    async with embedders.alone(database):
        for user, model in await _undone(database, leaving):
            async with database.scope(user) as scope:
                if model.state == BUILDING:
                    making.users += await embedders.give_up(scope, model.id)
                    continue
                before = await embedders.go_back(scope, model.id)
                if before is None:
                    continue
                making.total += await _missing(scope, before.id)
            by_before = await to_thread(resources.by, before.name, before.dimensions)
            await _move(database, by_before, user, before, making, back=True)
    return making.moved


async def _undone(database: Database, leaving: str | None) -> list[tuple[UUID, Model]]:
    """Give the users who can go back, each with the embedder from which."""
    found = []
    async for user, _ in messages.everybody(database):
        async with database.scope(user) as scope:
            last = embedders.last_step(await embedders.models(scope))
        if last is not None and leaving in (None, last.name):
            found.append((user, last))
    names = sorted({model.name for _, model in found})
    if len(names) > 1:
        raise InvalidInput(f"Users were moved to {' and to '.join(names)}: say from which one they are to go back.")
    return found


async def clean(database: Database) -> MigrationReport:
    """Remove the vectors of embedders that serve no more, and their indexes; give of how many users, and how many.

    There is no way back then. Raises `Conflict` while vectors of an embedder are in the making.
    """
    done: Counter[str] = Counter()
    async with embedders.alone(database):
        users = [user async for user, _ in messages.everybody(database)]
        for user in users:
            async with database.scope(user) as scope:
                if begun := [one.name for one in await embedders.models(scope) if one.state == BUILDING]:
                    raise Conflict(
                        f"Vectors by {begun[0]!r} are in the making: finish that with memstore embeddings migrate "
                        f"--to {begun[0]}, or give it up with memstore embeddings rollback. Nothing was removed."
                    )
        for user in users:
            removed = await _clean_user(database, user)
            done.update(users=removed > 0, vectors=removed)
    return MigrationReport(done["users"], done["vectors"])


async def _clean_user(database: Database, user: UUID) -> int:
    async with database.scope(user) as scope:
        old = [one for one in await embedders.models(scope) if one.state == RETIRED]
        indexed = [one for one in old if await vector_indexes.is_made(scope, one.id)]
    for one in indexed:  # first: else it would be changed for each vector
        await vector_indexes.drop(database, user, one.id)
    if not old:
        return 0
    async with database.scope(user) as scope:
        removed = await embedders.forget(scope)
        for one in old:
            removed += await documents.remove_model(scope, one.id)
        return removed


async def status(database: Database) -> list[EmbeddingStatus]:
    """Give each embedder by what it is to its users: how many they are, their units and vectors, and what is missing.

    Of retired ones nothing is missing.
    """
    found: dict[tuple[str, int, str], Counter[str]] = {}
    async for user, _ in messages.everybody(database):
        async with database.scope(user) as scope:
            for one in await embedders.counts(scope):
                missing = 0 if one.state == RETIRED else one.units - one.vectors
                total = found.setdefault((one.name, one.dimensions, one.state), Counter())
                total.update(users=1, units=one.units, vectors=one.vectors, missing=missing)
    every = [
        EmbeddingStatus(*key, total["users"], total["units"], total["vectors"], total["missing"])
        for key, total in found.items()
    ]
    return sorted(every, key=lambda one: (STATES.index(one.state), one.name, one.dimensions))
