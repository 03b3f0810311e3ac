"""Another embedder while all go on: by commands that are killed, beside recalls, contexts, adds and a worker."""

import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import memstore
from memstore.models import Hit
from tests.command_line import Run, environment, variables
from tests.helpers.conformance import check_alike
from tests.helpers.embedders import SECONDS, install
from tests.working import said, wait_until_derived, worker

OLD, NEW = "turned:1", "turned:2"
DOSE = int(os.environ.get("TEST_DOSE", "1"))  # how much longer than usual the tests may take
QUESTIONS = ["Where do I live, in which street 12?", "What does my sister Clara do?", "Shall we go on with the plan?"]


@pytest.fixture(autouse=True)
def turned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = install(tmp_path)
    monkeypatch.syspath_prepend(folder)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([folder, str(Path(__file__).parents[2])]))


@pytest.fixture
def store(url: str) -> Iterator[memstore.MemoryStore]:
    """A store whose setting names the old embedder, whatever happens."""
    with memstore.open(url, settings={"embedder": OLD}) as store:
        yield store


def derived(store: memstore.MemoryStore, *users: str, messages: int = 60) -> None:
    for user in users:
        store.user(user).conversation("first").add_many(said("first", messages))
    assert store.derive().failed == ()


def recalled(store: memstore.MemoryStore, user: str) -> list[list[Hit]]:
    return [store.user(user).recall(question, limit=8) for question in QUESTIONS]


def states(store: memstore.MemoryStore) -> dict[str, tuple[str, int, int]]:
    """Give the state of each embedder, how many users have vectors of it, and how many chunks have none."""
    return {one.name: (one.state, one.users, one.chunks - one.vectors) for one in store.embeddings.status()}


# -- the commands


def test_the_commands_move_users_and_bring_them_back(url: str, cli: Run, store: memstore.MemoryStore) -> None:
    derived(store, "alice", "bob", messages=12)
    chunks = store.stats()["chunks"]
    at = ("-d", url)
    moved = cli("embeddings", "migrate", "--to", NEW, "--json", *at, embedder=OLD)
    assert (moved.code, moved.json) == (0, {"users": 2, "vectors": chunks, "refused": []})
    told = cli("embeddings", "migrate", "--to", NEW, *at, embedder=OLD)
    assert (told.code, told.out) == (0, f"{NEW} is the active embedder; 0 vectors of 0 users made\n")
    assert f"set MEMSTORE_EMBEDDER={NEW}" in told.err
    found = cli("embeddings", "status", "--json", *at)
    every = {"dimensions": 256, "users": 2, "chunks": chunks, "vectors": chunks, "missing": 0}
    assert found.json == [{"name": NEW, "state": "serving"} | every, {"name": OLD, "state": "retired"} | every]
    assert cli("embeddings", "status", *at).out.splitlines()[0].split("\t") == [
        NEW, "256", "serving", "2", str(chunks), str(chunks), "0",
    ]  # fmt: skip
    assert cli("embeddings", "migrate", "--to", OLD, "--json", *at, embedder=OLD).json == {
        "users": 0,
        "vectors": 0,
        "refused": [],
    }
    assert cli("embeddings", "clean", "--json", *at).json == {"users": 2, "vectors": chunks, "refused": []}
    assert states(store) == {OLD: ("serving", 2, 0), NEW: ("retired", 0, chunks)}


# -- killed

KILLED = """
import os, signal, sys
import memstore
from memstore._sync.store.database import Transaction

url, left = sys.argv[1], [int(sys.argv[2])]

def killing(real):
    def write(*args, **values):
        left[0] -= 1
        if left[0] < 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return real(*args, **values)
    return write

with memstore.open(url, settings={"embedder": "turned:1"}) as store:
    Transaction.run, Transaction.run_many = killing(Transaction.run), killing(Transaction.run_many)
    store.embeddings.migrate("turned:2")
"""


def killed(url: str, writes: int) -> bool:
    """Migrate in a process that is killed before it writes once more than this; False where it ends."""
    ended = subprocess.run([sys.executable, "-c", KILLED, url, str(writes)], env=environment(), timeout=60)
    assert ended.returncode in (0, -signal.SIGKILL)
    return ended.returncode != 0


