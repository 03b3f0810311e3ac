"""Runs the derivers over what is pending, here and now.

A deriver reads a batch in one transaction, thinks with no transaction open, and writes its rows and the watermark in
another. Killed anywhere, it begins again at the watermark and makes the same rows.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol, TypeVar, cast
from uuid import UUID

from memstore.errors import DatabaseUnreachable, EmbedderMismatch, InvalidInput, ModelUnavailable, ProviderMissing
from memstore.ingest import indexes, reports
from memstore.ingest.asked import Asked
from memstore.ingest.embed import Embed
from memstore.ingest.facts.deriver import Facts
from memstore.ingest.method import Method
from memstore.ingest.resources import Resources
from memstore.ingest.summaries.deriver import Summarize
from memstore.ingest.vectors import embed_missing
from memstore.models import DeriveReport
from memstore.settings import Settings
from memstore.store import derivations, events, messages, model_calls, receipts
from memstore.store.database import Database, Transaction
from memstore.store.watermarks import LostRace, Outdated, Pending
from memstore.waiting import in_thread

logger = logging.getLogger("memstore")

Progress = Callable[[str, int, int], None]
UNIVERSAL = (DatabaseUnreachable, ProviderMissing, ModelUnavailable)  # of every conversation, not of one
VECTORS = "vectors"
REDOABLE = {"facts": "facts", "summaries": "summarize", VECTORS: VECTORS}  # what users call it, and the deriver


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


class Redoable(Deriver[B, M], Protocol):
    """A deriver whose rows can be made anew, a conversation at a time."""

    async def reread(self, scope: Transaction, work: Pending, limit: int, made: Sequence[M]) -> B:
        """Give what `read` gives, as if nothing were stored of this conversation but what is `made`."""

    async def rewrite(self, scope: Transaction, conversation: UUID, made: Sequence[M], recipe: str) -> dict[str, int]:
        """Put what is made by a recipe in the place of all that the conversation had; give how many rows were new."""


@dataclass(slots=True)
class _Run:
    """One run of `derive`: what it made, what failed, how far it is."""

    progress: Progress
    totals: dict[str, int]
    made: Counter[str] = field(default_factory=Counter)
    done: Counter[str] = field(default_factory=Counter)
    failed: list[str] = field(default_factory=list)
    waiting: list[str] = field(default_factory=list)
    users: set[UUID] = field(default_factory=set)

    def advanced(self, work: Pending, to_seq: int) -> None:
        self.users.add(work.user_id)
        self.done[work.deriver] += to_seq - work.done_seq
        self.progress(work.deriver, self.done[work.deriver], self.totals.get(work.deriver, 0))


@dataclass(frozen=True, slots=True)
class Part:
    """What of everything is to be derived: of one user, one conversation, by some derivers only."""

    user: UUID | None = None
    conversation: UUID | None = None
    derivers: Sequence[str] = derivations.DERIVERS


EVERYTHING = Part()


async def derive(
    database: Database,
    resources: Resources,
    part: Part = EVERYTHING,
    *,
    redo: str | None = None,
    progress: Progress = lambda *_: None,
) -> DeriveReport:
    """Derive what is pending; give what was made and what failed.

    `redo` names a deriver: what it made by another recipe is made anew first, a conversation at a time. With "vectors"
    units that lack one get it.
    """
    if redo == VECTORS and resources.embedder is None:
        raise InvalidInput("There is no embedder to make vectors: set embedder (settings, or MEMSTORE_EMBEDDER).")
    async with database.operator() as scope:
        run = _Run(progress, await derivations.backlog(scope, only=part.user))
        resources.allowance.left = await model_calls.left(scope, resources.settings.llm_daily_tokens)
    derivers: tuple[Deriver[Any, Any], ...] = (Embed(resources), Summarize(resources), Facts(resources))
    for deriver in derivers:
        try:
            if deriver.name == redo:
                await _redo_all(database, cast(Redoable[Any, Any], deriver), part, run)
            if deriver.name in part.derivers:
                await _all(database, deriver, part, run)
        except ModelUnavailable as error:  # what is pending waits, and the product goes on with what it has
            run.waiting.append(f"{deriver.name}: {error}")
    if redo == VECTORS:
        await _fill(database, resources, part, run)
    await _forget(database, run.users, resources.settings)
    for user in run.users:
        await indexes.tend(database, user)
    kinds = ("units", "summaries", "facts", "redone", "letters", VECTORS)
    counts = {kind: run.made[kind] for kind in kinds}
    return DeriveReport(run.done["embed"], **counts, failed=tuple(run.failed), waiting=tuple(run.waiting))


async def _fill(database: Database, resources: Resources, part: Part, run: _Run) -> None:
    """Give a vector to every unit that has none of the present embedder, user by user."""
    after = ""
    while True:
        async with database.operator() as scope:
            page = await messages.users(scope, after=after)
        for user, after in page:  # noqa: B007  # the last name is where the next page begins
            if part.user in (None, user):
                await _fill_user(database, resources, user, run)
        if not page:
            return


async def _fill_user(database: Database, resources: Resources, user: UUID, run: _Run) -> None:
    async with database.scope(user) as scope:
        counts = await messages.counts(scope)
    total = run.done[VECTORS] + counts["units"] - counts["vectors"]

    def told(units: int) -> None:
        run.done[VECTORS] += units
        run.progress(VECTORS, run.done[VECTORS], total)

    try:
        run.made[VECTORS] += await embed_missing(database, resources, user, told)
    except EmbedderMismatch as error:  # of this user; the others go on
        run.failed.append(f"{VECTORS} of user {user}: {type(error).__name__}: {error}")


async def _forget(database: Database, users: Iterable[UUID], settings: Settings) -> None:
    """Let the outbox and the receipts of these users not grow for ever."""
    now = datetime.now(UTC)
    for user in users:
        async with database.scope(user) as scope:
            await events.trim(scope, now - timedelta(days=settings.outbox_days))
            await receipts.trim(scope, now - timedelta(days=settings.receipts_days))


async def _redo_all(database: Database, deriver: Redoable[B, M], part: Part, run: _Run) -> None:
    after: Outdated | None = None
    recipe = await _recipe(deriver)
    while True:
        async with database.operator() as scope:
            page = await derivations.outdated(scope, deriver.name, recipe, only=part.user, after=after)
        if not page:
            return
        after = page[-1]
        for work in page:
            try:
                await _redo(database, deriver, work, recipe, run)
            except UNIVERSAL:
                raise
            except Exception as error:  # a conversation that cannot be made anew stays as it is, and the others go on
                await _fail(database, work, recipe, error, run)


async def _recipe(deriver: Deriver[B, M]) -> str:
    """Give how a deriver makes its rows: a model's server may be asked for that, with no connection held."""
    return await in_thread(lambda: deriver.method.recipe)


