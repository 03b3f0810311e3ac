"""What may go wrong does: servers and workers are killed, disks fill, models fail. Nothing is lost or half there."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

import memstore
from memstore import ids
from memstore._compat import with_timeout
from memstore.providers import Vectors
from memstore.store.embedded import server
from memstore.store.embedded.folder import attempts
from memstore.store.embedded.postmaster import find_processes, get_cmdline
from memstore.testing import HashingEmbedder
from tests.helpers.user_rows import rows
from tests.working import HASHING, START, said

Socket = socket.socket


class CuttingProxy:
    """Listens on a port of 127.0.0.1 and hands on to the server of `url`, which listens on a Unix socket.

    Once `cut(word, arrived)` was called, the first connection on which a client sends that word is cut: before the
    server has it, or once it has `arrived` there and the server has answered, of which the client hears nothing.
    """

    def __init__(self, url: str) -> None:
        options = conninfo_to_dict(url)
        self._server = f"{options['host']}/.s.PGSQL.{options.get('port', 5432)}"
        self._listener = socket.create_server(("127.0.0.1", 0))
        port = self._listener.getsockname()[1]
        self.url = f"postgresql://{options['user']}@127.0.0.1:{port}/{options['dbname']}"
        self._word: bytes | None = None
        self._arrived = False
        self.cuts = 0
        self._sockets = [self._listener]
        self._threads: list[threading.Thread] = []
        self._begin(self._listen)

    def cut(self, word: bytes, *, arrived: bool) -> None:
        self._word, self._arrived = word, arrived

    def __enter__(self) -> CuttingProxy:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for one in self._sockets:
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(timeout=10)
        for one in self._sockets:
            one.close()

    def _begin(self, work: Callable[..., None], *arguments: object) -> None:
        self._threads.append(threading.Thread(target=work, args=arguments, daemon=True))
        self._threads[-1].start()

    def _listen(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.socket(socket.AF_UNIX)
                self._sockets += [client, server]
                server.connect(self._server)
                self._begin(self._hand_on, client, server, True)
                self._begin(self._hand_on, server, client, False)

    def _hand_on(self, one: Socket, other: Socket, from_client: bool) -> None:
        with suppress(OSError):
            while data := one.recv(65536):
                if from_client and self._word and self._word in data:
                    self._word, arrived = None, self._arrived
                    self.cuts += 1
                    one.shutdown(socket.SHUT_RDWR)
                    if arrived:
                        other.sendall(data)
                        other.recv(65536)  # the answer, so that it is done
                    break
                other.sendall(data)
        with suppress(OSError):
            other.shutdown(socket.SHUT_RDWR)


DOSE = int(os.environ.get("TEST_DOSE", "1"))  # how much longer than usual the tests may take


def kill_server(folder: Path) -> None:
    """Kill the server of this folder as an out-of-memory killer would, and wait until its processes are gone."""
    pid = int((folder / "data" / "postmaster.pid").read_text().splitlines()[0])
    command = get_cmdline(pid)
    assert str(folder / "data") in command, "another process"
    mark = command.partition("cluster_name=")[2].split()[0]
    mortal = set(find_processes(mark))
    os.kill(pid, signal.SIGKILL)
    # A store may have brought the server back before this looks.
    assert any(not mortal & set(find_processes(mark)) for _ in attempts(20)), "its processes stay"


# -- the server dies


@pytest.mark.slow
def test_what_was_acknowledged_survives_kills_of_the_server(folder: Path) -> None:
    """Eight writers on three conversations; after an error one half repeats the message, the other goes on."""
    acknowledged: dict[tuple[str, str], memstore.Message] = {}
    errors: list[BaseException] = []
    over = threading.Event()

    def write(writer: int) -> None:
        name, number = f"c{writer % 3}", 0
        while not over.is_set():
            external_id = f"{writer}:{number}"
            try:
                stored = (
                    store.user("alice").conversation(name).add("user", f"I am {external_id}.", external_id=external_id)
                )
                acknowledged[name, external_id] = stored
            except memstore.DatabaseError as error:
                errors.append(error)
                if writer % 2:
                    continue
            number += 1

    def until_acknowledged(more: int) -> None:
        goal = len(acknowledged) + more
        for _ in attempts(60):
            if len(acknowledged) >= goal:
                return
        raise AssertionError(f"writers do not come back: {errors[-1:]}")

    unsummarized = {**HASHING, "segment_tokens": 10**6}
    with memstore.open(f"embedded:{folder}", settings=unsummarized) as store, ThreadPoolExecutor(8) as pool:
        writers = [pool.submit(write, writer) for writer in range(8)]
        try:
            for _ in range(3 * DOSE):
                until_acknowledged(40)
                kill_server(folder)
            until_acknowledged(40)
        finally:
            over.set()
        for writer in writers:
            writer.result(timeout=60)
        assert {type(error) for error in errors} <= {memstore.DatabaseUnreachable}
        check_acknowledged(store, acknowledged)
        assert store.derive().failed == ()
        stats, facts = store.stats(), len(store.user("alice").facts(state="all"))  # superseded ones have chunks too
        assert (stats["chunks"], stats["vectors"] - facts, stats["pending"]) == (
            stats["messages"] + facts,
            stats["messages"],
            0,
        )


def check_acknowledged(store: memstore.MemoryStore, acknowledged: dict[tuple[str, str], memstore.Message]) -> None:
    """Every message that a writer was told of is there as told, once, and the numbers have no gaps."""
    stored = {}
    for name in ("c0", "c1", "c2"):
        found = store.user("alice").conversation(name).messages()
        info = store.user("alice").conversation(name).info()
        assert [one.seq for one in found] == list(range(1, len(found) + 1))
        assert info is not None
        assert info.last_seq == len(found)
        assert len({one.external_id for one in found}) == len(found), "one message twice"
        stored.update({(name, str(one.external_id)): one for one in found})
    for key, told in acknowledged.items():
        assert (stored[key].id, stored[key].seq, stored[key].content) == (told.id, told.seq, told.content)
    assert len(stored) - len(acknowledged) <= 8 * 3 * DOSE, "stored and not told: at most what was on its way at a kill"


def test_a_connection_that_is_cut_within_a_batch_leaves_nothing_of_it(url: str) -> None:
    with memstore.open(url, settings=HASHING) as store, ThreadPoolExecutor(1) as pool:
        trip = store.user("alice").conversation("lisbon")
        trip.add_many(said("lisbon", 1))
        before = rows(url, "alice")
        with psycopg.connect(url) as holder:
            # The watermark is raised after every message was sent: there the batch waits, and is cut off.
            holder.execute("SELECT FROM derivations FOR UPDATE")
            batch = pool.submit(trip.add_many, said("lisbon", 500))
            cut(holder)
            with pytest.raises(memstore.DatabaseUnreachable, match="does not answer"):
                batch.result(timeout=30)
        assert rows(url, "alice") == before
        assert [message.seq for message in trip.add_many(said("lisbon", 500))] == list(range(1, 501))


@pytest.mark.parametrize("arrived", [False, True], ids=["before", "after"])
def test_a_connection_that_is_cut_at_the_commit_is_told_and_a_repetition_stores_once(url: str, arrived: bool) -> None:
    """Whether a commit that is not answered was done nobody can know; with an external id it does not matter."""
    alone = HASHING | {"pool_size": 1}  # another connection of the pool, which begins with a commit, would be cut
    with CuttingProxy(url) as proxy, memstore.open(proxy.url, settings=alone) as store:
        trip = store.user("alice").conversation("lisbon")
        trip.add_many(said("lisbon", 3))
        proxy.cut(b"COMMIT", arrived=arrived)
        with pytest.raises(memstore.DatabaseUnreachable, match="does not answer"):
            trip.add_many(said("lisbon", 5, start=3))
        count = 8 if arrived else 3  # which the server may still be committing
        assert any(len(rows(url, "alice")["alice: messages"]) == count for _ in attempts(30)), "all or nothing of it"
        assert [one.seq for one in trip.add_many(said("lisbon", 5, start=3))] == [4, 5, 6, 7, 8]
        proxy.cut(b"INSERT INTO item_vectors", arrived=False)  # amid what a deriver stores
        with pytest.raises(memstore.DatabaseUnreachable):
            store.derive()
        assert "messages" not in {row["tier"] for row in rows(url, "alice")["alice: item_text"]}
        proxy.cut(b"COMMIT", arrived=arrived)
        with pytest.raises(memstore.DatabaseUnreachable):
            store.derive()
        assert store.derive().failed == ()
        assert proxy.cuts == 3
        assert store.backfills.verify() == []
        assert [one.seq for one in trip.messages()] == list(range(1, 9))


# More than a socket takes at once: psycopg's `commit()` in a pipeline waits for its answer before all of it was sent.
LARGE_WRITES: dict[str, Callable[[Any], Any]] = {
    "message": lambda talk: talk.add("user", "word " * 780_000),
    "batch": lambda talk: talk.add_many([{"role": "user", "content": f"{n} ".ljust(80_000, "-")} for n in range(100)]),
    "receipt": lambda talk: talk.context("What now?", budget=1_000_000, system="Be brief. " * 300_000),
}


@pytest.mark.parametrize("write", LARGE_WRITES.values(), ids=LARGE_WRITES)
def test_a_large_write_is_sent_whole(url: str, write: Callable[[Any], Any]) -> None:
    async def asynchronous() -> None:
        async with await memstore.open_async(url, settings=HASHING) as store:
            talk = store.user("alice").conversation("lisbon")
            await talk.add("user", "Let us plan the trip.")
            await write(talk)

    def blocking() -> None:
        with memstore.open(url, settings=HASHING) as store:
            write(store.user("alice").conversation("lisbon"))

    with_timeout(30, lambda: asyncio.run(asynchronous()))
    with_timeout(30, blocking)


def test_a_server_that_vanishes_without_a_word_is_noticed_in_a_minute(url: str) -> None:
    with CuttingProxy(url) as proxy:
        for place, idle in ((proxy.url, "30"), (f"{proxy.url}?keepalives_idle=7", "7")):
            with memstore.open(place, settings=HASHING) as store, store._database._pool.connection() as connection:
                told = connection.info.get_parameters()
                assert (told["keepalives_idle"], told["tcp_user_timeout"]) == (idle, "60000")


def test_a_pool_that_is_exhausted_says_so_and_loses_nothing(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memstore._sync.store.database.SECONDS_FOR_A_CONNECTION", 0.3)
    with memstore.open(url, settings=HASHING | {"pool_size": 1}) as store, ThreadPoolExecutor(1) as pool:
        trip = store.user("alice").conversation("lisbon")
        trip.add_many(said("lisbon", 1))
        with psycopg.connect(url) as holder:
            holder.execute("SELECT FROM conversations FOR UPDATE")
            slow = pool.submit(trip.add_many, said("lisbon", 4))
            waiting = "SELECT count(*) FROM pg_stat_activity WHERE pg_backend_pid() = ANY(pg_blocking_pids(pid))"
            assert any(holder.execute(waiting).fetchone() == (1,) for _ in attempts(30)), "nobody waits"
            with pytest.raises(memstore.DatabaseUnreachable, match=r"All 1 connections .* raise pool_size"):
                trip.messages()
        assert [one.seq for one in slow.result(timeout=30)] == [1, 2, 3, 4]
        assert len(trip.messages()) == 4


def test_a_statement_that_is_never_answered_ends(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for world in ("memstore", "memstore._sync"):
        monkeypatch.setattr(f"{world}.store.connections.MAX_SILENCE_SECONDS", 0.5)

    async def asynchronous() -> None:
        async with await memstore.open_async(url, settings=HASHING) as store:
            await store.user("alice").conversation("lisbon").add("user", "We sail on Sunday.")

    with memstore.open(url, settings=HASHING) as store, psycopg.connect(url) as holder:
        trip = store.user("alice").conversation("lisbon")
        trip.add_many(said("lisbon", 1))
        holder.execute("SELECT FROM conversations FOR UPDATE")
        for write in (lambda: trip.add("user", "We sail on Sunday."), lambda: asyncio.run(asynchronous())):
            with pytest.raises(memstore.DatabaseUnreachable, match=r"no answer .* nothing of this call was stored"):
                with_timeout(30, write)
        holder.rollback()
        assert [one.seq for one in trip.add_many(said("lisbon", 2, start=1))] == [2, 3]


def test_a_process_that_is_suspended_in_a_transaction_keeps_no_locks(url: str) -> None:
    with memstore.open(url, settings=HASHING) as store:
        user = store.user("alice").id
        told = pytest.raises(
            memstore.DatabaseUnreachable, match=r"asked for nothing .* Nothing of this call was stored"
        )
        with told, store._database.user_transaction(user) as tx:
            assert tx.column("SHOW idle_in_transaction_session_timeout") == ["10min"]
            tx.run("SET LOCAL idle_in_transaction_session_timeout = 50")
            time.sleep(0.5)
            tx.column("SELECT 1")
        with store._database.user_transaction(user) as tx:
            assert tx.column("SHOW idle_in_transaction_session_timeout") == ["10min"]


# A program that ends without closing its store.
UNCLOSED = """
import asyncio, sys, threading, memstore

