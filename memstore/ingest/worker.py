"""A worker: takes jobs from the queue and lets their conversations take their turns. Async only, there is no twin.

Jobs are procrastinate's, and delivered at least once: a worker that is killed leaves one behind which others take up.
What it had written stands with its watermark, and what it had not is made anew, the same.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections import Counter
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from procrastinate import App, BaseRetryStrategy, JobContext, PsycopgConnector, RetryDecision
from procrastinate.app import WorkerOptions
from procrastinate.connector import BaseConnector
from procrastinate.exceptions import ConnectorException
from procrastinate.jobs import Job, Status
from procrastinate.manager import JobManager

from memstore.errors import DatabaseError, DatabaseUnreachable, MemstoreError
from memstore.ingest.backfill.caps import CappedChatModel
from memstore.ingest.derive import derivers_of, tend
from memstore.ingest.resources import Resources, coalesced
from memstore.ingest.steps import Deriver, Run
from memstore.ingest.sweep import sweep
from memstore.ingest.turn import take_turn
from memstore.store import derivations, messages, model_calls, queue
from memstore.store.database import Database
from memstore.store.derivations import Place
from memstore.telemetry import measured

logger = logging.getLogger("memstore")

SWEEP, RETAIN = "memstore.sweep", "memstore.retain"
URGENT = 100  # the priority of a sweep: it takes milliseconds
HEARTBEATS = 6  # within the time after which a worker is dead
MODEL_AWAY = timedelta(seconds=60)
LONGEST_WAIT = 600.0  # seconds between two attempts
TENDING = 30.0  # seconds between two looks at what users need
CONNECTIONS = 4  # for the queue: jobs hold none while they work


class ConversationFailed(MemstoreError):
    """A deriver failed in a conversation; why, the log and the watermark say."""


class Backoff(BaseRetryStrategy):
    """Waits twice as long each time, a little by chance so that not all come at once, and gives up in the end."""

    def __init__(self, attempts: int) -> None:
        self.attempts = attempts

    def get_retry_decision(self, *, exception: BaseException, job: Job) -> RetryDecision | None:
        """Give when to try again; None where the job has failed for good."""
        if job.attempts + 1 >= self.attempts:
            return None
        seconds = min(2.0**job.attempts, LONGEST_WAIT) * random.uniform(0.5, 1.5)
        at = datetime.now(UTC) + timedelta(seconds=seconds)
        return RetryDecision(retry_at=at, priority=min(job.priority, queue.FOUND))  # what is new does not wait for it


class LivingManager(JobManager):
    """Shows that a worker lives from before its first job on: no job of a living one is taken for a dead one's."""

    def __init__(self, connector: BaseConnector, life: queue.Life) -> None:
        super().__init__(connector)
        self._life = life

    async def register_worker(self) -> int:
        """Give the number of a new worker."""
        number = await super().register_worker()
        await self._life.show(number)
        return number

    async def update_heartbeat(self, worker_id: int) -> None:
        """Say that it still lives; where that fails, the library ends it, and it goes on under a new number."""
        await super().update_heartbeat(worker_id)
        await self._life.show(worker_id)


