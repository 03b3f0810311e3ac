"""The pipeline: each deriver loads pending messages, computes rows of them, and saves the rows with its watermark.

A deriver loads a batch in one transaction, computes with no transaction open, and saves its rows in another, in which
the watermark moves by compare-and-set. Killed anywhere, it begins again at the watermark and makes the same rows.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from threading import Event as Flag, Lock
from typing import Any, Generic, NamedTuple, Protocol, TypeVar, cast
from uuid import UUID

from memstore._compat import run_all, to_thread
from memstore.derive.chunks import UnitDeriver, with_active_embedder
from memstore.derive.dependencies import Dependencies, Producer
from memstore.derive.embedding_migration import embed_missing_units
from memstore.derive.facts.deriver import FactDeriver
from memstore.derive.llm import LLMSession
from memstore.derive.maintenance import run_maintenance
from memstore.derive.summaries.deriver import SummaryDeriver
from memstore.errors import DatabaseUnreachable, EmbedderMismatch, InvalidInput, ModelUnavailable, ProviderMissing
from memstore.events import Event, EventType
from memstore.models import QUARANTINED, DeriveReport
from memstore.store import chunks, erasure, llm_usage, messages, watermarks
from memstore.store.chunks import Model
from memstore.store.database import Database, Transaction
from memstore.store.embedding_models import ModelChanged
from memstore.store.erasure import UserVersion
from memstore.store.errors import ConcurrentUpdate
from memstore.store.rows import PendingWork, StaleWork

logger = logging.getLogger("memstore")

Progress = Callable[[str, int, int], None]
SHARED_FAILURES = (DatabaseUnreachable, ProviderMissing, ModelUnavailable)  # of every conversation, not of one
VECTORS = "vectors"
REBUILDABLE = {"facts": "facts", "summaries": "summarize", VECTORS: VECTORS}  # what users call it, and the deriver


class BatchResult(Protocol):
    """What was computed of a batch, to be saved."""

    @property
    def to_seq(self) -> int:
        """The last message that it covers."""

    @property
    def llm_session(self) -> LLMSession | None:
        """The calls of a chat model for it; None without one."""


B = TypeVar("B")
R = TypeVar("R", bound=BatchResult)


class Deriver(Protocol[B, R]):
    """Makes rows of one kind from messages: loads batches B and computes results R."""

    name: str
    dependencies: Dependencies

    def __init__(self, dependencies: Dependencies) -> None: ...

    @property
    def producer(self) -> Producer:
        """How it makes them."""

    async def load(self, scope: Transaction, work: PendingWork, limit: int) -> B:
        """Return what is needed to compute the next `limit` messages."""

    def compute(self, batches: Sequence[B]) -> Sequence[R]:
        """Return the result for each batch, without the database. Raises `ModelUnavailable` if a model is away."""

    async def save(self, scope: Transaction, result: R) -> dict[str, int]:
        """Store it; return how many rows of each kind were new.

        For `letters`, unusable responses of a model, something was made by another recipe.
        """


class Rebuildable(Deriver[B, R], Protocol):
    """A deriver whose rows can be made anew, a conversation at a time."""

    async def reload(self, scope: Transaction, work: PendingWork, limit: int, results: Sequence[R]) -> B:
        """Return what `load` returns, as if nothing were stored of this conversation but `results`."""

    async def replace(
        self, scope: Transaction, conversation: UUID, results: Sequence[R], recipe: str
    ) -> dict[str, int]:
        """Replace all rows of the conversation; return how many rows of each kind were new."""


@dataclass(frozen=True, slots=True)
class DeriveScope:
    """What is to be derived: of one user, one conversation, by some derivers only; by default everything."""

    user: UUID | None = None
    conversation: UUID | None = None
    derivers: Sequence[str] = watermarks.DERIVERS


@dataclass(slots=True)
class RunState:
    """What was made so far, what failed, and how far each deriver is."""

    progress: Progress = lambda *_: None
    totals: Mapping[str, int] = field(default_factory=dict)
    made: Counter[str] = field(default_factory=Counter)
    done: Counter[str] = field(default_factory=Counter)
    failed: list[str] = field(default_factory=list)
    waiting: list[str] = field(default_factory=list)
    users: set[UUID] = field(default_factory=set)
    stop_requested: Flag = field(default_factory=Flag)  # what runs at the same time has failed

    lock: Lock = field(default_factory=Lock)  # derivers run in threads

    def advance(self, work: PendingWork, to_seq: int, counts: Mapping[str, int]) -> None:
        """Record what a deriver made of the messages up to `to_seq`."""
        with self.lock:
            self.users.add(work.user_id)
            self.made.update(counts)
            self.done[work.deriver] += to_seq - work.done_seq
            self.progress(work.deriver, self.done[work.deriver], self.totals.get(work.deriver, 0))


async def derive(
    database: Database,
    dependencies: Dependencies,
    only: DeriveScope | None = None,
    *,
    redo: str | None = None,
    progress: Progress = lambda *_: None,
) -> DeriveReport:
    """Derive what is pending; return what was made and what failed.

    `redo` names a deriver whose rows of other recipes are rebuilt first, a conversation at a time. With "vectors" units
    that lack one get it.
    """
    only = only or DeriveScope()
    if redo == VECTORS and dependencies.embedder is None:
        raise InvalidInput("There is no embedder to make vectors: set embedder (settings, or MEMSTORE_EMBEDDER).")
    async with database.admin_transaction() as scope:
        run = RunState(progress, await watermarks.backlog(scope, only=only.user))
        dependencies.token_budget.left = await llm_usage.left(scope, dependencies.settings.llm_daily_tokens)
    derivers = make_derivers(dependencies)
    if any(deriver.producer.uses_llm for deriver in derivers):  # one model, one question at a time
        for deriver in derivers:
            await _run_deriver(database, deriver, only, redo, run)
    else:
        # At once: rules read while vectors are computed and rows are written.
        calls = [partial(_run_deriver, database, deriver, only, redo, run) for deriver in derivers]
        await run_all(calls, run.stop_requested.set)
    if redo == VECTORS:
        await _embed_missing(database, dependencies, only, run)
    await run_maintenance(database, run.users, dependencies.settings)
    kinds = ("units", "summaries", "facts", "redone", "letters", VECTORS, QUARANTINED)
    counts = {kind: run.made[kind] for kind in kinds}
    return DeriveReport(run.done["embed"], **counts, failed=tuple(run.failed), waiting=tuple(run.waiting))


def make_derivers(dependencies: Dependencies) -> tuple[Deriver[Any, Any], ...]:
    """Return the derivers."""
    return UnitDeriver(dependencies), SummaryDeriver(dependencies), FactDeriver(dependencies)


async def _run_deriver(
    database: Database, deriver: Deriver[Any, Any], only: DeriveScope, redo: str | None, run: RunState
) -> None:
    try:
        if deriver.name == redo:
            await _rebuild_outdated(database, cast(Rebuildable[Any, Any], deriver), only, run)
        if deriver.name in only.derivers:
            await _derive_pending(database, deriver, only, run)
    except ModelUnavailable as error:  # what is pending waits, and the product goes on with what it has
        run.waiting.append(f"{deriver.name}: {error}")


async def _derive_pending(database: Database, deriver: Deriver[B, R], only: DeriveScope, run: RunState) -> None:
    after: PendingWork | None = None
    while not run.stop_requested.is_set():
        async with database.admin_transaction() as scope:
            page = await watermarks.pending_work(
                scope, deriver.name, only=only.user, conversation=only.conversation, after=after
            )
        if not page:
            return
        after = page[-1]
        for group in _group(page, 0 if deriver.producer.uses_llm else deriver.producer.batch_size):
            await _drain(database, deriver, group, run)


def _group(page: Sequence[PendingWork], limit: int) -> list[list[PendingWork]]:
    """Group short conversations, so that the encoder is not fed them one by one."""
    groups: list[list[PendingWork]] = [[]]
    size = 0
    for work in page:
        if groups[-1] and size + work.last_seq - work.done_seq > limit:
            groups.append([])
            size = 0
        groups[-1].append(work)
        size += work.last_seq - work.done_seq
    return groups


async def _drain(database: Database, deriver: Deriver[B, R], group: list[PendingWork], run: RunState) -> None:
    """Step until nothing of the group is left; if a step fails, go on with each conversation by itself."""
    while group and not run.stop_requested.is_set():
        try:
            steps = await run_step(database, deriver, group, run)
            # What is said meanwhile is for the next run: it would go on for as long as somebody talks.
            group = [replace(step.work, done_seq=step.done_seq) for step in steps if step.done_seq < step.work.last_seq]
        except SHARED_FAILURES:
            raise
        except Exception as error:  # one conversation that cannot be derived must not hold up the others
            if len(group) == 1:
                await record_failure(database, group[0], await read_recipe(deriver), error, run)
                return
            for work in group:
                await _drain(database, deriver, [work], run)
            return


class StepResult(NamedTuple):
    """How far a step came in a conversation, and the conversation's last message by now."""

    work: PendingWork
    done_seq: int
    last_seq: int

    @property
    def has_more(self) -> bool:
        """Whether messages are left to derive."""
        return self.done_seq < self.last_seq


