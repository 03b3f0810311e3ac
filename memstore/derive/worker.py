"""A worker takes jobs from the queue and derives what is pending in their conversations. Async only, without a twin.

Jobs are procrastinate's and delivered at least once: when a worker is killed, others take up its jobs after its
heartbeat has stopped. What it had written stands with its watermark; what it had not is derived again, the same.

A job makes one step of each deriver that is behind in a conversation, and enqueues the conversation again where more
is left: so whoever is talking goes before a long history, a pause takes effect soon, and no worker is busy for long.
Facts of a user are reconciled with each other, so they are taken one conversation after the other, by their ids, as
`derive` does.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any, TypeVar
from uuid import UUID

from procrastinate import App, JobContext, PsycopgConnector, RetryStrategy
from procrastinate.app import WorkerOptions
from procrastinate.exceptions import ConnectorException
from procrastinate.jobs import Job, Status
from procrastinate.manager import JobManager

from memstore.derive.dependencies import Dependencies
from memstore.derive.facts.deriver import FactDeriver
from memstore.derive.maintenance import run_maintenance
from memstore.derive.pipeline import (
    SHARED_FAILURES,
    Deriver,
    RunState,
    make_derivers,
    read_recipe,
    record_failure,
    run_step,
)
from memstore.derive.scheduler import enqueue_pending
from memstore.errors import DatabaseError, DatabaseUnreachable, MemstoreError, ModelAnswerInvalid, ModelUnavailable
from memstore.providers import ChatMessage, ChatModel, Completion, T
from memstore.store import backfills, llm_usage, messages, queue, watermarks
from memstore.store.database import Database
from memstore.store.rows import LaggingWork
from memstore.store.watermarks import ConversationKey
from memstore.telemetry import operation_span

logger = logging.getLogger("memstore")

R = TypeVar("R")
Derivers = Mapping[str, Deriver[Any, Any]]  # by name

SWEEP_TASK, RETENTION_TASK = "memstore.sweep", "memstore.retain"
URGENT = 100  # the priority of a sweep, which takes milliseconds
HEARTBEATS = 6  # within the time after which a worker counts as dead
MODEL_RETRY = timedelta(seconds=60)  # until a chat model that is away is asked again
RETRY_SECONDS = 10  # more before each attempt
MAINTENANCE_SECONDS = 30.0  # between two looks at what users need
CONNECTIONS = 4  # for the queue: jobs hold none while they work

RETRY_TOKENS = 600  # that a second try adds to the prompt: what was wrong with the first answer
RESERVE_SECONDS = 30.0  # to wait for tokens that other calls reserved and may give back; a killed worker never does
RESERVE_POLL_SECONDS = 0.2


class ConversationFailed(MemstoreError):
    """A deriver failed in a conversation; the log and the watermark say why."""


@dataclass(frozen=True, slots=True)
class JobResult:
    """Whether more is to be done at once in the conversation, and the conversation whose facts come next, if any."""

    is_behind: bool
    next_facts: ConversationKey | None


async def run_conversation_job(
    database: Database,
    derivers_of_backfill: Callable[[UUID | None], Derivers],
    user: UUID,
    conversation: UUID,
    run: RunState,
    *,
    of_backfill: bool = False,
) -> JobResult:
    """Let each deriver that is behind in a conversation make one step, but for what a paused backfill holds.

    `run` collects what they make, which of them fail and which wait for a model. A job `of_backfill` does only what a
    running backfill has: a backfill of units alone does not wait for everything else that its conversations lack.
    """
    async with database.admin_transaction() as scope:
        behind = await watermarks.lagging_work(scope, user, conversation)
    ready = [work for work in behind if work.in_line and work.state != backfills.PAUSED]
    ready = [work for work in ready if work.state == backfills.RUNNING or not of_backfill]
    # At once: one computes while another writes. They know nothing of each other's rows.
    steps = [_make_step(database, derivers_of_backfill(work.backfill)[work.deriver], work, run) for work in ready]
    outcomes = await asyncio.gather(*steps, return_exceptions=True)
    for outcome in outcomes:
        if isinstance(outcome, BaseException):
            raise outcome
    still_behind = {work.deriver for work, has_more in zip(ready, outcomes, strict=True) if has_more}
    facts = [work for work in ready if work.deriver == FactDeriver.name and FactDeriver.name not in still_behind]
    return JobResult(bool(still_behind), await _next_facts(database, facts))


async def _next_facts(database: Database, done: Sequence[LaggingWork]) -> ConversationKey | None:
    """Return whose facts come next: the same history gives the same facts, however many workers there are."""
    for work in done:
        async with database.admin_transaction() as scope:
            place = await watermarks.next_in_line(scope, work)
        return place if place and place.conversation_id != work.conversation_id else None
    return None


async def _make_step(database: Database, deriver: Deriver[Any, Any], work: LaggingWork, run: RunState) -> bool:
    """Make a step; return whether there is another to make. What was added meanwhile is one, or has its own job."""
    try:
        steps = await run_step(database, deriver, [work], run)
    except ModelUnavailable as error:
        run.waiting.append(f"{deriver.name}: {error}")
        return False
    except SHARED_FAILURES:
        raise
    except Exception as error:  # whatever a conversation does to one deriver, the others get their step
        await record_failure(database, work, await read_recipe(deriver), error, run)
        return False
    return not steps or steps[0].has_more


class Worker:
    """Works on an open database until it is stopped, several conversations at a time.

    With `only` it enqueues what a backfill has, and nothing else that is pending.
    """

    def __init__(
        self, database: Database, dependencies: Dependencies, *, concurrency: int, only: UUID | None = None
    ) -> None:
        self._counts: Counter[str] = Counter()
        self._users: set[UUID] = set()  # whose memory was derived, without maintenance since
        self._database = database
        # Embedders of users for whom another one is active stay loaded as long as this works.
        self._dependencies = replace(dependencies, exactly=cache(dependencies.exactly))
        self._derivers_by_backfill: dict[UUID | None, Derivers] = {}
        self._settings = dependencies.settings
        self._concurrency = concurrency
        self._only = only
        self._stopping = False
        self._running: asyncio.Task[None] | None = None

    @property
    def made(self) -> dict[str, int]:
        """How many messages went through, what was made of them, and how often a deriver failed."""
        return {kind: self._counts[kind] for kind in ("messages", "units", "summaries", "facts", "failed")}

    def stop(self) -> None:
        """Take no further job; `run` returns when those that run are done."""
        self._stopping = True
        self._restart()

    def _restart(self) -> None:
        if self._running is not None:
            self._running.cancel()  # procrastinate finishes what runs, and takes nothing more

    async def run(self) -> None:
        """Work until `stop` is called. While the database is away, wait for it."""
        threads = self._concurrency * len(watermarks.DERIVERS) + 4  # asyncio's own pool has six on two cores
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(threads, "memstore-work"))
        maintenance = asyncio.create_task(self._maintain_users_repeatedly())
        pause = 0.5
        try:
            while not self._stopping:
                try:
                    await self._run_app()
                    pause = 0.5
                except (ConnectorException, DatabaseUnreachable) as error:
                    cause = error.__cause__ or error
                    logger.warning("the queue does not answer, trying again in %.1f s: %s", pause, cause)
                    pause = min(pause * 2, 30.0)
                    await self._reconnect()
                if not self._stopping:
                    await asyncio.sleep(pause)
        finally:
            maintenance.cancel()
            await self._maintain_or_log()

    async def _reconnect(self) -> None:
        """Open a transaction: this starts an embedded database that has died again."""
        with suppress(DatabaseError):
            async with self._database.admin_transaction():
                pass

    async def _run_app(self) -> None:
        """Run procrastinate's worker under a new number, until it is stopped or the database goes away.

        Jobs that could not be marked as done keep the old number, and are taken up as a dead worker's.
        """
        stalled = self._settings.worker_stalled_seconds
        async with self._app().open_async() as app:
            options: WorkerOptions = {
                "concurrency": self._concurrency,
                "install_signal_handlers": False,
                "update_heartbeat_interval": stalled / HEARTBEATS,
                "stalled_worker_timeout": stalled,
                "fetch_job_polling_interval": 1.0,
                "delete_jobs": "successful",
                # A pooler would notify somebody else: jobs are then polled each second.
                "listen_notify": not self._database.capabilities.pooled,
            }
            if not self._stopping:
                self._running = asyncio.create_task(app.run_worker_async(**options))
                await asyncio.wait([self._running])
                if not self._running.cancelled():
                    self._running.result()

    def _app(self) -> App:
        kwargs = {"application_name": "memstore worker", "prepare_threshold": None}
        connector = PsycopgConnector(conninfo=self._database.url, kwargs=kwargs, min_size=1, max_size=CONNECTIONS)
        app = App(connector=connector)
        attempts = self._settings.worker_attempts
        retry = attempts > 1 and RetryStrategy(max_attempts=attempts - 1, wait=1, linear_wait=RETRY_SECONDS)
        app.task(name=queue.TASK, queue=queue.QUEUE, retry=retry, pass_context=True)(self._derive)
        sweep = app.task(name=SWEEP_TASK, queue="sweep", queueing_lock=SWEEP_TASK, priority=URGENT, pass_context=True)(
            self._sweep
        )
        app.periodic(cron=f"* * * * * */{self._settings.worker_sweep_seconds}")(sweep)  # the sixth field is of seconds
        retention = app.task(name=RETENTION_TASK, queue="sweep", queueing_lock=RETENTION_TASK, pass_context=False)(
            self._apply_retention
        )
        app.periodic(cron="7 * * * *")(retention)
        return app

    async def _derive(self, context: JobContext, user: str, conversation: str) -> None:
        """Run a conversation's job, and enqueue the conversation again where more is left."""
        run = RunState()  # of its own: what fails meanwhile in other conversations is no failure of this one
        job, place = context.job, ConversationKey(UUID(user), UUID(conversation))
        try:
            await self._update_token_budget()
            with operation_span("derive") as span:
                result = await run_conversation_job(
                    self._database, self._derivers, *place, run, of_backfill=queue.is_of_backfill(job.priority)
                )
                span.set(**_totals(run))
        except DatabaseUnreachable:
            self._restart()
            raise
        finally:
            self._counts.update(_totals(run))
            self._users |= run.users
        if result.next_facts:
            await self._defer(context.app, result.next_facts, queue.next_in_line_priority(job.priority))
        if result.is_behind:
            await self._defer(context.app, place, job.priority)
        elif (run.failed or run.waiting) and not await queue.has_other_job(self._database, job.id or 0, conversation):
            if run.failed:
                raise ConversationFailed(f"{len(run.failed)} derivers failed; the log says why")
            logger.warning("waiting: %s", "; ".join(run.waiting))
            at = datetime.now(UTC) + MODEL_RETRY  # by a new job: to wait is no attempt
            await self._defer(context.app, place, min(job.priority, queue.PRIORITY_SWEPT), at)

    async def _defer(self, app: App, place: ConversationKey, priority: int, at: datetime | None = None) -> None:
        user, conversation = map(str, place)
        task = app.configure_task(queue.TASK, queue=queue.QUEUE, lock=conversation, priority=priority, schedule_at=at)
        await task.defer_async(user=user, conversation=conversation)

    async def _update_token_budget(self) -> None:
        """Read how many tokens chat models may still use today, whoever used the others."""
        if self._settings.llm_daily_tokens is not None:
            async with self._database.admin_transaction() as scope:
                self._dependencies.token_budget.left = await llm_usage.left(scope, self._settings.llm_daily_tokens)

    def _derivers(self, backfill: UUID | None) -> Derivers:
        """Return the derivers by name; those of a backfill ask chat models within its cap."""
        if backfill not in self._derivers_by_backfill:
            dependencies = self._dependencies if backfill is None else self._with_cap(backfill)
            self._derivers_by_backfill[backfill] = {deriver.name: deriver for deriver in make_derivers(dependencies)}
        return self._derivers_by_backfill[backfill]

    def _with_cap(self, backfill: UUID) -> Dependencies:
        summary, facts = (
            None if model is None else CappedChatModel(model, self._database, backfill)
            for model in (self._dependencies.summary_model, self._dependencies.facts_model)
        )
        return replace(self._dependencies, summary_model=summary, facts_model=facts)

    async def _maintain_users_repeatedly(self) -> None:
        while True:
            await asyncio.sleep(MAINTENANCE_SECONDS)
            await self._maintain_or_log()

    async def _maintain_or_log(self) -> None:
        try:
            await self._maintain_users()
        except DatabaseError as error:
            logger.warning("maintenance of users is tried again later: %s", error)

    async def _maintain_users(self) -> None:
        """Maintain users with nothing pending: an index of vectors is built after a history came in, not during."""
        for user in list(self._users):
            async with self._database.admin_transaction() as scope:
                pending = await watermarks.backlog(scope, only=user)
            if not pending:
                self._users.discard(user)  # before, as a job may add the user again meanwhile
                try:
                    await run_maintenance(self._database, [user], self._settings)
                except (DatabaseError, asyncio.CancelledError):
                    self._users.add(user)
                    raise

    async def _apply_retention(self, timestamp: int) -> None:
        """Maintain every user, also those without new messages: nothing is kept for longer than it may be."""
        async for user, _ in messages.everybody(self._database):
            await run_maintenance(self._database, [user], self._settings)

    async def _sweep(self, context: JobContext, timestamp: int) -> None:
        """Take up the jobs of dead workers, and enqueue what is pending and has no job."""
        manager, seconds = context.app.job_manager, self._settings.worker_stalled_seconds
        for job in await manager.get_stalled_jobs(seconds_since_heartbeat=seconds):
            with suppress(ConnectorException):  # it has ended meanwhile: its worker was only slow
                await self._take_up(manager, job)
        await manager.prune_stalled_workers(seconds)
        await enqueue_pending(self._database, only=self._only)

    async def _take_up(self, manager: JobManager, job: Job) -> None:
        """Have another worker do a dead worker's job."""
        if job.task_name in (SWEEP_TASK, RETENTION_TASK):  # a retry would meet the lock of the next one
            await manager.finish_job(job, status=Status.FAILED, delete_job=True)
        elif job.attempts + 1 >= self._settings.worker_attempts:  # it may be what kills the workers
            await manager.finish_job(job, status=Status.FAILED, delete_job=False)
        else:
            await manager.retry_job(job)