@pytest.mark.slow
def test_killed_before_any_write_it_goes_on_or_back(url: str, store: memstore.MemoryStore) -> None:
    derived(store, "alice", messages=12)
    before, chunks = recalled(store, "alice"), store.stats()["chunks"]
    writes = 0
    while killed(url, writes):
        check_alike(recalled(store, "alice"), before)
        if writes % 2:
            store.embeddings.migrate(NEW)
            assert states(store) == {NEW: ("serving", 1, 0), OLD: ("retired", 1, 0)}
            check_alike(recalled(store, "alice"), before)
        store.embeddings.migrate(OLD)
        check_alike(recalled(store, "alice"), before)
        store.embeddings.clean()
        assert states(store) in ({OLD: ("serving", 1, 0)}, {OLD: ("serving", 1, 0), NEW: ("retired", 0, chunks)})
        assert store.backfills.verify() == []
        writes += 1
    assert writes >= 6


# -- under load


class Load:
    """Threads that ask and add without a pause, in a process that is told of nothing.

    To a quiet user nothing is added, so its answers must never change. Of a busy one, whose messages a worker derives,
    the cosines must not.
    """

    def __init__(self, store: memstore.MemoryStore) -> None:
        self.store = store
        self.expected = {user: recalled(store, user) for user in ("quiet", "busy")}
        self.messages = self._context()
        self.done: Counter[str] = Counter()
        self.wrong: list[BaseException] = []
        self.over = threading.Event()

    def recall_quiet(self) -> None:
        check_alike(recalled(self.store, "quiet"), self.expected["quiet"])

    def context_quiet(self) -> None:
        assert self._context() == self.messages

    def recall_busy(self) -> None:
        for question, hits in zip(QUESTIONS, self.expected["busy"], strict=True):
            cosines = {hit.id: hit.parts["semantic"] for hit in hits}
            found = self.store.user("busy").recall(question, limit=20)
            again = {hit.id: hit.parts["semantic"] for hit in found if hit.id in cosines}
            assert again
            assert again == pytest.approx({id: cosines[id] for id in again}, abs=2e-6)

    def add_busy(self) -> None:
        number = self.done["add_busy"]
        place = self.store.user("busy").conversation(f"added{number % 3}")
        place.add("user", f"In town {number} I met the gardener of house {number * 7 % 100}.")
        time.sleep(0.2)  # what a busy machine derives

    def _context(self) -> Any:
        return self.store.user("quiet").conversation("first").context(QUESTIONS[0], budget=700).messages

    def repeat(self, work: Callable[[], None]) -> None:
        while not self.over.is_set():
            try:
                work()
                self.done[work.__name__] += 1
            except BaseException as error:
                self.wrong.append(error)
                return

    @contextmanager
    def going_on(self) -> Iterator[None]:
        works = (self.recall_quiet, self.context_quiet, self.recall_busy, self.add_busy)
        threads = [threading.Thread(target=self.repeat, args=[work]) for work in works]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self.over.set()
            for thread in threads:
                thread.join(60)
        if self.wrong:
            raise self.wrong[0]


def command(url: str, *args: str) -> subprocess.Popen[bytes]:
    """Begin a command of another process, whose embedder takes its time."""
    env = environment(**variables({"embedder": OLD}), **{SECONDS: "0.3"})
    return subprocess.Popen([sys.executable, "-m", "memstore", "embeddings", *args, "-d", url], env=env)


def kill_at_work(url: str, store: memstore.MemoryStore, wait: float, *args: str) -> bool:
    """Kill a command a moment after it has begun; False where it was done before."""
    running = command(url, *args)
    while running.poll() is None and "building" not in {one.state for one in store.embeddings.status()}:
        time.sleep(0.01)
    time.sleep(wait)
    running.kill()
    return running.wait() == -signal.SIGKILL


@pytest.mark.slow
def test_under_load_no_recall_fails_and_none_is_mixed(url: str, store: memstore.MemoryStore, tmp_path: Path) -> None:
    derived(store, "quiet", "busy")
    load, chance = Load(store), random.Random(6)
    kills = 0
    with worker(url, tmp_path, embedder=OLD):
        with load.going_on():
            for target in (NEW, OLD, NEW) * DOSE:
                for _ in range(2):
                    kills += kill_at_work(url, store, chance.uniform(0, 0.7), "migrate", "--to", target)
                assert command(url, "migrate", "--to", target).wait(timeout=60) == 0
                assert serving(store) == {target}
        wait_until_derived(url)
    assert kills >= 2
    assert min(load.done.values()) > 10
    assert store.backfills.verify() == []
    assert states(store)[NEW] == ("serving", 2, 0)
    check_alike(recalled(store, "quiet"), load.expected["quiet"])


def serving(store: memstore.MemoryStore) -> set[str]:
    return {one.name for one in store.embeddings.status() if one.state == "serving"}