class Worker:
    """Works on an open database until it is stopped, several conversations at a time.

    With `only` it looks for what a backfill has, and for nothing else that is pending.
    """

    def __init__(self, database: Database, resources: Resources, *, concurrency: int, only: UUID | None = None) -> None:
        self._counts: Counter[str] = Counter()
        self._users: set[UUID] = set()  # of whom something was derived, and who were not looked after since
        self._database = database
        self._resources = coalesced(resources)
        self._known: dict[UUID | None, Mapping[str, Deriver[Any, Any]]] = {}
        self._settings = resources.settings
        self._concurrency = concurrency
        self._only = only
        self._stopping = False
        self._working: asyncio.Task[None] | None = None

    @property
    def made(self) -> dict[str, int]:
        """How many messages went through, what was made of them, and how often a deriver failed."""
        return {kind: self._counts[kind] for kind in ("messages", "units", "summaries", "facts", "failed")}

    def stop(self) -> None:
        """Take no further job; `run` ends when those that run are done."""
        self._stopping = True
        self._restart()

    def _restart(self) -> None:
        if self._working is not None:
            self._working.cancel()  # the library finishes what runs, and takes nothing more

    async def run(self) -> None:
        """Work until `stop` is called. A database that goes away is waited for."""
        most = self._concurrency * len(derivations.DERIVERS) + 4  # asyncio's own pool has six on two cores
        threads = ThreadPoolExecutor(most, "memstore-work")
        asyncio.get_running_loop().set_default_executor(threads)
        tending = asyncio.create_task(self._tend_users())
        pause = 0.5
        try:
            while not self._stopping:
                try:
                    await self._worked()
                    pause = 0.5
                except (ConnectorException, DatabaseUnreachable) as error:
                    told = error.__cause__ or error
                    logger.warning("the queue does not answer, trying again in %.1f s: %s", pause, told)
                    pause = min(pause * 2, 30.0)
                    await self._knock()
                if not self._stopping:
                    await asyncio.sleep(pause)
        finally:
            tending.cancel()
            await self._tended()

    async def _knock(self) -> None:
        """Ask the database for nothing: an embedded one that has died is started again by that."""
        with suppress(DatabaseError):
            async with self._database.operator():
                pass

    async def _worked(self) -> None:
        """Work with the library's own loop, under a new number, until that is stopped or the database goes away.

        With the old number go its jobs that could not be marked as done: they count as a dead worker's.
        """
        stalled = self._settings.worker_stalled_seconds
        async with queue.living(self._database) as life, self._app(life).open_async() as app:
            options: WorkerOptions = {
                "concurrency": self._concurrency,
                "install_signal_handlers": False,
                "update_heartbeat_interval": stalled / HEARTBEATS,
                "stalled_worker_timeout": stalled,
                "fetch_job_polling_interval": 1.0,
                "delete_jobs": "successful",
                # A pooler would tell somebody else: jobs are then looked for each second.
                "listen_notify": not self._database.capabilities.pooled,
            }
            if not self._stopping:
                self._working = asyncio.create_task(app.run_worker_async(**options))
                await asyncio.wait([self._working])
                if not self._working.cancelled():
                    self._working.result()

    def _app(self, life: queue.Life) -> App:
        kwargs = {"application_name": "memstore worker", "prepare_threshold": None}
        connector = PsycopgConnector(conninfo=self._database.url, kwargs=kwargs, min_size=1, max_size=CONNECTIONS)
        app = App(connector=connector)
        app.job_manager = LivingManager(connector, life)
        retry = Backoff(self._settings.worker_attempts)
        app.task(name=queue.TASK, queue=queue.QUEUE, retry=retry, pass_context=True)(self._derive)
        swept = app.task(name=SWEEP, queue="sweep", queueing_lock=SWEEP, priority=URGENT, pass_context=True)(
            self._sweep
        )
        app.periodic(cron=f"* * * * * */{self._settings.worker_sweep_seconds}")(swept)  # the sixth field is of seconds
        kept = app.task(name=RETAIN, queue="sweep", queueing_lock=RETAIN, pass_context=False)(self._retain)
        app.periodic(cron="7 * * * *")(kept)
        return app

    async def _derive(self, context: JobContext, user: str, conversation: str) -> None:
        """Let a conversation take its turn, and come again where more is left."""
        run = Run()  # of its own: what fails meanwhile in other conversations is no failure of this one
        own, taken = queue.is_of_backfill(context.job.priority), (UUID(user), UUID(conversation))
        try:
            await self._count_tokens()
            with measured("derive") as told:
                turn = await take_turn(self._database, self._derivers, *taken, run, of_backfill=own)
                told(**_counted(run))
        except DatabaseUnreachable:
            self._restart()
            raise
        finally:
            self._count(run)
        job, place = context.job, Place(*taken)
        if turn.following:
            await self._defer(context.app, turn.following, queue.hurried(job.priority))
        if turn.left:
            await self._defer(context.app, place, job.priority)
        elif (run.failed or run.waiting) and not await queue.another(self._database, job.id or 0, conversation):
            if run.failed:
                raise ConversationFailed(f"{len(run.failed)} derivers failed; the log says why")
            logger.warning("waiting: %s", "; ".join(run.waiting))
            at = datetime.now(UTC) + MODEL_AWAY  # by a new job: to wait is no attempt
            await self._defer(context.app, place, min(job.priority, queue.FOUND), at)

    def _count(self, run: Run) -> None:
        """Add what a turn did to what the worker has done."""
        self._counts.update(_counted(run))
        self._users |= run.users

    async def _defer(self, app: App, place: Place, priority: int, at: datetime | None = None) -> None:
        user, conversation = map(str, place)
        deferred = app.configure_task(
            queue.TASK, queue=queue.QUEUE, lock=conversation, priority=priority, schedule_at=at
        )
        await deferred.defer_async(user=user, conversation=conversation)

    async def _count_tokens(self) -> None:
        """See how many tokens chat models may still use today, whoever used the others."""
        if self._settings.llm_daily_tokens is not None:
            async with self._database.operator() as scope:
                self._resources.allowance.left = await model_calls.left(scope, self._settings.llm_daily_tokens)

    def _derivers(self, backfill: UUID | None) -> Mapping[str, Deriver[Any, Any]]:
        """Give the derivers by name; those of a backfill ask chat models within its cap."""
        if backfill not in self._known:
            resources = self._resources if backfill is None else self._capped(backfill)
            self._known[backfill] = {deriver.name: deriver for deriver in derivers_of(resources)}
        return self._known[backfill]

    def _capped(self, backfill: UUID) -> Resources:
        summary, facts = (
            None if model is None else CappedChatModel(model, self._database, backfill)
            for model in (self._resources.summary_model, self._resources.facts_model)
        )
        return replace(self._resources, summary_model=summary, facts_model=facts)

    async def _tend_users(self) -> None:
        """Now and then look after the users of whom something was derived."""
        while True:
            await asyncio.sleep(TENDING)
            await self._tended()

    async def _tended(self) -> None:
        try:
            await self._tend()
        except DatabaseError as error:
            logger.warning("users are looked after later: %s", error)

    async def _tend(self) -> None:
        """Look after users with nothing pending: an index of vectors is built after a history came in, not during."""
        for user in list(self._users):
            async with self._database.operator() as scope:
                pending = await derivations.backlog(scope, only=user)
            if not pending:
                self._users.discard(user)  # before, as a turn may add the user again meanwhile
                try:
                    await tend(self._database, [user], self._settings)
                except (DatabaseError, asyncio.CancelledError):
                    self._users.add(user)
                    raise

    async def _retain(self, timestamp: int) -> None:
        """Look after every user, those too of whom nothing was derived: nothing is kept for longer than it is to be."""
        async for user, _ in messages.everybody(self._database):
            await tend(self._database, [user], self._settings)

    async def _sweep(self, context: JobContext, timestamp: int) -> None:
        """Take up the jobs of dead workers, and what is pending and has no job."""
        manager, seconds = context.app.job_manager, self._settings.worker_stalled_seconds
        for job in await self._lost(manager, seconds):
            with suppress(ConnectorException):  # it has ended meanwhile: its worker was only slow
                await self._taken_up(manager, job)
        await manager.prune_stalled_workers(seconds)
        await sweep(self._database, only=self._only)

    async def _lost(self, manager: JobManager, seconds: float) -> list[Job]:
        """Give the jobs of workers that are dead: their process has ended, or they were not heard of for so long.

        Of a process that was killed the server knows at once. A machine that has gone away it may believe in for hours.
        """
        running = list(await manager.list_jobs_async(status=Status.DOING.value))
        ended = await queue.ended(self._database, {job.worker_id for job in running if job.worker_id is not None})
        unheard = {job.id for job in await manager.get_stalled_jobs(seconds_since_heartbeat=seconds)}
        return [job for job in running if job.worker_id in ended or job.id in unheard]

    async def _taken_up(self, manager: JobManager, job: Job) -> None:
        """Have a dead worker's job done by another."""
        if job.task_name in (SWEEP, RETAIN):  # to retry it would meet the lock of the next one
            await manager.finish_job(job, status=Status.FAILED, delete_job=True)
        elif job.attempts + 1 >= self._settings.worker_attempts:  # it may be what kills the workers
            await manager.finish_job(job, status=Status.FAILED, delete_job=False)
        else:
            await manager.retry_job(job)


def _counted(run: Run) -> dict[str, int]:
    """Give what a run came to: messages that went through, what was made of them, how often a deriver failed."""
    made = {kind: run.made[kind] for kind in ("units", "summaries", "facts")}
    return {"messages": run.done["embed"], **made, "failed": len(run.failed)}
