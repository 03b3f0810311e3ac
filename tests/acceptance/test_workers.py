"""Workers: processes that take turns at what is pending, are killed, meet failures, and leave what one run would."""

import asyncio
import dataclasses
import json
import os
import random
import signal
import time
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from datetime import timedelta
from multiprocessing.process import BaseProcess
from pathlib import Path
from uuid import UUID

import psycopg
import pytest

import memstore
from memstore import ids
from memstore.client.worker import WorkingStore
from memstore.derive.facts.deriver import FactDeriver
from memstore.derive.pipeline import RunState, run_step
from memstore.models import Usage
from memstore.providers import ChatMessage, Vectors
from memstore.store import chunks, llm_usage, queue
from memstore.store.embedded import server
from memstore.store.rows import PendingWork
from memstore.testing import HashingEmbedder
from tests.command_line import Run
from tests.helpers.fakes import ScriptedChatModel
from tests.helpers.user_rows import rows
from tests.working import (
    HASHING,
    START,
    fill,
    number,
    pending,
    said,
    until,
    wait_until_derived,
    wait_until_idle,
    worker,
    working,
)

DOSE = int(os.environ.get("TEST_DOSE", "1"))
DATA = [Path(name) for name in os.environ.get("TEST_DATA", "").split(os.pathsep) if name]
ALIVE = "select count(*) from procrastinate_workers where last_heartbeat > now() - interval '1 second'"


def test_workers_make_the_rows_of_one_run_and_leave_in_order(url: str, twin: str, tmp_path: Path, cli: Run) -> None:
    users = fill(url, users=2, conversations=2, messages=15)
    fill(twin, users=2, conversations=2, messages=15)
    with memstore.open(twin, settings=HASHING) as store:
        store.derive()
    with worker(url, tmp_path, machine="one") as one, worker(url, tmp_path, machine="other") as other:
        wait_until_idle(url)
        for process in (one, other):
            process.send_signal(signal.SIGTERM)
        assert [process.wait(30) for process in (one, other)] == [0, 0], (tmp_path / "worker.log").read_text()
    assert rows(url, *users) == rows(twin, *users)
    counts = cli("jobs", "--json", "-d", url).json["counts"]
    assert counts == dict.fromkeys(counts, 0), "no job and no worker is left"


def history(url: str) -> list[str]:
    """Store a made-up history, or the files of TEST_DATA; give the users."""
    if not DATA:
        return fill(url, users=2, conversations=6 + 2 * DOSE, messages=60)
    with memstore.open(url, settings=HASHING) as store:
        for path in DATA:
            assert store.import_file(path).new
        return list(store.users())


@pytest.mark.slow
def test_workers_that_are_killed_make_the_rows_of_one_run(url: str, twin: str, tmp_path: Path) -> None:
    """Three workers over a backfill; where one is killed another takes its place.

    TEST_DOSE=17 kills a hundred, TEST_DATA=FILE:FILE… does so over these histories.
    """
    from tests.helpers.forked_workers import (
        forked_worker,  # which reads a text, so that its children need not compile the rules
    )

    users = history(url)
    assert history(twin) == users
    with memstore.open(twin, settings=HASHING) as store:
        store.derive()
    with memstore.open(url, settings=HASHING) as store:
        backfill, whole = store.backfills.begin(), pending(url)
    chance, killed = random.Random(7), 0
    settings = HASHING | {"worker_attempts": 1000}

    def begun(stack: ExitStack) -> BaseProcess:
        return stack.enter_context(forked_worker(url, tmp_path / "worker.log", settings))

    with ExitStack() as stack:
        workers = [begun(stack) for _ in range(3)]
        while killed < 6 * DOSE and (left := pending(url)):
            while chance.random() < 0.9 and number(url, ALIVE) < len(workers):
                time.sleep(0.02)
            if killed % 5 == 4:  # else nothing would get done where a step takes longer than they live
                while pending(url) == left:
                    time.sleep(0.02)
            time.sleep(chance.uniform(0, 0.5))
            place = chance.randrange(len(workers))
            workers[place].kill()
            workers[place].join()
            killed += 1
            print(f"killed {killed}, {pending(url):,} of {whole:,} pending", flush=True)
            workers[place] = begun(stack)
        wait_until_derived(url, 240 * DOSE)
    assert killed >= 5 * DOSE
    with memstore.open(url, settings=HASHING) as store:
        assert store.backfills.verify() == []
        found = store.backfills.status(backfill)
    assert (found.done, found.left, found.failing) == (whole, {}, 0)
    assert rows(url, *users) == rows(twin, *users)


async def test_what_a_dead_worker_had_is_taken_up_and_what_a_living_one_has_is_not(url: str) -> None:
    async with await WorkingStore.open(url, settings=HASHING) as store:
        await store.worker(1)  # makes the queue's tables
        talks = [store.user(name).conversation("talk") for name in ("alice", "bob")]
        for talk in talks:
            await talk.add_many(said("talk", 12))
        conversations = [(await talk.info()).id for talk in talks]
        dead, living = [taken(url, conversation) for conversation in conversations]
        heartbeat(url, dead, "-1 hour")
        heartbeat(url, living, "1 hour")

        async def done() -> bool:
            return pending(url) <= 36

        async with working(store):
            await until(done)
            await asyncio.sleep(2.5)
        assert [job.conversation_id for job in await store.jobs()] == conversations[1:]
        assert pending(url) == 36


