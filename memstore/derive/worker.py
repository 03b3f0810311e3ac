"""A worker takes jobs from the queue and derives what is pending in their conversations. Async only, without a twin.

Jobs are procrastinate's and delivered at least once: when a worker is killed, others take up its jobs after its
heartbeat has stopped. Rows that it saved stay with their watermark; the rest is derived again, with the same result.

A job makes one step of each deriver that is behind in a conversation, and enqueues the conversation again where more is
left: so live conversations go before a long history, a pause takes effect soon, and no worker is busy for long. Facts
of a user are reconciled with each other, so they are taken one conversation after the other, as they were said.

A sweep enqueues what is pending and has no job. It keeps the queue short, since fetching the next job takes longer the
more there are: of a backfill over a million conversations a window is in the queue, the rest in the watermarks.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Collection, Coroutine, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from procrastinate import App, JobContext, PsycopgConnector, RetryStrategy
from procrastinate.app import WorkerOptions
from procrastinate.exceptions import ConnectorException
from procrastinate.jobs import Job, Status
from procrastinate.manager import JobManager

from memstore.derive.dependencies import Dependencies
from memstore.derive.facts.deriver import FactDeriver
from memstore.derive.llm import CallMeter, usage_of
from memstore.derive.maintenance import renew_terms, run_maintenance
from memstore.derive.pipeline import Deriver, OnCall, RunState, advance, make_derivers
from memstore.derive.webhooks import RETRY_SECONDS, DeliveryFailed, DeliveryRetry, send
from memstore.errors import DatabaseError, DatabaseUnreachable, MemstoreError, ModelAnswerInvalid, ModelUnavailable
from memstore.models import CallProgress, Usage, WebhookEvent
from memstore.providers import ChatMessage, ChatModel, Completion, T
from memstore.store import backfills, llm_usage, messages, queue, watermarks, webhooks
from memstore.store.connections import options_of
from memstore.store.database import Database
from memstore.store.rows import LaggingWork
from memstore.store.watermarks import ConversationKey
from memstore.telemetry import operation_span

logger = logging.getLogger("memstore")

SWEEP_TASK, MAINTENANCE_TASK = "memstore.sweep", "memstore.retain"
# A sweep takes milliseconds.
SWEEP_SECONDS = 10
# Of silence make a worker dead: others do its jobs.
STALLED_SECONDS = 30.0
MAX_WAITING_JOBS = 1000


class ConversationFailed(MemstoreError):
    """A deriver failed in a conversation; the log and the watermark say why."""


class Worker:
    """Works on an open database until it is stopped, several conversations at a time.

    With `only` it enqueues what a backfill has, and nothing else that is pending.
    """

    def __init__(
        self,
        database: Database,
        dependencies: Dependencies,
        *,
        concurrency: int,
        only: UUID | None,
        on_call: OnCall,
    ) -> None:
        # How many messages went through, what was made of them, what was refused, and how often a deriver failed.
        self.made = Counter(_totals(RunState()))
        self.meter = CallMeter(self._show_call)
        self._on_call = on_call
        # The users whose memory was derived.
        self._users: set[UUID] = set()
        self._database = database
        self._dependencies = replace(dependencies, meter=self.meter)
        # By backfill, then by name.
        self._derivers: dict[UUID | None, Mapping[str, Deriver]] = {}
        self._settings = dependencies.settings
        self._concurrency = concurrency
        self._only = only
        self._stopping = False
        self._running: asyncio.Task[None] | None = None

    def stop(self) -> None:
        """Take no further job; `run` returns when those that run are done."""
        self._stopping = True
        self._restart()

    def _restart(self) -> None:
        if self._running is not None:
            # procrastinate finishes what runs, and takes nothing more.
            self._running.cancel()

    async def run(self) -> None:
        """Work until `stop` is called. While the database is away, wait for it."""
        # asyncio's own pool has six on two cores.
        threads = self._concurrency * len(watermarks.DERIVERS) + 4
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(threads, "memstore-work"))
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
                    with suppress(DatabaseError):
                        # This starts an embedded database that has died.
                        async with self._database.admin_transaction():
                            pass
                if not self._stopping:
                    await asyncio.sleep(pause)
        finally:
            # Else the hourly task does it.
            with suppress(DatabaseError):
                await run_maintenance(self._database, self._users, self._settings)

    async def _run_app(self) -> None:
        """Run procrastinate's worker under a new number, until it is stopped or the database goes away.

        Jobs that could not be marked as done keep the old number, and are taken up as a dead worker's.
        """
        async with self._app().open_async() as app:
            options: WorkerOptions = {
                "concurrency": self._concurrency,
                "install_signal_handlers": False,
                "update_heartbeat_interval": STALLED_SECONDS / 6,
                "stalled_worker_timeout": STALLED_SECONDS,
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
        kwargs = options_of(self._database.url) | {"application_name": "memstore worker", "prepare_threshold": None}
        # Jobs hold no connection while they work.
        connector = PsycopgConnector(conninfo=self._database.url, kwargs=kwargs, min_size=1, max_size=4)
        app = App(connector=connector)
        attempts = self._settings.worker_attempts
        retry = attempts > 1 and RetryStrategy(max_attempts=attempts - 1, wait=1, linear_wait=10)
        app.task(name=queue.TASK, queue=queue.QUEUE, retry=retry, pass_context=True)(self._derive)
        delivering = app.task(name=webhooks.TASK, queue=webhooks.QUEUE, retry=DeliveryRetry(), pass_context=True)
        delivering(self._deliver)
        sweep = app.task(name=SWEEP_TASK, queue="sweep", queueing_lock=SWEEP_TASK, priority=100, pass_context=True)(
            self._sweep
        )
        # The sixth field is of seconds.
        app.periodic(cron=f"* * * * * */{SWEEP_SECONDS}")(sweep)
        maintenance = app.task(
            name=MAINTENANCE_TASK, queue="sweep", queueing_lock=MAINTENANCE_TASK, pass_context=False
        )(self._maintain_users)
        app.periodic(cron="7 * * * *")(maintenance)
        return app

    # -- a job

    def _show_call(self, call: CallProgress) -> None:
        usage, refused = call.usage, self.made["refused"]
        if call.has_ended:
            numbers = (usage.calls, usage.prompt_tokens, usage.completion_tokens, usage.tokens_per_second, refused)
            template = "%s by %s: %d calls, %d tokens in, %d out, %.1f a second; refused: %d"
            logger.info(template, usage.deriver, usage.model, *numbers)
        self._on_call(replace(call, refused=refused))

    async def _derive(self, context: JobContext, user: str, conversation: str) -> None:
        """Run a conversation's job, and enqueue the conversation again where more is left."""
        # Of its own: failures in other conversations are not this one's.
        run = RunState()
        job, place = context.job, ConversationKey(UUID(user), UUID(conversation))
        try:
            if (cap := self._settings.llm_daily_tokens) is not None:
                # Others may have used some of today's tokens.
                async with self._database.admin_transaction() as tx:
                    self.meter.left = await llm_usage.tokens_left(tx, cap)
            with operation_span("derive") as span:
                is_behind, next_facts = await self._make_steps(place, run, queue.is_of_backfill(job.priority))
                span.set(**_totals(run))
        except DatabaseUnreachable:
            self._restart()
            raise
        finally:
            self.made.update(_totals(run))
            self._users |= run.users
        if next_facts:
            await self._defer(context.app, next_facts, queue.next_in_line_priority(job.priority))
        if is_behind:
            await self._defer(context.app, place, job.priority)
        elif (run.failed or run.waiting) and not await queue.has_other_job(self._database, job.id or 0, conversation):
            if run.failed:
                raise ConversationFailed(f"{len(run.failed)} derivers failed; the log says why")
            logger.warning("waiting: %s", "; ".join(run.waiting))
            # By a new job: to wait is no attempt.
            at = datetime.now(UTC) + timedelta(seconds=60)
            await self._defer(context.app, place, min(job.priority, queue.PRIORITY_SWEPT), at)

    async def _defer(self, app: App, place: ConversationKey, priority: int, at: datetime | None = None) -> None:
        user, conversation = map(str, place)
        task = app.configure_task(queue.TASK, queue=queue.QUEUE, lock=conversation, priority=priority, schedule_at=at)
        await task.defer_async(user=user, conversation=conversation)

    async def _make_steps(
        self, place: ConversationKey, run: RunState, of_backfill: bool
    ) -> tuple[bool, ConversationKey | None]:
        """Let each deriver that is behind in a conversation make one step, but for what a paused backfill holds.

        A job `of_backfill` does only what a running backfill has: one of chunks alone does not wait for everything else
        that its conversations lack. Returns whether more is to be done at once, and whose facts come next.
        """
        async with self._database.admin_transaction() as tx:
            behind = await watermarks.lagging_work(tx, *place)
        ready = [work for work in behind if work.in_line and work.state != "paused"]
        ready = [work for work in ready if work.state == "running" or not of_backfill]
        # At once: one computes while another writes. They know nothing of each other's rows.
        outcomes = await asyncio.gather(*(self._make_step(work, run) for work in ready), return_exceptions=True)
        for outcome in outcomes:
            if isinstance(outcome, BaseException):
                raise outcome
        next_facts = None
        for work in ready:
            if work.deriver == FactDeriver.name:
                async with self._database.admin_transaction() as tx:
                    next_facts = await watermarks.next_in_line(tx, work)
        return any(outcomes), None if next_facts == place else next_facts

    async def _make_step(self, work: LaggingWork, run: RunState) -> bool:
        """Make a step; return whether there is another to make."""
        if work.backfill not in self._derivers:
            self._derivers[work.backfill] = self._make_derivers(work.backfill)
        deriver = self._derivers[work.backfill][work.deriver]
        try:
            return bool(await advance(self._database, deriver, [work], run))
        except ModelUnavailable as error:
            run.wait(deriver.name, error)
            return False

    def _make_derivers(self, backfill: UUID | None) -> Mapping[str, Deriver]:
        """Return the derivers by name; those of a backfill ask chat models within its cap."""
        dependencies = self._dependencies
        if backfill is not None:
            summary, facts = (
                None if model is None else CappedChatModel(model, self._database, backfill)
                for model in (dependencies.summary_model, dependencies.facts_model)
            )
            dependencies = replace(dependencies, summary_model=summary, facts_model=facts)
        return {deriver.name: deriver for deriver in make_derivers(dependencies)}

    # -- webhooks

    async def _deliver(
        self, context: JobContext, webhook: str = "", user: str = "", event: Mapping[str, Any] | None = None
    ) -> None:
        """Send an event to a webhook; do nothing if the webhook, or what the event is about, is gone."""
        if event is None:
            return
        id = UUID(webhook)
        async with self._database.admin_transaction() as tx:
            target = await webhooks.target(tx, id, UUID(user))
        if target is None or (target.user_name is None and event["type"] != WebhookEvent.ERASURE_DONE):
            return
        try:
            await asyncio.to_thread(send, target, user, event)
        except DeliveryFailed as error:
            async with self._database.admin_transaction() as tx:
                await webhooks.note_failure(tx, id, str(error), disable=error.is_gone)
            if not error.is_gone and context.job.attempts < len(RETRY_SECONDS):
                raise
            logger.warning("webhook %s: %s; %s", id, error, "disabled" if error.is_gone else "the last attempt")

    # -- what is done from time to time

    async def _maintain_users(self, timestamp: int) -> None:
        """Maintain every user, also those without new messages: nothing is kept for longer than it may be."""
        async for user, _ in messages.everybody(self._database):
            await renew_terms(self._database, user)
            await run_maintenance(self._database, [user], self._settings)

    async def _sweep(self, context: JobContext, timestamp: int) -> None:
        """Take up the jobs of dead workers, and enqueue what is pending and has no job."""
        manager = context.app.job_manager
        for job in await manager.get_stalled_jobs(seconds_since_heartbeat=STALLED_SECONDS):
            # It has ended meanwhile where its worker was only slow.
            with suppress(ConnectorException):
                await self._take_up(manager, job)
        await manager.prune_stalled_workers(STALLED_SECONDS)
        await queue.enqueue_events(self._database)
        await enqueue_pending(self._database, only=self._only)

    async def _take_up(self, manager: JobManager, job: Job) -> None:
        # A retry would meet the lock of the next one.
        if job.task_name in (SWEEP_TASK, MAINTENANCE_TASK):
            await manager.finish_job(job, status=Status.FAILED, delete_job=True)
        elif job.task_name == queue.TASK and job.attempts + 1 >= self._settings.worker_attempts:
            # It may be what kills the workers.
            await manager.finish_job(job, status=Status.FAILED, delete_job=False)
        else:
            await manager.retry_job(job)


