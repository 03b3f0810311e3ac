"""Erasing while others derive, add, ask and are killed: all or nothing, and nothing of it is written afterwards."""

import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest

import memstore
from memstore import Erased, ids
from memstore.providers import Vectors
from memstore.testing import HashingEmbedder
from tests.client.test_erase import dumped, holding, said as said_in
from tests.command_line import Run
from tests.working import HASHING, START


def said(first: int, count: int, secret: str = "") -> list[dict[str, Any]]:
    return [
        {
            "role": "user",
            "content": f"I live in Town{n}{secret}ville, and my neighbour painted house {n}.",
            "occurred_at": START + timedelta(hours=6 * n),
            "external_id": f"m{n}",
        }
        for n in range(first, first + count)
    ]


class Slow:
    """Stops the world where a text is embedded, until it is told to go on."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.reached, self.go_on = threading.Event(), threading.Event()
        real = HashingEmbedder.embed_documents

        def slowly(embedder: HashingEmbedder, texts: Sequence[str]) -> Vectors:
            self.reached.set()
            assert self.go_on.wait(60)
            return real(embedder, texts)

        monkeypatch.setattr(HashingEmbedder, "embed_documents", slowly)


Erase = Callable[[memstore.MemoryStore], object]


def of_message(store: memstore.MemoryStore) -> object:
    return store.user("alice").erase_message(store.user("alice").conversation("c").messages()[4])


def of_conversation(store: memstore.MemoryStore) -> object:
    return store.user("alice").conversation("c").erase()


def of_user(store: memstore.MemoryStore) -> object:
    return store.user("alice").erase()


def of_user_who_comes_again(store: memstore.MemoryStore) -> object:
    store.user("alice").erase()
    return store.user("alice").conversation("c").add("user", "Hello again.")


@pytest.mark.parametrize("erase", [of_message, of_conversation, of_user, of_user_who_comes_again])
@pytest.mark.parametrize("redo", [None, "facts"])
def test_what_was_read_before_an_erasure_is_not_written_after_it(
    url: str, monkeypatch: pytest.MonkeyPatch, erase: Erase, redo: str | None
) -> None:
    """A deriver that has read a message is thinking while it is erased."""
    with memstore.open(url, settings=HASHING) as store, memstore.open(url, settings=HASHING) as other:
        store.user("alice").conversation("c").add_many(said(0, 10, "secret"))
        if redo:
            store.derive()
            with psycopg.connect(url) as connection:
                connection.execute("update derivations set recipe = null where deriver = 'facts'")
        slow = Slow(monkeypatch)
        with ThreadPoolExecutor(1) as pool:
            deriving = pool.submit(store.derive, redo=redo)
            assert slow.reached.wait(30)
            erase(other)
            slow.go_on.set()
            report = deriving.result(60)
        assert report.failed == ()
        secret = "Town4secretville" if erase is of_message else "secretville"
        assert holding(url, secret) == {}
        left = {"alice"} & set(store.users())
        if not redo and left and erase is not of_user_who_comes_again:  # then it depends on who looked when
            assert store.stats(user="alice")["pending"] == 0, "what is left was derived in the same run"
        store.derive()
        assert holding(url, secret) == {}
        assert [one.problem for one in store.backfills.verify()] == []


def test_a_context_that_was_begun_before_an_erasure_leaves_no_receipt(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with memstore.open(url, settings=HASHING) as store, memstore.open(url, settings=HASHING) as other:
        place = store.user("alice").conversation("c")
        place.add_many(said(0, 10, "secret"))
        store.derive()
        reached, go_on = threading.Event(), threading.Event()
        from memstore._sync.context import builder

        real = builder._save_receipt

        def slowly(*args: Any, **options: Any) -> Any:
            reached.set()
            assert go_on.wait(60)
            return real(*args, **options)

        monkeypatch.setattr(builder, "_save_receipt", slowly)
        with ThreadPoolExecutor(1) as pool:
            asked = pool.submit(place.context, "Where do I live?", budget=900, strategy=["summary_buffer"])
            assert reached.wait(30)
            of_message(other)
            go_on.set()
            context = asked.result(60)
        assert context.receipt.id is None
        assert store.stats(user="alice")["receipts"] == 0
        assert holding(url, "Town4secretville") == {}


def test_erasing_while_messages_are_added_and_derived_ends_with_none_that_was_erased(url: str) -> None:
    """Writers send their history again and again, derivers derive, readers ask: and a user is erased in between."""
    stop = threading.Event()
    failures: list[BaseException] = []

    def until_stopped(work: Callable[[memstore.MemoryStore, int], object], number: int) -> None:
        with memstore.open(url, settings=HASHING) as own:
            while not stop.is_set():
                try:
                    work(own, number)
                except BaseException as error:
                    failures.append(error)
                    return

    def write(own: memstore.MemoryStore, number: int) -> None:
        try:
            own.user("alice").conversation(f"c{number}").add_many(said(number * 20, 20, "secret"))
        except Erased:
            time.sleep(0.01)

    def derive(own: memstore.MemoryStore, _: int) -> None:
        assert own.derive().failed == ()

    def ask(own: memstore.MemoryStore, number: int) -> None:
        own.user("alice").conversation(f"c{number % 2}").context("Where do I live?", budget=500)

    with memstore.open(url, settings=HASHING) as store, ThreadPoolExecutor(5) as pool:
        works = [(write, 0), (write, 1), (derive, 0), (ask, 0), (ask, 1)]
        running = [pool.submit(until_stopped, work, number) for work, number in works]
        time.sleep(2)
        for _ in range(3):
            store.user("alice").erase()
            time.sleep(0.3)
        time.sleep(1)
        stop.set()
        for one in running:
            one.result(60)
        assert failures == []
        kept = {
            one.text
            for place in store.user("alice").conversations()
            for one in store.user("alice").conversation(place.name).messages()
        }
        assert kept == set(), "each message had an external id, and was there when it was erased"
        assert holding(url, "secretville") == {}


KILLED = """
import sys, memstore
from memstore._sync.store import erasure
url, after = sys.argv[1], int(sys.argv[2])
import os, signal
real, count = erasure.Transaction.run, 0
def run(self, statement, **values):
    global count
    count += 1
    if count > after:
        os.kill(os.getpid(), signal.SIGKILL)
    return real(self, statement, **values)