def heartbeat(url: str, worker: int, ago: str) -> None:
    with psycopg.connect(url) as connection:
        connection.execute(
            "update procrastinate_workers set last_heartbeat = now() + %s::interval where id = %s", [ago, worker]
        )


def taken(url: str, conversation: UUID) -> int:
    """Have a worker that has just been heard of take a job of a conversation; give its number."""
    with psycopg.connect(url) as connection:
        row = connection.execute("insert into procrastinate_workers default values returning id").fetchone()
        assert row is not None
        connection.execute(
            "insert into procrastinate_jobs (queue_name, task_name, lock, args, status, worker_id)"
            " select 'derive', 'memstore.derive', c.id::text,"
            " jsonb_build_object('user', c.user_id, 'conversation', c.id), 'doing', %s from conversations c"
            " where c.id = %s",
            [row[0], conversation],
        )
        return int(row[0])


class Poisoned(HashingEmbedder):
    poison = "poison"

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        vectors = super().embed_documents(texts)
        if self.poison and any(self.poison in text for text in texts):
            vectors[-1, 0] = float("nan")
        return vectors


async def test_what_fails_again_and_again_is_given_up_and_can_be_tried_again(url: str) -> None:
    embedder = Poisoned(256)
    async with await WorkingStore.open(url, settings=HASHING | {"worker_attempts": 2}) as store:
        store._runtime.__dict__["embedder"] = embedder
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
            assert (job.error, job.attempts) == ("chunks: ProviderError", 2)
            await asyncio.sleep(2.5)
            assert (await store.job_counts()).failed == 1, "a sweep does not take up what was given up"
            assert await store.backfills.verify() != []
            embedder.poison = ""
            assert await store.retry_jobs([job.id]) == 1
            await until(all_done)
        assert await store.backfills.verify() == []


async def test_facts_and_summaries_of_one_user_do_not_wait_for_each_other(url: str) -> None:
    """Both lock the user and what the model has cost, in one order."""
    async with await WorkingStore.open(url, settings=HASHING) as store:
        talk = store.user("alice").conversation("talk")
        await talk.add("user", "I live in Leeds.")
        fact = {"sources": [{"message": 1, "quote": "I live in Leeds"}], "text": "The user lives in Leeds."}
        more = dict.fromkeys(("attribute", "value", "valid_from", "valid_to")) | {"language": "en", "confidence": 1}
        answer = {"facts": [fact | more | {"type": "identity", "kind": "semantic", "subject": "the user"}]}
        resources = dataclasses.replace(
            await store._runtime.load_dependencies(), facts_model=ScriptedChatModel([answer])
        )
        user, conversation = ids.user_id("alice"), (await talk.info()).id
        work = PendingWork(user, conversation, "facts", 0, 1)
        async with store._database.user_transaction(user) as tx:
            await chunks.lock_user(tx)
            deriving = asyncio.create_task(run_step(store._database, FactDeriver(resources), [work], RunState()))
            while not number(url, "select count(*) from pg_locks where not granted"):
                await asyncio.sleep(0.02)
            await llm_usage.keep(tx, Usage("facts", "scripted", 1, 1, 1), ())
        assert [rest.done_seq for rest in await deriving] == [1]


async def test_workers_read_conversations_in_the_order_in_which_they_were_said(url: str) -> None:
    """A model is shown what is known by then: read the other way round, what has changed would not end."""
    user = ids.user_id("alice")
    later, earlier = sorted(("a", "b"), key=lambda name: ids.conversation_id(user, name))
    days = {(earlier, 0): "Tea for me.", (later, 10): "No more tea.", (earlier, 20): "Tea again.", (later, 30): "Milk."}

    def answer(messages: Sequence[ChatMessage]) -> dict[str, object]:
        [line] = [line for line in messages[-1]["content"].split("\n") if line.startswith('{"message"')]
        asked.append(json.loads(line)["text"])
        return {"facts": []}

    asked: list[str] = []
    async with await WorkingStore.open(url, settings=HASHING) as store:
        store._runtime.__dict__["chat_models"] = (None, ScriptedChatModel([answer] * 4))
        for (name, day), text in days.items():
            await store.user("alice").conversation(name).add("user", text, occurred_at=START + timedelta(days=day))

        async def is_done() -> bool:
            return not pending(url)

        async with working(store):
            await until(is_done)
    assert asked == list(days.values())


async def test_a_model_that_is_away_is_waited_for_without_an_attempt(url: str) -> None:
    async with await WorkingStore.open(url, settings=HASHING | {"worker_attempts": 1}) as store:
        store._runtime.__dict__["chat_models"] = (None, ScriptedChatModel())
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
        server.stop(folder)


def test_somebody_elses_queue_is_left_alone(url: str) -> None:
    with psycopg.connect(url) as connection:
        connection.execute("create table procrastinate_jobs (id int)")
    with pytest.raises(memstore.DatabaseError, match="not memstore's"):
        queue.prepare_queue(url)
    with psycopg.connect(url) as connection:
        connection.execute("comment on table procrastinate_jobs is 'memstore: procrastinate 99.00.00_01'")
    with pytest.raises(memstore.SchemaTooNew):
        queue.prepare_queue(url)
