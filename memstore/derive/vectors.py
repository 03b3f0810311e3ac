"""Vectors for units that have none of an embedder: made while none was set, or while another one served."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from uuid import UUID

from memstore._compat import to_thread
from memstore.derive.embed import said_by
from memstore.derive.resources import Resources
from memstore.derive.serving import made_for
from memstore.models import Tier, UnitKey
from memstore.providers import Vectors
from memstore.store import embedders, erasures
from memstore.store.database import Database
from memstore.store.embedders import Lacking, OtherServes
from memstore.store.watermarks import LostRace

BATCH = 256  # units: what is lost when this is killed

Told = Callable[[int], None]


def _quiet(units: int) -> None:
    """Report nothing."""


async def embed_missing(database: Database, resources: Resources, user: UUID, progress: Told = _quiet) -> int:
    """Embed every unit of a user that lacks a vector, a batch at a time; give how many that were.

    No transaction is open while the embedder works. Killed anywhere and run again, it goes on with what is left. Calls
    `progress` with the number of each batch. Raises `EmbedderMismatch` where another embedder made vectors of the user.
    """
    return await made_for(database, resources, user, partial(_embed_missing, database, user, progress))


async def _embed_missing(database: Database, user: UUID, progress: Told, resources: Resources) -> int:
    async with database.scope(user, first=erasures.hold) as scope:
        if await erasures.hold(scope) is None:  # erased meanwhile
            return 0
        model = await embedders.bind(scope, resources.embedder)
    if model is None:
        return 0
    return await fill(database, resources, user, model, progress, is_serving=True)


async def fill(
    database: Database,
    resources: Resources,
    user: UUID,
    model: UUID,
    progress: Told = _quiet,
    *,
    after: int = 0,
    upto: int = embedders.LAST,
    is_serving: bool = False,
) -> int:
    """Give units after a number, up to another, the vectors that they lack; give how many were made.

    Of an embedder that serves arrays in every process are read anew after each batch; of one that does not yet, nobody
    notices. Raises `OtherServes` where it has ceased to serve.
    """
    made, begun = 0, after
    while True:
        async with database.scope(user, first=erasures.epoch) as scope:
            epoch = await erasures.epoch(scope)
            batch = await embedders.lacking(scope, model, limit=BATCH, after=after, upto=upto)
        if not batch:
            return made
        found = await to_thread(vectors_of, resources, batch)
        try:
            async with erasures.unless_erased(database, user, epoch) as scope:
                made += await (embedders.add_late if is_serving else embedders.add_vectors)(scope, found, model)
        except OtherServes:
            raise
        except LostRace:  # something was erased meanwhile, it may be one of the units: the others are looked for again
            after = begun
            continue
        after = batch[-1].number
        progress(len(batch))


def vectors_of(resources: Resources, units: Sequence[Lacking]) -> list[tuple[UnitKey, Vectors]]:
    """Give the vectors of units by name."""
    vectors = resources.embed([_text(one) for one in units])
    return [
        (UnitKey(one.item_id, one.chunk), vector)
        for one, vector in zip(units, vectors, strict=True)
        if vector is not None
    ]


def _text(unit: Lacking) -> str:
    """Give what a unit is embedded by."""
    return said_by(unit.speaker or "", unit.text) if unit.tier == Tier.MESSAGES else unit.text