url, kind, when = sys.argv[1:]
options = {"embedder": "hashing:256"}

async def fail():
    raise KeyError("mislaid")

async def main():
    talk = (await memstore.open_async(url, settings=options)).user("alice").conversation("lisbon")
    if when == "in a group":
        async with asyncio.TaskGroup() as tasks:
            for work in [*(talk.messages() for _ in range(9)), fail()]:
                tasks.create_task(work)
    if when == "after a call":
        await talk.messages()
    sys.exit("mislaid") if when == "on exit" else await fail()

def blocking():
    global talk
    talk = memstore.open(url, settings=options).user("alice").conversation("lisbon")
    if when == "in a group":
        for _ in range(9):
            threading.Thread(target=talk.messages).start()
    raise KeyError("mislaid")

asyncio.run(main()) if kind == "async" else blocking()
"""
ENDS = {
    "async": ("at once", "after a call", "in a group", "on exit"),
    "blocking": ("at once", "in a group"),
}


def test_a_program_that_does_not_close_its_store_ends_and_shows_why(url: str, folder: Path) -> None:
    """A worker of psycopg's pool that is connecting takes the end of its event loop for a failed connection."""
    cases = [(url, kind, when) for kind, ends in ENDS.items() for when in ends]
    cases.append((f"embedded:{folder}", "async", "at once"))
    command = [sys.executable, "-c", UNCLOSED]
    programs = [subprocess.Popen([*command, *case], stderr=subprocess.PIPE, text=True) for case in cases]
    try:
        for case, program in zip(cases, programs, strict=True):
            assert "mislaid" in program.communicate(timeout=120)[1], case
            assert program.returncode == 1
    finally:
        for program in programs:
            program.kill()


