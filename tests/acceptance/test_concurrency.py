"""Many at once: writers, derivers and readers of the same conversations, in threads, tasks and processes."""

import json
import os
import random
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from pathlib import Path
from threading import Barrier, Event
from typing import TypeVar

import psycopg
import pytest

import memstore
from memstore._sync.derive.facts import changes
from memstore._sync.ingest import history
from memstore.ingest.importers import ImportReport
from memstore.store.embedded.folder import attempts
from tests.helpers.user_rows import rows
from tests.working import HASHING, START, said as history_of

T = TypeVar("T")

DOSE = int(os.environ.get("TEST_DOSE", "1"))  # how much longer than usual the tests may take
WRITERS = 16
ROSES = "I planted 1{n} roses in {place} Street, and my neighbours painted house {n}."  # contradicts no other
said = partial(history_of, told=ROSES)
LOG = ("fact_changes",)  # tells in which order facts came in; what they are in the end does not depend on it


@pytest.fixture
def store(url: str) -> Iterator[memstore.MemoryStore]:
    with memstore.open(url, settings=HASHING) as store:
        yield store


def all_at_once(work: Callable[[int], T], count: int = WRITERS) -> list[T]:
    """Run `work(0)` … `work(count - 1)` in threads that begin together; give what they gave."""
    barrier = Barrier(count)

    def begin(number: int) -> T:
        barrier.wait(timeout=30)
        return work(number)

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(begin, range(count)))


@contextmanager
def meanwhile(work: Callable[[], object]) -> Iterator[None]:
    """Repeat `work` in a thread while the block runs, at least once; raise what it raises."""
    over = Event()

    def repeat() -> None:
        work()
        while not over.is_set():
            work()

    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(repeat)
        try:
            yield
        finally:
            over.set()
        future.result(timeout=60)


def check_numbers(stored: Sequence[memstore.Message], count: int) -> None:
    assert [message.seq for message in stored] == list(range(1, count + 1))
    assert len({message.id for message in stored}) == count


# -- writers


def test_threads_that_write_to_one_conversation_are_numbered_without_gaps(store: memstore.MemoryStore) -> None:
    each = 8 * DOSE

    def write(writer: int) -> list[int]:
        trip = store.user("alice").conversation("lisbon")
        return [trip.add("user", f"{writer}/{n}").seq for n in range(each)]

    given = all_at_once(write)
    check_writers(store.user("alice").conversation("lisbon").messages(), given, each)


def check_writers(stored: Sequence[memstore.Message], given: Sequence[list[int]], each: int) -> None:
    """Every message once, under the number that its writer was told, in the order in which it wrote."""
    check_numbers(stored, WRITERS * each)
    by_seq = {message.seq: message.content for message in stored}
    for writer, numbers in enumerate(given):
        assert numbers == sorted(numbers)
        assert [by_seq[seq] for seq in numbers] == [f"{writer}/{n}" for n in range(each)]


def test_the_same_external_ids_from_everybody_are_stored_once(store: memstore.MemoryStore) -> None:
    """Each writer has two thirds of the history, from another place on, and so in another order."""
    history = [{"role": "user", "content": f"line {n}", "external_id": f"m{n}"} for n in range(30)]

    def write(writer: int) -> dict[str | None, tuple[object, int]]:
        mine = (history[writer:] + history[:writer])[:20]
        trip = store.user("alice").conversation("lisbon")
        got = [one for at in range(0, 20, 5) for one in trip.add_many(mine[at : at + 5])]
        assert [one.external_id for one in got] == [one["external_id"] for one in mine]
        return {one.external_id: (one.id, one.seq) for one in got}

    given = all_at_once(write)
    stored = store.user("alice").conversation("lisbon").messages()
    check_numbers(stored, 30)
    assert all(message.content == f"line {(message.external_id or '')[1:]}" for message in stored)
    known = {message.external_id: (message.id, message.seq) for message in stored}
    for told in given:
        assert told.items() <= known.items()