erasure.Transaction.run = run
with memstore.open(url, settings={"embedder": "hashing:256"}) as store:
    store.user("alice").erase()
"""


def test_an_erasure_that_is_killed_in_the_middle_has_done_nothing(url: str) -> None:
    with memstore.open(url, settings=HASHING) as store:
        store.user("alice").conversation("c").add_many(said(0, 10, "secret"))
        store.derive()
        before = dumped(url)
        for after in (1, 5):
            done = subprocess.run([sys.executable, "-c", KILLED, url, str(after)], check=False)
            assert done.returncode == -signal.SIGKILL
            assert dumped(url) == before
        assert store.user("alice").erasures() == []
        certificate = store.user("alice").erase()
        assert certificate.counts["messages"] == 10
        assert holding(url, "secretville", ids.user_id("alice")) == {}


# On the command line: asked for, rehearsed, told as JSON, and looked for afterwards


@pytest.fixture
def place(url: str) -> str:
    with memstore.open(url, settings=HASHING) as store:
        store.user("alice").conversation("lisbon").add_many(said_in("alice", "lisbon"))
        store.derive()
    return url


def test_nothing_is_erased_that_nobody_has_said_yes_to(place: str, cli: Run) -> None:
    for command in (("user", "alice"), ("conversation", "lisbon", "-u", "alice")):
        done = cli("erase", *command, "-d", place)
        assert (done.code, done.out) == (1, "")
        assert "--yes" in done.err
        rehearsed = cli("erase", *command, "--dry-run", "--json", "-d", place)
        assert rehearsed.code == 0
        assert rehearsed.json["counts"]["messages"] == 12
        assert rehearsed.json["id"] is None
        assert "rows are gone" not in cli("erase", *command, "--dry-run", "-d", place).err
    assert holding(place, "alicelisbon2ville")["messages"] == 1


def test_a_vacuum_leaves_no_byte_of_what_was_erased_in_the_files_of_tables(cli: Run, folder: Path) -> None:
    place = f"embedded:{folder}"
    with memstore.open(place, settings=HASHING) as store:
        store.user("alice").conversation("lisbon").add_many(said_in("alice", "lisbon"))
        store.derive()
        assert store.user("alice").erase().counts["messages"] == 12
        ended = cli("db", "vacuum", "--json", "-d", place)
        assert (ended.code, "messages" in ended.json["tables"]) == (0, True)
        with psycopg.connect(store.url, autocommit=True) as superuser:
            superuser.execute("checkpoint")
    files = [file for file in (folder / "data" / "base").rglob("*") if file.is_file()]
    assert len(files) > 100
    assert [file for file in files if b"alicelisbon" in file.read_bytes()] == []


def test_what_was_erased_is_certified_and_verified(place: str, cli: Run, tmp_path: Path) -> None:
    with memstore.open(place, settings=HASHING) as store:
        message = store.user("alice").conversation("lisbon").messages()[1].id
        fact = str(next(one.id for one in store.user("alice").facts() if "lisbon4" in one.text))
    done = cli("erase", "message", str(message), "-u", "alice", "--yes", "--json", "-d", place)
    assert done.code == 0
    file = tmp_path / "certificate.json"
    file.write_text(done.out)
    verified = cli("verify-erasure", str(file), "--json", "-d", place)
    assert (verified.code, [each["ids"] for each in verified.json]) == (0, [1])
    assert holding(place, "alicelisbon2ville") == {}
    assert cli("erase", "fact", fact[:8], "-u", "alice", "-y", "-d", place).code == 0
    done = cli("erase", "user", "alice", "--yes", "-d", place)
    assert done.code == 0
    told = dict(line.split("\t") for line in done.out.splitlines())
    assert {"user", "tombstones", "looked for in", "certificate"} <= told.keys(), "a fact a line"
    assert told["messages"] == "11"
    assert told["rows found"] == "0"
    listed = cli("erasures", "-u", "alice", "--json", "-d", place).json
    assert [one["scope"] for one in listed] == ["user", "fact", "message"]
    assert cli("erasures", "-u", "alice", "-d", place).out.count("\n") == 3
    assert holding(place, "alice") == {}
    again = cli("erase", "user", "alice", "--yes", "-d", place)
    assert "nothing to erase" in again.err


def test_all_certificates_of_a_list_are_verified(place: str, cli: Run, tmp_path: Path) -> None:
    with memstore.open(place, settings=HASHING) as store:
        user = store.user("alice")
        first, second = user.conversation("lisbon").messages()[:2]
        back = second.as_chat() | {"occurred_at": second.occurred_at}
        gone = [user.erase_message(one).id for one in (first, second)]
    file = tmp_path / "certificates.json"
    file.write_text(cli("erasures", "-u", "alice", "--json", "-d", place).out)
    found = cli("verify-erasure", str(file), "--json", "-d", place)
    assert found.code == 0
    assert [one["certificate"] for one in found.json] == [str(id) for id in reversed(gone)]
    assert [one["found"] for one in found.json] == [{}, {}]
    shown = cli("verify-erasure", str(file), "-d", place)
    assert (shown.code, shown.out.count("nothing is left")) == (0, 2)

    with memstore.open(place, settings=HASHING) as store:  # an id of the second one stands in a text
        store.user("bob").conversation("gossip").add_many([back | {"content": f"It was {second.id}."}])
    found = cli("verify-erasure", str(file), "--json", "-d", place)
    assert (found.code, [bool(one["found"]) for one in found.json]) == (1, [True, False])
    shown = cli("verify-erasure", str(file), "-d", place)
    assert (shown.out.count("nothing is left"), shown.out.count("something is left")) == (1, 1)

    retained = json.loads(file.read_text())[0] | {"scope": "retention"}
    file.write_text(json.dumps(retained))
    shown = cli("verify-erasure", str(file), "-d", place)
    assert (shown.code, "not searched" in shown.out, "nothing is left" in shown.out) == (0, True, False)

    file.write_text(cli("erase", "conversation", "lisbon", "-u", "alice", "--dry-run", "--json", "-d", place).out)
    shown = cli("verify-erasure", str(file), "-d", place)
    assert (shown.code, shown.out, "dry run" in shown.err) == (2, "", True)

    file.write_text("[]")
    found = cli("verify-erasure", str(file), "--json", "-d", place)
    assert (found.code, found.json) == (0, [])


def test_mistakes_are_told(place: str, cli: Run, tmp_path: Path) -> None:
    for command in (("user", "alice", "-u", "bob"), ("user", "alice", "bob"), ("conversation", "lisbon")):
        assert cli("erase", *command, "-y", "-d", place).code == 2, command
    file = tmp_path / "other.json"
    wrong = {
        json.dumps([{}]): "scope: Field required; user_id: Field required",
        json.dumps({"scope": "message", "user_id": str(ids.uuid7()), "erased": []}): "names nothing that was erased",
        "user: 34": "no certificate",
        None: "No such file",
    }
    for body, why in wrong.items():
        file.unlink(missing_ok=True)
        if body is not None:
            file.write_text(body)
        done = cli("verify-erasure", str(file), "-d", place)
        assert (done.code, done.out, why in " ".join(done.err.split())) == (2, "", True)
    unknown = cli("erase", "message", str(ids.uuid7()), "-u", "alice", "-y", "-d", place)
    assert (unknown.code, "no message" in unknown.err) == (2, True)