class CappedChatModel:
    """Wraps a ChatModel so that its calls count for a backfill; raises `ModelUnavailable` at the cap.

    Each call reserves its tokens before it is made, as workers share the cap. The model is called in a thread; the
    event loop asks the database for the tokens.
    """

    def __init__(self, model: ChatModel, database: Database, backfill: UUID) -> None:
        self._model, self._database, self._backfill = model, database, backfill
        self._loop = asyncio.get_running_loop()

    @property
    def name(self) -> str:
        """Return the model's name."""
        return self._model.name

    @property
    def context_tokens(self) -> int:
        """Return the model's window."""
        return self._model.context_tokens

    def max_prompt_tokens(self, messages: Sequence[ChatMessage]) -> int:
        """Return a number of tokens that the prompt does not exceed."""
        return self._model.max_prompt_tokens(messages)

    def complete(self, messages: Sequence[ChatMessage], schema: type[T], *, max_tokens: int) -> Completion[T]:
        """Return the model's answer, after reserving its tokens."""
        once = self.max_prompt_tokens(messages) + max_tokens
        tokens = once + min(self.context_tokens, once + RETRY_TOKENS)  # it may be asked once more
        self._reserve(tokens)
        spent = 0
        try:
            answer = self._model.complete(messages, schema, max_tokens=max_tokens)
            spent = answer.prompt_tokens + answer.completion_tokens
            return answer
        except ModelAnswerInvalid as error:
            spent = error.prompt_tokens + error.completion_tokens
            raise
        finally:
            self._run(self._settle(tokens, spent))

    def _reserve(self, tokens: int) -> None:
        last = time.monotonic() + RESERVE_SECONDS
        while not self._run(self._try_reserve(tokens, now=time.monotonic() > last)):
            time.sleep(RESERVE_POLL_SECONDS)

    async def _try_reserve(self, tokens: int, *, now: bool) -> bool:
        async with self._database.admin_transaction() as scope:
            if await backfills.reserve(scope, self._backfill, tokens):
                return True
            await backfills.out_of_tokens(scope, self._backfill, tokens, now=now)
        async with self._database.admin_transaction() as scope:
            (row,) = await backfills.backfills(scope, self._backfill)
        if row.state == backfills.RUNNING:
            return False
        raise ModelUnavailable(
            f"The backfill {self._backfill} is {row.state}: a call of up to {tokens} tokens may not be made, of "
            f"{row.max_tokens} there are {row.spent_tokens + row.taken_tokens} spent. What is pending waits."
        )

    async def _settle(self, taken: int, spent: int) -> None:
        async with self._database.admin_transaction() as scope:
            await backfills.settle(scope, self._backfill, taken=taken, spent=spent)

    def _run(self, coroutine: Coroutine[Any, Any, R]) -> R:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()


def _totals(run: RunState) -> dict[str, int]:
    made = {kind: run.made[kind] for kind in ("units", "summaries", "facts")}
    return {"messages": run.done["embed"], **made, "failed": len(run.failed)}
