"""The pipeline: each deriver loads pending messages, computes rows of them, and saves the rows with its watermark.

A deriver loads a batch in one transaction, computes with no transaction open, and saves its rows in another, in which
the watermark moves by compare-and-set. Killed anywhere, it begins again at the watermark and makes the same rows.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import accumulate, groupby
from threading import Event as Flag, Lock
from typing import Any, NamedTuple, Protocol
from uuid import UUID

from memstore._compat import run_all, to_thread
from memstore.derive.chunks import ChunkDeriver
from memstore.derive.dependencies import Dependencies, DerivedBatch, DeriverTraits
from memstore.derive.facts.deriver import FactDeriver
from memstore.derive.llm import CallMeter, CallsLost
from memstore.derive.maintenance import renew_terms, run_maintenance
from memstore.derive.summaries.deriver import SummaryDeriver
from memstore.errors import DatabaseUnreachable, EmbedderMismatch, ModelUnavailable, ProviderMissing
from memstore.models import QUARANTINED, CallProgress, DeriveReport, Event, EventType
from memstore.store import chunks, erasure, llm_usage, messages, watermarks
from memstore.store.database import Database, Transaction
from memstore.store.embedding_models import ModelChanged, load_active_embedder
from memstore.store.erasure import UserVersion
from memstore.store.errors import ConcurrentUpdate
from memstore.store.rows import PendingWork, StaleWork

logger = logging.getLogger("memstore")

Progress = Callable[[str, int, int], None]
OnCall = Callable[[CallProgress], None]
# Of every conversation, not of one.
SHARED_FAILURES = (DatabaseUnreachable, EmbedderMismatch, ProviderMissing, ModelUnavailable)
REBUILDABLE = ("facts", "summaries")


class Deriver(Protocol):
    """Makes rows of one kind from messages: loads batches, computes a result for each, and saves it.

    Derivers of summaries and facts also have `stale_work`, the conversations of a user that are to be made anew;
    `reload`, which loads as if nothing were stored of a conversation but some results; and `replace`, which replaces
    all rows of a conversation by results.
    """

    name: str
    dependencies: Dependencies

    def __init__(self, dependencies: Dependencies) -> None: ...

    @property
    def producer(self) -> DeriverTraits:
        """The producer of the rows."""

    async def load(self, tx: Transaction, work: PendingWork, limit: int) -> Any:
        """Return the batch of the next `limit` messages."""

    def compute(self, batches: Sequence[Any]) -> Sequence[DerivedBatch]:
        """Return the result for each batch, without the database. Raises `ModelUnavailable` if a model is away."""

    async def save(self, tx: Transaction, result: Any) -> dict[str, int]:
        """Store a result; return how many rows of each kind were new.

        With `invalid_responses`, unusable ones of a model, a part was made by another recipe.
        """


@dataclass(frozen=True, slots=True)
class DeriveScope:
    """The work of a run: of one user, one conversation, by some derivers only; by default everything."""

    user: UUID | None = None
    conversation: UUID | None = None
    derivers: Sequence[str] = watermarks.DERIVERS


@dataclass(slots=True)
class RunState:
    """The rows made so far, the failures, and how far each deriver is.

    `refused` are messages without a vector, `began` is when each deriver asked a chat model first. A deriver that fails
    requests the others to stop; they run in threads.
    """

    progress: Progress = lambda *_: None
    totals: Counter[str] = field(default_factory=Counter)
    made: Counter[str] = field(default_factory=Counter)
    done: Counter[str] = field(default_factory=Counter)
    failed: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    waiting: list[str] = field(default_factory=list)
    users: set[UUID] = field(default_factory=set)
    stop_requested: Flag = field(default_factory=Flag)
    lock: Lock = field(default_factory=Lock)
    began: dict[str, float] = field(default_factory=dict)

    def advance(self, work: PendingWork, to_seq: int, counts: Mapping[str, int]) -> None:
        """Record the rows that a deriver made of the messages up to `to_seq`."""
        with self.lock:
            self.users.add(work.user_id)
            self.made.update(counts)
            self.done[work.deriver] += to_seq - work.done_seq
            self.progress(work.deriver, self.done[work.deriver], self.totals[work.deriver])

    def report_refused(self, work: PendingWork, messages: Sequence[UUID]) -> None:
        if messages:
            names = ", ".join(map(str, messages))
            place = f"{work.deriver} of conversation {work.conversation_id}"
            self.refused.append(f"{place}: the embedder refuses {names}, found by words alone")

    def wait(self, deriver: str, error: ModelUnavailable) -> None:
        """Record that messages wait for a chat model, and why."""
        if (waiting := f"{deriver}: {error}") not in self.waiting:
            self.waiting.append(waiting)

    def complete(self, call: CallProgress) -> CallProgress:
        """Return the progress of a call with that of this run: how far it is, and how long the rest may take."""
        now, deriver = time.monotonic(), call.usage.deriver
        seconds, done = now - self.began.setdefault(deriver, now), self.done[deriver]
        total, refused = max(done, self.totals[deriver]), self.made["refused"] + self.made["invalid_responses"]
        left = seconds / done * (total - done) if done and seconds else None
        return replace(call, done=done, total=total, refused=refused, seconds_left=left)


async def derive(
    database: Database,
    dependencies: Dependencies,
    only: DeriveScope | None = None,
    *,
    redo: str | None = None,
    progress: Progress = lambda *_: None,
    on_call: OnCall = lambda _: None,
) -> DeriveReport:
    """Derive pending messages; return how many rows were made, the failures, and the cost of chat models.

    `redo` names a deriver whose rows of other recipes are rebuilt first, conversation by conversation.
    """
    only = only or DeriveScope()
    await watermarks.reopen_ended_sessions(database, only=only.user)
    async with database.admin_transaction() as tx:
        run = RunState(progress, Counter(await watermarks.backlog(tx, only=only.user)))
        meter = CallMeter(lambda call: on_call(run.complete(call)))
        if (cap := dependencies.settings.llm_daily_tokens) is not None:
            meter.left = await llm_usage.tokens_left(tx, cap)
    dependencies = replace(dependencies, meter=meter)
    derivers = make_derivers(dependencies)
    calls = [partial(_run_deriver, database, deriver, only, redo, run) for deriver in derivers]
    # One model, one question at a time.
    if any(deriver.producer.uses_llm for deriver in derivers):
        for call in calls:
            await call()
    else:
        # At once: messages are read while vectors are computed and rows are written.
        await run_all(calls, run.stop_requested.set)
    async with database.admin_transaction() as tx:
        stale = await chunks.users_of_other_tokenizer(tx, only.user)
    for user in stale:
        await renew_terms(database, user)
    await run_maintenance(database, run.users, dependencies.settings)
    kinds = ("chunks", "summaries", "facts", "redone", "invalid_responses", "refused", QUARANTINED)
    counts = {kind: run.made[kind] for kind in kinds}
    usage = tuple(each for each in meter.usage.values() if each.calls)
    failed = (*run.failed, *run.refused)
    return DeriveReport(run.done["chunks"], **counts, failed=failed, waiting=tuple(run.waiting), usage=usage)


def make_derivers(dependencies: Dependencies) -> tuple[Deriver, ...]:
    return ChunkDeriver(dependencies), SummaryDeriver(dependencies), FactDeriver(dependencies)


async def _run_deriver(
    database: Database, deriver: Deriver, only: DeriveScope, redo: str | None, run: RunState
) -> None:
    try:
        if deriver.name == redo:
            await _rebuild_outdated(database, deriver, only, run)
        if deriver.name in only.derivers:
            await _derive_pending(database, deriver, only, run)
    except ModelUnavailable as error:  # pending messages wait; recall and contexts go on with what there is
        run.wait(deriver.name, error)


async def _derive_pending(database: Database, deriver: Deriver, only: DeriveScope, run: RunState) -> None:
    after: PendingWork | None = None
    limit = 1 if deriver.producer.uses_llm else deriver.producer.batch_size
    while not run.stop_requested.is_set():
        async with database.admin_transaction() as tx:
            page = await watermarks.pending_work(
                tx, deriver.name, only=only.user, conversation=only.conversation, after=after
            )
        if not page:
            return
        after = page[-1]
        # One by one, in order: a model is shown what is known by then.
        if deriver.producer.uses_llm:
            is_away = False
            for user, user_works in groupby(page, key=lambda work: work.user_id):
                works = list(user_works)
                try:
                    while works and not run.stop_requested.is_set():
                        async with database.user_transaction(user) as tx:
                            work, *works = await watermarks.in_order(tx, works)
                        works[:0] = await advance(database, deriver, [work], run)
                        is_away = False
                except ModelUnavailable as error:
                    if is_away:
                        raise
                    # Or it is for this user's words alone, which must not hold up the others.
                    is_away = True
                    run.wait(deriver.name, error)
            continue
        # Short conversations in groups, so that the encoder is not fed them one by one.
        sizes = accumulate(work.last_seq - work.done_seq for work in page)
        for _, sized in groupby(zip(page, sizes, strict=True), lambda pair: pair[1] // limit):
            group = [work for work, _ in sized]
            while group and not run.stop_requested.is_set():
                group = await advance(database, deriver, group, run)


async def advance(
    database: Database, deriver: Deriver, group: Sequence[PendingWork], run: RunState
) -> list[PendingWork]:
    """Take a step in each conversation; return what is left of them. If it fails, each takes it by itself.

    Raises `SHARED_FAILURES`. A conversation in which anything else goes wrong is recorded as failed, and left out.
    """
    try:
        # Messages added meanwhile are for the next run: otherwise a run would go on for as long as somebody talks.
        return [rest for rest in await run_step(database, deriver, group, run) if rest.done_seq < rest.last_seq]
    except SHARED_FAILURES:
        raise
    except Exception as error:  # one conversation that cannot be derived must not hold up the others
        if len(group) > 1:
            return [left for work in group for left in await advance(database, deriver, [work], run)]
        await _record_failure(database, group[0], await _read_recipe(deriver), error, run)
        return []


class Step(NamedTuple):
    """The next batch of a conversation, and the user's version when it was loaded."""

    work: PendingWork
    batch: Any
    version: UserVersion | None