@pytest.mark.parametrize("external", [True, False], ids=["known ids", "fresh ids"])
def test_the_first_message_of_a_user_may_come_from_everybody(store: memstore.MemoryStore, external: bool) -> None:
    for attempt in range(3 * DOSE):
        user = store.user(f"user {attempt}")

        def write(writer: int, user: memstore.UserScope = user) -> memstore.Message:
            more = {"external_id": f"m{writer // 2}"} if external else {}
            return user.conversation("first").add("user", f"hello {writer // 2}", **more)

        given = all_at_once(write)
        stored = user.conversation("first").messages()
        check_numbers(stored, WRITERS // 2 if external else WRITERS)
        assert {one.id for one in given} == {one.id for one in stored}
        assert store.stats(user=user.name)["conversations"] == 1
        assert store.stats(user=user.name)["pending"] == 3
    assert list(store.users()) == [f"user {attempt}" for attempt in range(3 * DOSE)]


def test_imports_of_the_same_conversations_in_other_orders_wait_for_each_other_and_store_each_message_once(
    store: memstore.MemoryStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each batch has messages of many conversations: whoever locked them as they come would wait in a circle."""
    monkeypatch.setattr(history, "MAX_BATCH_ITEMS", 60)
    names = [f"c{number}" for number in range(12)]

    def lines(order: Sequence[str]) -> Iterator[str]:
        for at in range(0, 30, 5):
            for name in order:
                for one in said(name, 5, start=at):
                    yield json.dumps(one | {"user": "alice", "conversation": name}, default=str) + "\n"

    def run(importer: int) -> ImportReport:
        path = tmp_path / f"{importer}.jsonl"
        path.write_text("".join(lines(random.Random(importer).sample(names, len(names)))))
        return store.import_file(path)

    done = all_at_once(run, 6)
    assert sum(one.new for one in done) == 360
    assert [(one.new + one.known, one.skipped) for one in done] == [(360, 0)] * 6
    for name in names:
        stored = store.user("alice").conversation(name).messages()
        check_numbers(stored, 30)
        assert [message.external_id for message in stored] == [f"{name}:{n}" for n in range(30)]


# -- derivers


def test_writing_and_deriving_workers_of_one_user_do_not_wait_in_a_circle(
    url: str, twin: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Chunks, counters, facts and new conversations of one user all meet on the user's row."""
    # More statements are alike here than are compared.
    monkeypatch.setattr(changes, "_may_be_pair", lambda *facts: False)
    each = 6 * DOSE

    def work(worker: int) -> None:
        with memstore.open(url, settings=HASHING) as store:
            for number in range(each):
                name = f"street{worker}x{number}"
                store.user("alice").conversation(name).add_many(said(name, 12))
                assert store.derive().failed == ()

    all_at_once(work, 4)
    with memstore.open(twin, settings=HASHING) as store:
        for worker in range(4):
            for number in range(each):
                name = f"street{worker}x{number}"
                store.user("alice").conversation(name).add_many(said(name, 12))
        store.derive()
    assert rows(url, "alice", without=LOG) == rows(twin, "alice", without=LOG)


def test_a_writer_that_waits_for_a_deriver_does_not_hold_it_up(store: memstore.MemoryStore, url: str) -> None:
    """A deriver holds its watermark, the writer waits to raise it, and the deriver's rows refer to the conversation."""
    trip = store.user("alice").conversation("lisbon")
    trip.add_many(said("lisbon", 2))
    with psycopg.connect(url) as deriver, ThreadPoolExecutor(1) as pool:
        deriver.execute("UPDATE derivations SET attempts = attempts WHERE deriver = 'summaries'")
        writer = pool.submit(trip.add_many, said("lisbon", 4))
        waiting = "SELECT count(*) FROM pg_stat_activity WHERE pg_backend_pid() = ANY(pg_blocking_pids(pid))"
        assert any(deriver.execute(waiting).fetchone() == (1,) for _ in attempts(30)), "the writer does not wait"
        deriver.execute("SET lock_timeout = '5s'")
        deriver.execute("SELECT FROM conversations FOR KEY SHARE")  # what a foreign key does
        deriver.commit()
        assert [message.seq for message in writer.result(timeout=30)] == [1, 2, 3, 4]


# -- readers


def test_readers_never_see_half_a_batch(store: memstore.MemoryStore) -> None:
    """Batches of 64, because a deriver takes 512 messages at a time: so it, too, takes whole ones."""
    trip = store.user("alice").conversation("lisbon")
    trip.add_many(batch(0))
    seen: dict[str, set[int]] = {"messages": set(), "context": set(), "recall": set(), "stats": set()}

    def read() -> None:
        seen["messages"].add(len(trip.messages()))
        context = trip.context("Where is batch 3?", budget=200_000)
        seen["context"].add(sum(str(one["content"]).startswith("note ") for one in context.messages))
        seen["recall"].add(len(trip.user.recall("note", tiers=["messages"], limit=2000)))
        seen["stats"].add(store.stats(user="alice")["messages"])

    with meanwhile(read), meanwhile(store.derive):
        for number in range(1, 8):
            trip.add_many(batch(number))
    read()
    store.derive()
    read()
    for what, counts in seen.items():
        assert {count for count in counts if count % 64} == set(), what
        assert max(counts) == 512, what


def batch(number: int) -> list[dict[str, object]]:
    moment = START + timedelta(minutes=number)
    return [{"role": "user", "content": f"note {number}/{n}", "occurred_at": moment} for n in range(64)]
