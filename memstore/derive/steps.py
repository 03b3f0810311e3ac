"""One step of a deriver over some conversations: read, think, write. `derive` and the workers are made of these.

A deriver reads a batch in one transaction, thinks with no transaction open, and writes its rows and the watermark in
another. Killed anywhere, it begins again at the watermark and makes the same rows.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from threading import Event
from typing import Any, Generic, NamedTuple, Protocol, TypeVar
from uuid import UUID

from memstore._compat import to_thread
from memstore.derive import reports
from memstore.derive.asked import Asked
from memstore.derive.method import Method
from memstore.derive.resources import Resources
from memstore.errors import DatabaseUnreachable, ModelUnavailable, ProviderMissing
from memstore.store import derivations, embedders, erasures, messages, model_calls
from memstore.store.database import Database, Transaction
from memstore.store.embedders import Model, OtherServes
from memstore.store.erasures import Epoch
from memstore.store.watermarks import LostRace, Pending

logger = logging.getLogger("memstore")

Progress = Callable[[str, int, int], None]
UNIVERSAL = (DatabaseUnreachable, ProviderMissing, ModelUnavailable)  # of every conversation, not of one


class Made(Protocol):
    """What was made of messages, to be written."""

    @property
    def to_seq(self) -> int:
        """The last message that it covers."""

    @property
    def asked(self) -> Asked | None:
        """What a model was asked for it; None where none was."""


B = TypeVar("B")
M = TypeVar("M", bound=Made)


class Deriver(Protocol[B, M]):
    """Makes rows of one kind from messages: of batches B what M holds."""

    name: str
    resources: Resources

    def by(self, resources: Resources) -> Deriver[B, M]:
        """Give the same with other resources."""

    @property
    def method(self) -> Method:
        """How it makes them."""

    async def read(self, scope: Transaction, work: Pending, limit: int) -> B:
        """Give what is needed to think about the next `limit` messages."""

    def think(self, batches: Sequence[B]) -> Sequence[M]:
        """Give what is to be written for each batch.

        No database here, so models may take their time. Raises `ModelUnavailable` where one is away.
        """

    async def write(self, scope: Transaction, made: M) -> dict[str, int]:
        """Store it; give how many rows of each kind were new.

        Of `letters`, answers of a model that could not be used, it made something by another recipe.
        """


@dataclass(slots=True)
class Run:
    """What steps made, what failed, how far they are."""

    progress: Progress = lambda *_: None
    totals: dict[str, int] = field(default_factory=dict)
    made: Counter[str] = field(default_factory=Counter)
    done: Counter[str] = field(default_factory=Counter)
    failed: list[str] = field(default_factory=list)
    waiting: list[str] = field(default_factory=list)
    users: set[UUID] = field(default_factory=set)
    stop_requested: Event = field(default_factory=Event)  # what runs at the same time has failed

    def advanced(self, work: Pending, to_seq: int) -> None:
        """Note that a deriver got to a message."""
        self.users.add(work.user_id)
        self.done[work.deriver] += to_seq - work.done_seq
        self.progress(work.deriver, self.done[work.deriver], self.totals.get(work.deriver, 0))

    def add(self, other: Run) -> None:
        """Count what another run did."""
        self.made.update(other.made)
        self.done.update(other.done)
        self.failed += other.failed
        self.waiting += other.waiting
        self.users |= other.users


class Step(NamedTuple):
    """What a step did of the work: up to which message, and which is by now the conversation's last."""

    work: Pending
    done_seq: int
    last_seq: int


async def step(database: Database, deriver: Deriver[B, M], group: Sequence[Pending], run: Run) -> list[Step]:
    """Let a deriver read, think and write the next batch of each conversation of a group.

    A conversation that another process does at the same time is left out of what is given. Where another embedder has
    come to serve a user meanwhile, what was thought is dropped, and the conversation takes the step again; where
    something of the user was erased, it is given as it then stands.
    """
    read = [await read_batch(database, deriver, work, deriver.method.batch) for work in group]
    recipe = await recipe_of(deriver)
    database.dispatcher.publish([told for work in group for told in reports.begun(work, recipe)])
    taken: list[Step] = []
    again: list[Pending] = []
    for work, (own, _, epoch), one in zip(group, read, await _thought(read), strict=True):
        try:
            async with erasures.unless_erased(database, work.user_id, epoch) as scope:
                counts = await own.write(scope, one)
                scope.events += reports.done(work, one.to_seq, recipe, counts)
                # Last: whoever adds messages waits for it.
                last_seq = await derivations.advance(scope, work, one.to_seq, None if counts.get("letters") else recipe)
        except LostRace as lost:
            await keep_cost(database, work, [one])
            if isinstance(lost, OtherServes):
                again.append(work)
            else:  # another worker does this conversation, or something of the user was erased meanwhile
                taken += await _left_by_erasure(database, work, epoch)
            continue
        run.made.update(counts)
        run.advanced(work, one.to_seq)
        taken.append(Step(work, one.to_seq, last_seq))
    return [*taken, *(await step(database, deriver, again, run))] if again else taken