async def run_step(
    database: Database, deriver: Deriver, group: Sequence[PendingWork], run: RunState
) -> list[PendingWork]:
    """Load, compute and save the next batch of each conversation of a group; return where each is by now.

    A conversation that another process derives at the same time is left out. If something of the user was erased
    meanwhile, or another embedder became active, the conversation takes the step again.
    """
    deriver = await _with_active_embedder(database, deriver)
    steps = [await _load(database, deriver, work) for work in group]
    recipe = await _read_recipe(deriver)
    results = await _compute(database, group[0], deriver, [step.batch for step in steps])
    done: list[PendingWork] = []
    again: list[PendingWork] = []
    for (work, _, version), result in zip(steps, results, strict=True):
        try:
            made_by = result.recipe or recipe
            async with erasure.transaction_if_unchanged(database, work.user_id, version) as tx:
                counts = await deriver.save(tx, result)
                if any(counts.get(kind) for kind in ("summaries", "facts", "refused", QUARANTINED)):
                    event = _result_event(work, made_by, counts, from_seq=work.done_seq + 1, to_seq=result.to_seq)
                    tx.events.append(event)
                # Last, since writers of messages wait for it.
                whole = None if counts.get("invalid_responses") else made_by
                await watermarks.advance(tx, work, result.to_seq, whole, result.closes_at)
        except Exception as error:  # whatever it is goes on, but what the answers cost is kept
            await _record_llm_usage(database, work, [result])
            if not isinstance(error, ConcurrentUpdate | ModelChanged):
                raise
            async with database.user_transaction(work.user_id, [erasure.VERSION]) as tx:
                is_outdated = isinstance(error, ModelChanged) or tx.result(erasure.VERSION) != version
                rest = await watermarks.watermark(tx, work) if is_outdated else None
            if rest and rest.done_seq < rest.last_seq:
                again.append(rest)
            continue
        run.advance(work, result.to_seq, counts)
        run.report_refused(work, result.without_vector)
        done.append(replace(work, done_seq=result.to_seq))
    return [*done, *(await run_step(database, deriver, again, run))] if again else done