def _totals(run: RunState) -> dict[str, int]:
    made = {kind: run.made[kind] for kind in ("chunks", "summaries", "facts")}
    refused = run.made["refused"] + run.made["invalid_responses"]
    return {"messages": run.done["chunks"], **made, "refused": refused, "failed": len(run.failed)}


async def enqueue_pending(database: Database, *, only: UUID | None = None) -> None:
    """Enqueue what is pending and has no job, or with `only` what a backfill has of it; end backfills that are done.

    What a paused or cancelled backfill holds gets none. Does nothing while another process does the same.
    """
    async with queue.scheduler_lock(database) as is_mine:
        if not is_mine:
            return
        await watermarks.reopen_ended_sessions(database, only=None)
        async with database.admin_transaction() as tx:
            states = await backfills.states(tx)
        counts = await queue.counts(database)
        if only is None:
            room = MAX_WAITING_JOBS - (counts.waiting - counts.backfilling)
            await _enqueue(database, None, states, room, queue.PRIORITY_SWEPT)
        room = MAX_WAITING_JOBS - counts.backfilling
        for backfill in [id for id, state in states.items() if state == "running" and only in (None, id)]:
            added, is_done = await _enqueue(database, backfill, (), room, queue.PRIORITY_BACKFILL)
            room -= added
            if is_done:
                async with database.admin_transaction() as tx:
                    await backfills.halt(tx, backfill, "done")