async def of_user(database: Database, deriver: Deriver[B, M], known: Sequence[Model]) -> Deriver[B, M]:
    """Give the deriver with the embedder that serves a user who has these; raises `EmbedderMismatch`."""
    model = await embedders.chosen(database, known, deriver.resources.embedder)
    if model is None:
        return deriver
    return deriver.by(await to_thread(deriver.resources.by, model.name, model.dimensions))


class BatchRead(NamedTuple, Generic[B, M]):
    """A batch, the deriver for it with the embedder that serves the user, and the user's epoch in which it was read."""

    deriver: Deriver[B, M]
    batch: B
    epoch: Epoch | None


async def state(scope: Transaction) -> tuple[Epoch | None, list[Model]]:
    """Give a user's epoch and embedders: what is made now is to be written in the same ones."""
    return await erasures.epoch(scope), await embedders.models(scope)


async def read_batch(database: Database, deriver: Deriver[B, M], work: Pending, limit: int) -> BatchRead[B, M]:
    """Give the next batch of a conversation."""
    async with database.scope(work.user_id, first=state) as scope:
        epoch, known = await state(scope)
        batch = await deriver.read(scope, work, limit)
    return BatchRead(await of_user(database, deriver, known), batch, epoch)


async def _thought(read: Sequence[BatchRead[B, M]]) -> list[M]:
    """Think about the batches, those of one embedder together; give what is to be written for each."""
    made: dict[int, M] = {}
    makers = [embedders.id_of(one.deriver.resources.embedder) for one in read]
    for maker in dict.fromkeys(makers):
        places = [place for place, one in enumerate(makers) if one == maker]
        batches = [read[place].batch for place in places]
        made |= zip(places, await to_thread(read[places[0]].deriver.think, batches), strict=True)
    return [made[place] for place in range(len(read))]


async def _left_by_erasure(database: Database, work: Pending, epoch: Epoch | None) -> list[Step]:
    """Give where a deriver stands now, if it was an erasure that came between: nobody else goes on there."""
    async with database.scope(work.user_id) as scope:
        if await erasures.epoch(scope) == epoch:
            return []
        found = await derivations.watermark(scope, work)
    return [] if found is None else [Step(found, found.done_seq, found.last_seq)]


async def recipe_of(deriver: Deriver[Any, Any]) -> str:
    """Give how a deriver makes its rows: a model's server may be asked for that, with no connection held."""
    return await to_thread(lambda: deriver.method.recipe)


async def keep_cost(database: Database, work: Pending, made: Sequence[Made]) -> None:
    """Keep what a model's answers cost that are dropped: they count for the day's tokens all the same."""
    if asked := [one.asked for one in made if one.asked]:
        async with database.scope(work.user_id, first=erasures.hold) as scope:
            if await erasures.hold(scope) is not None:  # whose user is gone counts for nobody
                for one in asked:
                    await model_calls.keep(scope, one.cost, ())


async def fail(database: Database, work: Pending, recipe: str, error: Exception, run: Run) -> None:
    """Note that a deriver failed in a conversation, which stays as it is."""
    # The type says enough for the table, which the operator may read; the message could quote what was said.
    async with database.scope(work.user_id, first=erasures.hold) as scope:
        await erasures.hold(scope)
        if await messages.conversation(scope, work.conversation_id) is None:  # erased meanwhile
            return
        await derivations.fail(scope, work, type(error).__name__)
        scope.events += reports.failed(work, recipe, error)
    logger.warning("%s failed in conversation %s", work.deriver, work.conversation_id, exc_info=error)
    run.failed.append(f"{work.deriver} of conversation {work.conversation_id}: {type(error).__name__}: {error}")