async def _load(database: Database, deriver: Deriver, work: PendingWork) -> Step:
    async with database.user_transaction(work.user_id, [erasure.VERSION]) as tx:
        batch = await deriver.load(tx, work, deriver.producer.batch_size)
        return Step(work, batch, tx.result(erasure.VERSION))


async def _with_active_embedder(database: Database, deriver: Deriver) -> Deriver:
    """Return the deriver with the active embedder. Raises `EmbedderMismatch`."""
    dependencies = deriver.dependencies
    embedder = await load_active_embedder(database, dependencies.embedder, dependencies.load_by_name)
    if embedder is dependencies.embedder:
        return deriver
    return type(deriver)(replace(dependencies, embedder=embedder))


async def _compute(
    database: Database, work: PendingWork, deriver: Deriver, batches: Sequence[Any]
) -> Sequence[DerivedBatch]:
    """Return the results of batches; the cost of a failure is stored first."""
    try:
        return await to_thread(deriver.compute, batches)
    except CallsLost as lost:
        await _record_llm_usage(database, work, [lost])
        raise lost.error from None


async def _read_recipe(deriver: Deriver) -> str:
    """Return the recipe of a deriver: a model's server may be asked for it, with no connection held."""
    return await to_thread(lambda: deriver.producer.recipe)


async def _record_llm_usage(database: Database, work: PendingWork, results: Sequence[Any]) -> None:
    """Store the cost of dropped answers, which counts for the day's tokens all the same."""
    if sessions := [result.llm_session for result in results if result.llm_session]:
        async with database.user_transaction(work.user_id, [erasure.LOCKED_VERSION]) as tx:
            # An erased user counts for nobody.
            if tx.result(erasure.LOCKED_VERSION) is not None:
                for session in sessions:
                    await llm_usage.keep(tx, session.usage, ())