class LoadedBatch(NamedTuple, Generic[B, R]):
    """A batch, the deriver with the user's active embedder, and the user's epoch at the time of loading."""

    deriver: Deriver[B, R]
    batch: B
    epoch: UserVersion | None


async def run_step(
    database: Database, deriver: Deriver[B, R], group: Sequence[PendingWork], run: RunState
) -> list[StepResult]:
    """Load, compute and save the next batch of each conversation of a group.

    A conversation that another process derives at the same time has no result. If another embedder became active for
    a user meanwhile, the conversation takes the step again; if something of the user was erased, the result says where
    the deriver stands by now.
    """
    loaded = [await load_batch(database, deriver, work) for work in group]
    recipe = await read_recipe(deriver)
    if deriver.name == SummaryDeriver.name:
        database.publish([_started_event(work, recipe) for work in group])
    steps: list[StepResult] = []
    again: list[PendingWork] = []
    for work, (own, _, epoch), result in zip(group, loaded, await _compute(loaded), strict=True):
        try:
            async with erasure.transaction_if_unchanged(database, work.user_id, epoch) as scope:
                counts = await own.save(scope, result)
                if any(counts.get(kind) for kind in ("summaries", "facts", QUARANTINED)):
                    event = _result_event(work, recipe, counts, from_seq=work.done_seq + 1, to_seq=result.to_seq)
                    scope.events.append(event)
                # Last: whoever adds messages waits for it.
                made_by = None if counts.get("letters") else recipe
                last_seq = await watermarks.advance(scope, work, result.to_seq, made_by)
        except ConcurrentUpdate as lost:
            await _record_llm_usage(database, work, [result])
            if isinstance(lost, ModelChanged):
                again.append(work)
            else:  # another worker does this conversation, or something of the user was erased meanwhile
                steps += await _find_step_after_erasure(database, work, epoch)
            continue
        run.advance(work, result.to_seq, counts)
        steps.append(StepResult(work, result.to_seq, last_seq))
    return [*steps, *(await run_step(database, deriver, again, run))] if again else steps