def cut(holder: psycopg.Connection[Any]) -> None:
    """Wait until somebody waits for a lock of `holder`, and cut the connection."""
    statement = """
        SELECT pg_terminate_backend(pid) FROM pg_stat_activity, pg_stat_clear_snapshot()
        WHERE datname = current_database() AND pg_backend_pid() = ANY(pg_blocking_pids(pid))
    """
    assert any(holder.execute(statement).fetchall() for _ in attempts(30)), "nobody waits"


# -- workers die

# Each life is a fork that is killed: at its nth exchange with the server, before it or after it, or by the clock.
LIVES = """
import itertools, json, os, random, re, signal, sys, threading, time
from pathlib import Path
import psycopg, memstore, memstore._sync.client.store, memstore.derive.facts.reader_extractor
from tests.helpers.fakes import ScriptedChatModel

url, work, seed, lives = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
exchanges = 0
kill_at, kill_after = 0, False
wait = psycopg.Connection.wait

def counted(self, *args, **kwargs):
    global exchanges
    exchanges += 1
    mine = exchanges
    if mine == kill_at and not kill_after:
        os.kill(os.getpid(), signal.SIGKILL)
    try:
        return wait(self, *args, **kwargs)
    finally:
        if mine == kill_at:
            os.kill(os.getpid(), signal.SIGKILL)

def summary(messages):
    told = re.findall(r"point \\d+|Point \\d+", messages[-1]["content"])
    return {"summary": " ".join(f"{one.capitalize()} was noted." for one in told)[:400]} if told else "nothing"

def facts(messages):
    found = re.findall(r'"message": (\\d+).*?(I live in [^,]*)', messages[-1]["content"])
    made = [dict(sources=[dict(message=int(number), quote=quote)], text=quote.replace("I live", "The user lives"),
        type="identity", kind="semantic", subject="The user", attribute="residence", value=quote[10:], confidence=0.5,
        language="en", valid_from=None, valid_to=None) for number, quote in found]
    return {"facts": made} if len(found) < 3 else "too much"

def run():
    with memstore.open(url, settings={"embedder": "hashing:256"}) as store:
        store.counter, store.embedder
        if work == "models":
            store._runtime.chat_models = tuple(
                ScriptedChatModel(itertools.repeat(answer), context_tokens=10**6) for answer in (summary, facts)
            )
        print("begun", flush=True)
        if work in ("derive", "models"):
            assert store.derive().failed == ()
        else:
            done = store.import_file(Path(work))
            assert not done.problems, done.problems

psycopg.Connection.wait = counted
chance = random.Random(seed)
killed = 0
for life in range(lives):
    kill_at, kill_after = (chance.randint(8, 120), chance.random() < 0.5) if life % 3 else (0, False)
    ready, begun = os.pipe()
    child = os.fork()
    if child == 0:
        os.dup2(begun, 1)
        run()
        os._exit(0)
    os.close(begun)
    if life % 3 == 0:
        os.read(ready, 6)
        time.sleep(chance.uniform(0, 0.25))
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    os.close(ready)
    killed += os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0, status
print(json.dumps({"killed": killed}))
kill_at = 0
run()
"""