async def _record_failure(database: Database, work: PendingWork, recipe: str, error: Exception, run: RunState) -> None:
    """Record that a deriver failed in a conversation, which stays as it is."""
    # The type says enough for the table, which the operator may read; the message could quote what was said.
    async with database.user_transaction(work.user_id, [erasure.LOCKED_VERSION]) as tx:
        if await messages.conversation(tx, work.conversation_id) is None:  # erased meanwhile
            return
        await watermarks.fail(tx, work, type(error).__name__)
        if work.deriver == SummaryDeriver.name:
            body = {"strategy": recipe, "from_seq": work.done_seq + 1, "error": type(error).__name__}
            tx.record_event(EventType.SUMMARIZATION_FAILED, work.conversation_id, **body)
    logger.warning("%s failed in conversation %s", work.deriver, work.conversation_id, exc_info=error)
    run.failed.append(f"{work.deriver} of conversation {work.conversation_id}: {type(error).__name__}: {error}")


async def _iterate_users(database: Database, only: DeriveScope) -> AsyncIterator[UUID]:
    if only.user is not None:
        yield only.user
        return
    async for user, _ in messages.everybody(database):
        yield user


async def _rebuild_outdated(database: Database, deriver: Any, only: DeriveScope, run: RunState) -> None:
    recipe = await _read_recipe(deriver)
    async for user in _iterate_users(database, only):
        async with database.user_transaction(user) as tx:
            works = await watermarks.in_order(tx, await deriver.stale_work(tx, recipe))
        run.totals[deriver.name] += sum(work.done_seq for work in works)
        for work in works:
            if run.stop_requested.is_set():
                return
            try:
                await _rebuild(database, deriver, work, recipe, run)
            except SHARED_FAILURES:
                raise
            except Exception as error:  # a conversation that cannot be rebuilt stays as it is, and the others go on
                await _record_failure(database, work, recipe, error, run)


async def _rebuild(database: Database, deriver: Deriver, work: StaleWork, recipe: str, run: RunState) -> None:
    """Compute a conversation's rows anew, batch by batch, and replace them in one transaction."""
    results: list[DerivedBatch] = []
    try:
        done_seq = 0
        active_deriver: Any = await _with_active_embedder(database, deriver)
        async with database.user_transaction(work.user_id, [erasure.VERSION]) as tx:
            version = tx.result(erasure.VERSION)
        while done_seq < work.done_seq:
            rest = PendingWork(work.user_id, work.conversation_id, work.deriver, done_seq, work.done_seq)
            async with database.user_transaction(work.user_id) as tx:
                batch = await active_deriver.reload(tx, rest, active_deriver.producer.batch_size, results)
            results += await _compute(database, rest, active_deriver, [batch])
            done_seq = results[-1].to_seq
            run.advance(rest, done_seq, {})
        async with erasure.transaction_if_unchanged(database, work.user_id, version) as tx:
            recipe = results[0].recipe or recipe
            sessions = [result.llm_session for result in results if result.llm_session]
            invalid = [response for session in sessions for response in session.invalid_responses]
            await llm_usage.remove_invalid_responses(tx, work.conversation_id, deriver.name, but=invalid)
            counts = await active_deriver.replace(tx, work.conversation_id, results, recipe)
            tx.events.append(_result_event(work, recipe, counts, from_seq=1, to_seq=work.done_seq, redone=True))
            made_by = None if counts.get("invalid_responses") else recipe
            await watermarks.mark_rederived(tx, work, made_by, results[-1].closes_at)
    except Exception as error:  # whatever it is goes on, after what the answers cost was stored
        await _record_llm_usage(database, work, results)
        if isinstance(error, ModelChanged):
            return await _rebuild(database, deriver, work, recipe, run)
        if isinstance(error, ConcurrentUpdate):
            # Somebody else derives this conversation, or some of it was erased.
            return None
        raise
    run.made.update(counts)
    run.made["redone"] += 1
    return None


def _result_event(work: PendingWork, recipe: str, counts: Mapping[str, int], **body: int) -> Event:
    kind, made_by = EventType.SUMMARIZATION_COMPLETED, "strategy"
    if work.deriver == FactDeriver.name:
        kind, made_by = EventType.FACTS_EXTRACTED, "recipe"
        body |= {"facts": counts.get("facts", 0)}
        body |= {name: counts[name] for name in (QUARANTINED, "refused") if counts.get(name)}
    else:
        before, after = counts.get("before", 0), counts.get("after", 0)
        body |= {"summaries": counts.get("summaries", 0), "before": before, "after": after, "saved": before - after}
    return Event(work.user_id, kind, work.conversation_id, {made_by: recipe, **body})