async def _enqueue(
    database: Database, backfill: UUID | None, unlike: Collection[UUID], room: int, priority: int
) -> tuple[int, bool]:
    """Enqueue conversations while there is room; return how many, and whether only failed ones are left."""
    added, is_done, after = 0, True, watermarks.BEGINNING
    while added < room:
        async with database.admin_transaction() as tx:
            page = await watermarks.unfinished(tx, backfill, unlike=unlike, after=after)
        if not page:
            return added, is_done
        after = page[-1]
        open_jobs = await queue.statuses(database, [place.conversation_id for place in page])
        places = [place for place in page if place.conversation_id not in open_jobs][: room - added]
        is_done = is_done and not places and not any(open_jobs.values())
        # In the order of conversation ids, which mixes users: conversations of one user wait for each other to write.
        await queue.defer(database, sorted(places, key=lambda place: place.conversation_id), priority)
        added += len(places)
    return added, False


class CappedChatModel:
    """Wraps a ChatModel so that its calls count for a backfill; raises `ModelUnavailable` at the cap.

    Each call reserves its tokens before it is made, as workers share the cap. The model is called in a thread; the
    event loop asks the database for the tokens.
    """

    def __init__(self, model: ChatModel, database: Database, backfill: UUID) -> None:
        self._model, self._database, self._backfill = model, database, backfill
        self.name, self.max_prompt_tokens = model.name, model.max_prompt_tokens
        self._loop = asyncio.get_running_loop()

    @property
    def context_tokens(self) -> int:
        """Return the model's window, for which its server may be asked."""
        return self._model.context_tokens

    def complete(self, messages: Sequence[ChatMessage], schema: type[T], *, max_tokens: int) -> Completion[T]:
        """Return the model's answer, after reserving its tokens."""
        once = self.max_prompt_tokens(messages) + max_tokens
        # It may be asked once more, and is told then what was wrong with the first answer.
        tokens = once + min(self.context_tokens, once + 600)
        self._run(self._reserve(tokens))
        usage, began = Usage("", self.name), time.monotonic()
        try:
            answer = self._model.complete(messages, schema, max_tokens=max_tokens)
            usage = usage_of(usage, answer, began)
            return answer
        except ModelAnswerInvalid as error:
            usage = usage_of(usage, error, began)
            raise
        finally:
            self._run(self._settle(tokens, usage))

    async def _reserve(self, tokens: int) -> None:
        async with self._database.admin_transaction() as tx:
            if await backfills.reserve(tx, self._backfill, tokens):
                return
            await backfills.halt(tx, self._backfill, "paused", "tokens")
            (row,) = await backfills.backfills(tx, self._backfill)
        raise ModelUnavailable(
            f"The backfill {self._backfill} is {row.state}: of its {row.max_tokens} tokens "
            f"{row.spent_tokens + row.taken_tokens} are spent, too few are left for a call of up to {tokens}. "
            "Pending messages wait."
        )

    async def _settle(self, taken: int, usage: Usage) -> None:
        async with self._database.admin_transaction() as tx:
            await backfills.settle(tx, self._backfill, taken, usage)

    def _run(self, coroutine: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()