async def _redo(database: Database, deriver: Redoable[B, M], work: Outdated, recipe: str, run: _Run) -> None:
    """Make what a conversation has anew, batch by batch, and put it in its place in one transaction."""
    made: list[M] = []
    try:
        at = 0
        while at < work.done_seq:
            rest = Pending(work.user_id, work.conversation_id, work.deriver, at, work.done_seq)
            async with database.scope(work.user_id) as scope:
                batch = await deriver.reread(scope, rest, deriver.method.batch, made)
            made += await in_thread(deriver.think, [batch])
            at = made[-1].to_seq
        async with database.scope(work.user_id) as scope:
            counts = await deriver.rewrite(scope, work.conversation_id, made, recipe)
            scope.events += reports.redone(work, recipe, counts)
            await derivations.redone(scope, work, None if counts.get("letters") else recipe)
    except Exception as error:  # whatever it is goes on, after what the answers cost was kept
        await _keep_cost(database, work, made)
        if isinstance(error, LostRace):
            return  # somebody else derives this conversation
        raise
    run.made.update(counts)
    run.made["redone"] += 1


async def _keep_cost(database: Database, work: Pending, made: Sequence[Made]) -> None:
    """Keep what a model's answers cost that are dropped: they count for the day's tokens all the same."""
    if asked := [one.asked for one in made if one.asked]:
        async with database.scope(work.user_id) as scope:
            for one in asked:
                await model_calls.keep(scope, one.cost, ())


async def _all(database: Database, deriver: Deriver[B, M], part: Part, run: _Run) -> None:
    after: Pending | None = None
    while True:
        async with database.operator() as scope:
            page = await derivations.pending(
                scope, deriver.name, only=part.user, conversation=part.conversation, after=after
            )
        if not page:
            return
        after = page[-1]
        for group in _groups(page, 0 if deriver.method.asks else deriver.method.batch):
            await _finish(database, deriver, group, run)


def _groups(page: Sequence[Pending], most: int) -> list[list[Pending]]:
    """Gather short conversations, so that the encoder is not fed them one by one."""
    groups: list[list[Pending]] = [[]]
    size = 0
    for work in page:
        if groups[-1] and size + work.last_seq - work.done_seq > most:
            groups.append([])
            size = 0
        groups[-1].append(work)
        size += work.last_seq - work.done_seq
    return groups


async def _finish(database: Database, deriver: Deriver[B, M], group: list[Pending], run: _Run) -> None:
    """Step until nothing of the group is left; where a step fails, go on with each conversation by itself."""
    while group:
        try:
            group = await _step(database, deriver, group, run)
        except UNIVERSAL:
            raise
        except Exception as error:  # one conversation that cannot be derived must not hold up the others
            if len(group) == 1:
                await _fail(database, group[0], await _recipe(deriver), error, run)
                return
            for work in group:
                await _finish(database, deriver, [work], run)
            return


async def _step(database: Database, deriver: Deriver[B, M], group: list[Pending], run: _Run) -> list[Pending]:
    """Read, think, write; give what is still behind."""
    batches = []
    for work in group:
        async with database.scope(work.user_id) as scope:
            batches.append(await deriver.read(scope, work, deriver.method.batch))
    recipe = await _recipe(deriver)
    database.dispatcher.publish([told for work in group for told in reports.begun(work, recipe)])
    made = await in_thread(deriver.think, batches)
    left = []
    for work, one in zip(group, made, strict=True):
        try:
            async with database.scope(work.user_id) as scope:
                counts = await deriver.write(scope, one)
                scope.events += reports.done(work, one.to_seq, recipe, counts)
                # Last: whoever adds messages waits for it.
                await derivations.advance(scope, work, one.to_seq, None if counts.get("letters") else recipe)
        except LostRace:  # another worker does this conversation
            await _keep_cost(database, work, [one])
            continue
        run.made.update(counts)
        run.advanced(work, one.to_seq)
        if one.to_seq < work.last_seq:
            left.append(replace(work, done_seq=one.to_seq))
    return left


async def _fail(database: Database, work: Pending, recipe: str, error: Exception, run: _Run) -> None:
    # The type says enough for the table, which the operator may read; the message could quote what was said.
    async with database.scope(work.user_id) as scope:
        await derivations.fail(scope, work, type(error).__name__)
        scope.events += reports.failed(work, recipe, error)
    logger.warning("%s failed in conversation %s", work.deriver, work.conversation_id, exc_info=error)
    run.failed.append(f"{work.deriver} of conversation {work.conversation_id}: {type(error).__name__}: {error}")