def invalid(url: str) -> list[Any]:
    """Give the invalid responses and what calls cost, of both users."""
    found = []
    with psycopg.connect(url, autocommit=True) as connection:
        for user in ("alice", "bob"):
            for statement in (
                "SELECT to_jsonb(t) - 'recorded_at' FROM invalid_responses t WHERE user_id = %s ORDER BY id",
                "SELECT to_jsonb(t) - 'seconds' FROM model_usage t WHERE user_id = %s ORDER BY day, deriver",
            ):
                found += connection.execute(statement, [ids.user_id(user)]).fetchall()
    return found


def live_and_die(url: str, work: str, seed: int, lives: int) -> int:
    """Do the work in a process that is killed again and again, then to its end; give how often it was killed."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", LIVES, url, work, str(seed), str(lives)],
        capture_output=True,
        text=True,
        timeout=120 * DOSE,
        env=os.environ | {"OPENBLAS_NUM_THREADS": "1"},
    )
    assert (done.returncode, done.stderr) == (0, "")
    killed: int = json.loads(done.stdout.splitlines()[0])["killed"]
    return killed


@pytest.mark.slow
@pytest.mark.parametrize("work", ["derive", "models"])
def test_a_deriver_that_is_killed_again_and_again_makes_the_rows_of_one_that_is_not(
    url: str, twin: str, work: str
) -> None:
    """By the reader and by models: facts that supersede each other and their changes, summaries, invalid responses.

    With TEST_DOSE=16 it is killed at more than 100 random points.
    """
    for place in (url, twin):
        with memstore.open(place, settings=HASHING) as store:
            for user in ("alice", "bob"):
                for number in range(4 * DOSE):
                    name = f"{user}{number}"
                    talk = store.user(user).conversation(name)
                    if number == 0:
                        for day, text in enumerate(("My manager is Ann.", "My manager is now Bob.")):
                            at = START - timedelta(days=9 - day)
                            talk.add("user", text, occurred_at=at, external_id=f"{name}: manager {day}")
                    talk.add_many(said(name, 100 if number % 4 == 0 else 35))
    live_and_die(twin, work, seed=1, lives=0)
    killed = live_and_die(url, work, seed=1, lives=10 * DOSE)
    print(f"killed {killed} times")
    assert killed >= 6 * DOSE
    found = rows(url, "alice", "bob")
    assert found == rows(twin, "alice", "bob")
    assert invalid(url) == invalid(twin)
    for user in ("alice", "bob"):
        assert {row["level"] for row in found[f"{user}: summaries"]} == {1, 2}
        assert len({row["conversation_id"] for row in found[f"{user}: summaries"]}) == 4 * DOSE
        if work == "derive":  # models' facts take no slots
            assert {row["state"] for row in found[f"{user}: facts"]} >= {"active", "superseded"}
            assert {row["action"] for row in found[f"{user}: fact_changes"]} >= {"superseded"}
    assert bool(invalid(url)) == (work == "models")
    with memstore.open(url, settings=HASHING) as store:
        assert store.derive() == memstore.DeriveReport()
        assert store.stats()["pending"] == store.stats()["failed"] == 0


@pytest.mark.slow
def test_an_import_that_is_killed_again_and_again_takes_every_line_once(url: str, twin: str, tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    lines = [
        {
            "user": "alice" if at % 400 else "bob",
            "conversation": f"c{at % 900}",
            "role": "user",
            "content": f"line {at + n}",
        }
        for at in range(0, 2000, 100)
        for n in range(100)
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    with memstore.open(twin, settings=HASHING) as store:
        assert store.import_file(path).new == 2000
    undisturbed = rows(twin, "alice", "bob")
    killed = live_and_die(url, str(path), seed=2, lives=6 * DOSE)
    assert killed >= 3
    # occurred_at is the time of the import, because these lines have none.
    for found in (disturbed := rows(url, "alice", "bob"), undisturbed):
        for user in ("alice", "bob"):
            for message in found[f"{user}: messages"]:
                del message["occurred_at"]
    assert disturbed == undisturbed
    with memstore.open(url, settings=HASHING) as store:
        again = store.import_file(path)
        assert (again.new, again.known) == (0, 2000)
        for user, conversation in {(line["user"], line["conversation"]) for line in lines}:
            expected = [
                line["content"] for line in lines if (line["user"], line["conversation"]) == (user, conversation)
            ]
            found_ = store.user(user).conversation(conversation).messages()
            assert [message.content for message in found_] == expected
            assert [message.seq for message in found_] == list(range(1, len(expected) + 1))


# -- models fail


class Broken(HashingEmbedder):
    def __init__(self, fault: Callable[[Vectors], Vectors]) -> None:
        super().__init__(256)
        self.fault = fault

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        vectors = super().embed_documents(texts)
        return self.fault(vectors) if any("poison" in text.casefold() for text in texts) else vectors


def one_too_few(vectors: Vectors) -> Vectors:
    return vectors[:-1]


def not_a_number(vectors: Vectors) -> Vectors:
    vectors[-1, 0] = np.nan
    return vectors


FAULTS = [one_too_few, not_a_number]


@pytest.mark.parametrize("fault", FAULTS)
def test_a_model_that_fails_in_one_conversation_harms_nothing(
    url: str, twin: str, fault: Callable[[Vectors], Vectors]
) -> None:
    names = ["one", "poison", "two"]
    for place in (url, twin):
        with memstore.open(place, settings=HASHING) as store:
            for name in names:
                store.user("alice").conversation(name).add_many(said(name, 25))
    with memstore.open(url, settings=HASHING) as store:
        alice = store.user("alice")
        before = rows(url, "alice")
        store._runtime.embedder = Broken(fault)
        report = store.derive()
        broken = str(alice.conversation("poison").id)
        assert {line.partition(":")[0] for line in report.failed} == {
            f"{deriver} of conversation {broken}" for deriver in ("chunks", "summaries", "facts")
        }
        assert len(report.failed) == 3
        assert report.messages == 50
        after = rows(url, "alice")
        assert after["alice: messages"] == before["alice: messages"]
        for table, deriver in {"item_text": "chunks", "summaries": "summaries", "facts": "facts"}.items():
            text = json.dumps(after[f"alice: {table}"])
            assert broken not in text, f"half of what {deriver} makes"
            assert str(alice.conversation("one").id) in text or table == "facts"
        assert "Poison" not in json.dumps(after["alice: facts"])
        assert (store.stats()["failed"], store.stats()["pending"]) == (3, 3)
        assert {len(json.loads(row["embedding"])) for row in after["alice: item_vectors"]} == {256}
        assert store.derive().failed, "it fails again, and is not forgotten"
        del store._runtime.embedder
        assert store.derive().failed == ()
        assert (store.stats()["failed"], store.stats()["pending"]) == (0, 0)
    with memstore.open(twin, settings=HASHING) as store:
        store.derive()
    assert rows(url, "alice") == rows(twin, "alice")


# -- the disk fills


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    place = tmp_path / "disk"
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=120m", "tmpfs", str(place)], check=True)
    try:
        yield place
    finally:
        if (place / "store" / "data").is_dir():
            server.stop(place / "store")
        subprocess.run(["umount", str(place)], check=True)


@pytest.mark.root
@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="mounts a tmpfs")
@pytest.mark.parametrize("log", [False, True], ids=["tables", "log"])
def test_a_full_disk_is_told_and_costs_nothing_that_was_acknowledged(small_disk: Path, log: bool) -> None:
    """Where the tables cannot grow, a call fails; where the write-ahead log cannot, the server itself goes down."""
    ballast = small_disk / "ballast"
    with memstore.open(f"embedded:{small_disk / 'store'}", settings=HASHING) as store:
        trip = store.user("alice").conversation("lisbon")
        acknowledged = list(trip.add_many(said("lisbon", 20)))
        with psycopg.connect(store.url, autocommit=True) as connection:
            with ballast.open("wb", buffering=0) as file, suppress(OSError):
                while file.write(b"x" * 65536):
                    pass
            with suppress(psycopg.OperationalError):
                while log:
                    connection.execute("SELECT pg_logical_emit_message(true, '', repeat('x', 1000000))")
        with pytest.raises((memstore.DatabaseError, memstore.EmbeddedError)) as told:
            for number in range(400):
                acknowledged += trip.add_many([{"role": "user", "content": "x" * 20_000, "external_id": f"n{number}"}])
        assert "free some space" in str(told.value) if not log else "0 MB are free" in str(told.value)
        if not log:
            assert trip.messages(), "what is stored can be read all the time"
            with pytest.raises(memstore.DatabaseError, match=r"disk of .* is full"):
                trip.add_many(said("lisbon", 400, start=20))
        ballast.unlink()
        later = trip.add("user", "There is room again.")
        stored = trip.messages()
        assert [message.seq for message in stored] == list(range(1, later.seq + 1))
        assert [message.seq for message in stored if message.id in {one.id for one in acknowledged}] == [
            one.seq for one in acknowledged
        ]
        assert later.seq <= len(acknowledged) + 2, "at most the message that was on its way when the disk was full"
        assert store.derive().failed == ()