# A user's version and embedders: rows computed now are to be saved under the same ones.
USER_STATE = (erasure.VERSION, chunks.MODELS)


async def load_batch(database: Database, deriver: Deriver[B, R], work: PendingWork) -> LoadedBatch[B, R]:
    """Return the next batch of a conversation."""
    async with database.user_transaction(work.user_id, USER_STATE) as scope:
        epoch, models = scope.first
        batch = await deriver.load(scope, work, deriver.producer.batch_size)
    return LoadedBatch(await _with_models(database, deriver, models), batch, epoch)


async def _with_models(database: Database, deriver: Deriver[B, R], models: Sequence[Model]) -> Deriver[B, R]:
    """Return the deriver with the embedder that is active for a user with these models; raises `EmbedderMismatch`."""
    dependencies = await with_active_embedder(database, deriver.dependencies, models)
    return deriver if dependencies is deriver.dependencies else type(deriver)(dependencies)


async def _compute(loaded: Sequence[LoadedBatch[B, R]]) -> list[R]:
    """Return the result of each batch; those of one embedder are computed together."""
    results: dict[int, R] = {}
    models = [chunks.model_id(one.deriver.dependencies.embedder) for one in loaded]
    for model in dict.fromkeys(models):
        places = [place for place, other in enumerate(models) if other == model]
        batches = [loaded[place].batch for place in places]
        results |= zip(places, await to_thread(loaded[places[0]].deriver.compute, batches), strict=True)
    return [results[place] for place in range(len(loaded))]


