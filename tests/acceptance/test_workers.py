"""Workers: processes that take turns at what is pending, are killed, meet failures, and leave what one run would."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import ExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import psycopg
import pytest

import memstore
from memstore.ingest import worker as ingest_worker
from memstore.memory.worker import WorkingStore
from memstore.providers import Vectors
from memstore.store import embedded, queue_schema
from memstore.testing import HashingEmbedder, ScriptedChatModel
from tests.command_line import Run
from tests.rows import rows
from tests.working import HASHING, QUICK, fill, pending, said, wait_until_derived, worker

DOSE = int(os.environ.get("TEST_DOSE", "1"))
RUNNING = "select count(*) from procrastinate_jobs where status = 'doing' and task_name = 'memstore.derive'"


def number(url: str, query: str) -> int:
    with psycopg.connect(url) as connection:
        row = connection.execute(query).fetchone()
    assert row is not None
    return int(row[0])


def test_workers_make_the_rows_of_one_run_and_leave_in_order(url: str, twin: str, tmp_path: Path, cli: Run) -> None:
    users = fill(url, users=2, conversations=3, messages=25)
    fill(twin, users=2, conversations=3, messages=25)
    with memstore.open(twin, settings=HASHING) as store:
        store.derive()
    with worker(url, tmp_path) as one, worker(url, tmp_path) as other:
        wait_until_derived(url)
        for process in (one, other):
            process.send_signal(signal.SIGTERM)
        assert [process.wait(30) for process in (one, other)] == [0, 0], (tmp_path / "worker.log").read_text()
    assert rows(url, *users) == rows(twin, *users)
    counts = cli("jobs", "list", "--json", "-d", url).json["counts"]
    assert counts == dict.fromkeys(counts, 0), "no job and no worker is left"


@pytest.mark.slow
def test_workers_that_are_killed_make_the_rows_of_one_run(url: str, twin: str, tmp_path: Path) -> None:
    """Three workers over a backfill; where one is killed another takes its place. TEST_DOSE=10 kills a hundred."""
    users = fill(url, users=2, conversations=6 + 2 * DOSE, messages=60)
    fill(twin, users=2, conversations=6 + 2 * DOSE, messages=60)
    with memstore.open(twin, settings=HASHING) as store:
        store.derive()
    with memstore.open(url, settings=HASHING) as store:
        backfill = store.backfills.begin()
    chance, killed = random.Random(7), 0
    with ExitStack() as stack:
        workers = [stack.enter_context(worker(url, tmp_path, worker_attempts="1000")) for _ in range(3)]
        while killed < 10 * DOSE and pending(url):
            while not number(url, RUNNING) and number(
                url, "select count(*) from derivations where done_seq < last_seq"
            ):
                time.sleep(0.05)
            time.sleep(chance.uniform(0, 0.5))
            place = chance.randrange(3)
            workers[place].send_signal(signal.SIGKILL)
            workers[place].wait()
            killed += 1
            workers[place] = stack.enter_context(worker(url, tmp_path, worker_attempts="1000"))
        wait_until_derived(url, 240 * DOSE)
    print(f"killed {killed} times")
    assert killed >= 5 * DOSE
    with memstore.open(url, settings=HASHING) as store:
        assert store.backfills.verify() == []
        found = store.backfills.status(backfill)
    assert (found.done, found.left, found.failing) == (3 * 60 * 2 * (6 + 2 * DOSE), {}, 0)
    assert rows(url, *users) == rows(twin, *users)


class Poisoned(HashingEmbedder):
    """An embedder that fails over one word, until it is mended."""

    poison = "poison"

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        if self.poison and any(self.poison in text for text in texts):
            raise ValueError("this embedder cannot say that word")
        return super().embed_documents(texts)


@asynccontextmanager
async def working(store: WorkingStore) -> AsyncIterator[None]:
    """A worker in this process."""
    worker = await store.worker(2)
    running = asyncio.create_task(worker.run())
    try:
        yield
    finally:
        worker.stop()
        await running


async def until(condition: Callable[[], Awaitable[bool]], seconds: float = 60) -> None:
    last = time.monotonic() + seconds
    while not await condition():
        assert time.monotonic() < last
        await asyncio.sleep(0.1)


async def test_what_fails_again_and_again_is_given_up_and_can_be_tried_again(url: str) -> None:
    embedder = Poisoned(256)
    async with await WorkingStore.open(url, settings=HASHING | QUICK | {"worker_attempts": 2}) as store:
        store._opened.__dict__["embedder"] = embedder
        for name in ("good", "bad"):
            await store.user("alice").conversation(name).add_many(said(name, 12))
        await store.user("alice").conversation("bad").add("user", "And this is the poison.")

        async def given_up() -> bool:
            return (await store.job_counts()).failed == 1 and pending(url) == 13

        async def all_done() -> bool:
            return pending(url) == 0

        async with working(store):
            await until(given_up)
            (job,) = await store.jobs(failed=True)
            assert (job.error, job.attempts) == ("embed: ValueError", 2)
            await asyncio.sleep(2.5)
            assert (await store.job_counts()).failed == 1, "a sweep does not take up what was given up"
            assert await store.backfills.verify() != []
            embedder.poison = ""
            assert await store.retry_jobs([job.id]) == 1
            await until(all_done)
        assert await store.backfills.verify() == []


class Meeting(Poisoned):
    """One in which the good text is at work until the other has failed."""

    def __init__(self) -> None:
        super().__init__(256)
        self.at_work, self.failed = threading.Event(), threading.Event()

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        if any(self.poison in text for text in texts):
            self.at_work.wait(30)
            self.failed.set()
        else:
            self.at_work.set()
            self.failed.wait(30)
            time.sleep(1)  # it takes a moment until that is noted
        return super().embed_documents(texts)


async def test_what_fails_beside_a_conversation_is_no_failure_of_it(url: str) -> None:
    async with await WorkingStore.open(url, settings=HASHING | QUICK | {"worker_attempts": 1}) as store:
        store._opened.__dict__["embedder"] = Meeting()
        for user, text in (("alice", "Good morning."), ("bob", "And this is the poison.")):
            await store.user(user).conversation("talk").add("user", text)

        async def over() -> bool:
            counts = await store.job_counts()
            return (counts.waiting, counts.running, pending(url)) == (0, 0, 1) and counts.failed > 0

        async with working(store):
            await until(over)
        assert [job.error for job in await store.jobs(failed=True)] == ["embed: ValueError"]


async def test_users_are_looked_after_again_where_that_failed(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    real, tried = ingest_worker.tend, 0

    async def failing_once(*given: Any) -> None:
        nonlocal tried
        tried += 1
        if tried == 1:
            raise memstore.DatabaseError("the disk is full")
        await real(*given)

    monkeypatch.setattr(ingest_worker, "tend", failing_once)
    monkeypatch.setattr(ingest_worker, "TENDING", 0.2)
    async with await WorkingStore.open(url, settings=HASHING | QUICK) as store:
        await store.user("alice").conversation("talk").add("user", "Good morning.")

        async def twice() -> bool:
            return tried == 2

        async with working(store):
            await until(twice)


async def test_a_model_that_is_away_is_waited_for_without_an_attempt(url: str) -> None:
    async with await WorkingStore.open(url, settings=HASHING | QUICK | {"worker_attempts": 1}) as store:
        store._opened.__dict__["chat_models"] = (None, ScriptedChatModel())
        await store.user("alice").conversation("talk").add_many(said("talk", 12))

        async def waits() -> bool:
            return (await store.job_counts()).later == 1

        async with working(store):
            await until(waits)
        (job,) = await store.jobs()
        assert (job.status, job.attempts, job.error, pending(url)) == ("todo", 0, None, 12)


@pytest.mark.slow
def test_a_worker_goes_on_after_its_embedded_server_was_killed(tmp_path: Path) -> None:
    folder = tmp_path / "store"
    url = f"embedded:{folder}"
    try:
        with memstore.open(url, settings=HASHING) as store, worker(url, tmp_path) as process:
            store.user("alice").conversation("before").add_many(said("before", 12))
            wait_until_derived(store.url)
            os.kill(int((folder / "data" / "postmaster.pid").read_text().split()[0]), signal.SIGKILL)
            with suppress(memstore.DatabaseUnreachable):  # whoever meets the end is told
                store.stats()
            store.user("alice").conversation("after").add_many(said("after", 12))
            wait_until_derived(store.url)
            process.send_signal(signal.SIGTERM)
            assert process.wait(60) == 0
    finally:
        embedded.stop(folder)


def test_adding_messages_queues_a_job_in_the_same_transaction(url: str) -> None:
    with memstore.open(url, settings=HASHING | {"enqueue": True}) as store:
        talk = store.user("alice").conversation("talk")
        with pytest.raises(memstore.Conflict):
            talk.add_many([*said("talk", 1), said("talk", 1)[0] | {"content": "Something else."}])
        assert store.jobs() == [], "what was not stored has no job"
        talk.add_many(said("talk", 3))
        (job,) = store.jobs()
        assert (job.status, job.priority, job.conversation_id) == ("todo", 10, talk.info().id)
        talk.add("user", "And another thing.")
        assert len(store.jobs()) == 1, "one job is to look at all of it"
        store.derive()
        talk.add("user", "And a last one.")
        assert len(store.jobs()) == 2, "whoever had caught up is told"


def test_the_app_role_may_queue_a_job_for_its_own_user_and_do_nothing_else_to_the_queue(url: str) -> None:
    fill(url, users=2, conversations=1, messages=1)
    queue_schema.prepare(url)
    queue_schema.prepare(url)
    with psycopg.connect(url) as connection:
        (mine, talk), (_, other) = connection.execute(
            "select u.user_id, c.id from users u join conversations c using (user_id) order by u.name"
        ).fetchall()
        connection.execute("set role memstore_app")
        connection.execute("select set_config('memstore.user_id', %s, false)", [str(mine)])
        connection.commit()
        for statement in (
            "select * from procrastinate_jobs",
            "delete from procrastinate_jobs",
            "insert into procrastinate_jobs (queue_name, task_name) values ('derive', 'memstore.derive')",
            f"select memstore_enqueue((select user_id from users where user_id <> '{mine}'), '{other}', 0)",
        ):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute(statement)
            connection.rollback()
        connection.execute("select memstore_enqueue(%s, %s, 0)", [mine, other])
        connection.execute("select memstore_enqueue(%s, %s, 0)", [mine, talk])
        connection.commit()
    assert number(url, "select count(*) from procrastinate_jobs") == 1, "a conversation of somebody else's has none"
    assert number(url, f"select count(*) from procrastinate_jobs where lock = '{talk}'") == 1


def test_somebody_elses_queue_is_left_alone(url: str) -> None:
    with psycopg.connect(url) as connection:
        connection.execute("create table procrastinate_jobs (id int)")
    with pytest.raises(memstore.DatabaseError, match="not memstore's"):
        queue_schema.prepare(url)
    with psycopg.connect(url) as connection:
        connection.execute("comment on table procrastinate_jobs is 'memstore: procrastinate 99.00.00_01'")
    with pytest.raises(memstore.SchemaTooNew):
        queue_schema.prepare(url)