async def _find_step_after_erasure(
    database: Database, work: PendingWork, epoch: UserVersion | None
) -> list[StepResult]:
    """Return where a deriver stands, if it was an erasure that came between: nobody else goes on there."""
    async with database.user_transaction(work.user_id) as scope:
        if await scope.get(erasure.VERSION) == epoch:
            return []
        watermark = await watermarks.watermark(scope, work)
    return [] if watermark is None else [StepResult(watermark, watermark.done_seq, watermark.last_seq)]


async def read_recipe(deriver: Deriver[Any, Any]) -> str:
    """Return the recipe of a deriver: a model's server may be asked for it, with no connection held."""
    return await to_thread(lambda: deriver.producer.recipe)


async def _record_llm_usage(database: Database, work: PendingWork, results: Sequence[BatchResult]) -> None:
    """Store what dropped answers cost: they count for the day's tokens all the same."""
    if sessions := [result.llm_session for result in results if result.llm_session]:
        async with database.user_transaction(work.user_id, [erasure.LOCKED_VERSION]) as scope:
            if scope.first != [None]:  # an erased user counts for nobody
                for session in sessions:
                    await llm_usage.keep(scope, session.usage, ())


async def record_failure(database: Database, work: PendingWork, recipe: str, error: Exception, run: RunState) -> None:
    """Record that a deriver failed in a conversation, which stays as it is."""
    # The type says enough for the table, which the operator may read; the message could quote what was said.
    async with database.user_transaction(work.user_id, [erasure.LOCKED_VERSION]) as scope:
        if await messages.conversation(scope, work.conversation_id) is None:  # erased meanwhile
            return
        await watermarks.fail(scope, work, type(error).__name__)
        if work.deriver == SummaryDeriver.name:
            body = {"strategy": recipe, "from_seq": work.done_seq + 1, "error": type(error).__name__}
            scope.happened(EventType.SUMMARIZATION_FAILED, work.conversation_id, **body)
    logger.warning("%s failed in conversation %s", work.deriver, work.conversation_id, exc_info=error)
    run.failed.append(f"{work.deriver} of conversation {work.conversation_id}: {type(error).__name__}: {error}")


async def _rebuild_outdated(database: Database, deriver: Rebuildable[B, R], only: DeriveScope, run: RunState) -> None:
    after: StaleWork | None = None
    recipe = await read_recipe(deriver)
    while True:
        async with database.admin_transaction() as scope:
            page = await watermarks.stale_work(scope, deriver.name, recipe, only=only.user, after=after)
        if not page:
            return
        after = page[-1]
        for work in page:
            if run.stop_requested.is_set():
                return
            try:
                await _rebuild(database, deriver, work, recipe, run)
            except SHARED_FAILURES:
                raise
            except Exception as error:  # a conversation that cannot be rebuilt stays as it is, and the others go on
                await record_failure(database, work, recipe, error, run)


async def _rebuild(database: Database, deriver: Rebuildable[B, R], work: StaleWork, recipe: str, run: RunState) -> None:
    """Compute what a conversation has anew, batch by batch, and replace it in one transaction."""
    results: list[R] = []
    try:
        done_seq = 0
        async with database.user_transaction(work.user_id, USER_STATE) as scope:
            epoch, models = scope.first
        own = cast(Rebuildable[B, R], await _with_models(database, deriver, models))
        while done_seq < work.done_seq:
            rest = PendingWork(work.user_id, work.conversation_id, work.deriver, done_seq, work.done_seq)
            async with database.user_transaction(work.user_id) as scope:
                batch = await own.reload(scope, rest, own.producer.batch_size, results)
            results += await to_thread(own.compute, [batch])
            done_seq = results[-1].to_seq
        async with erasure.transaction_if_unchanged(database, work.user_id, epoch) as scope:
            counts = await own.replace(scope, work.conversation_id, results, recipe)
            scope.events.append(_result_event(work, recipe, counts, from_seq=1, to_seq=work.done_seq, redone=True))
            await watermarks.mark_rederived(scope, work, None if counts.get("letters") else recipe)
    except Exception as error:  # whatever it is goes on, after what the answers cost was stored
        await _record_llm_usage(database, work, results)
        if isinstance(error, ModelChanged):
            return await _rebuild(database, deriver, work, recipe, run)
        if isinstance(error, ConcurrentUpdate):
            return None  # somebody else derives this conversation, or some of it was erased
        raise
    run.made.update(counts)
    run.made["redone"] += 1
    return None


async def _embed_missing(database: Database, dependencies: Dependencies, only: DeriveScope, run: RunState) -> None:
    """Embed every unit that lacks a vector of the active embedder, user by user."""
    async for user, _ in messages.everybody(database):
        if only.user not in (None, user):
            continue
        async with database.user_transaction(user) as scope:
            counts = await messages.counts(scope)
        total = run.done[VECTORS] + counts["units"] - counts["vectors"]

        def progress(units: int, total: int = total) -> None:
            run.done[VECTORS] += units
            run.progress(VECTORS, run.done[VECTORS], total)

        try:
            run.made[VECTORS] += await embed_missing_units(database, dependencies, user, progress)
        except EmbedderMismatch as error:  # of this user; the others go on
            run.failed.append(f"{VECTORS} of user {user}: {type(error).__name__}: {error}")


def _started_event(work: PendingWork, recipe: str) -> Event:
    """Return the event of a summarization that begins or goes on; it is published and not stored."""
    kind = EventType.SUMMARIZATION_PROGRESS if work.done_seq else EventType.SUMMARIZATION_STARTED
    body = {"strategy": recipe, "from_seq": work.done_seq + 1, "to_seq": work.last_seq}
    return Event(work.user_id, kind, work.conversation_id, body)


def _result_event(work: PendingWork, recipe: str, counts: Mapping[str, int], **body: int) -> Event:
    if work.deriver == FactDeriver.name:
        body = {**body, "facts": counts.get("facts", 0)}
        if quarantined := counts.get(QUARANTINED):
            body = {**body, QUARANTINED: quarantined}
        return Event(work.user_id, EventType.FACTS_EXTRACTED, work.conversation_id, {"recipe": recipe, **body})
    before, after = counts.get("before", 0), counts.get("after", 0)
    sizes = {"summaries": counts.get("summaries", 0), "before": before, "after": after, "saved": before - after}
    body = {**body, **sizes}
    return Event(work.user_id, EventType.SUMMARIZATION_COMPLETED, work.conversation_id, {"strategy": recipe, **body})
