"""Servers that only read, and a standby that takes the place of a primary which is lost under load."""

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event, Thread

import psycopg
import pytest

import memstore
from memstore.errors import DatabaseError
from memstore.store.embedded.folder import Account
from memstore.store.embedded.programs import executable
from memstore.store.embedded.server import EmbeddedServer
from tests.working import HASHING, wait_until

READS = "options=-cdefault_transaction_read_only%3Don"


def test_a_server_that_only_reads_gives_contexts_without_receipts(url: str) -> None:
    with memstore.open(url, settings=HASHING) as store:
        talk = store.user("alice").conversation("c")
        talk.add("user", "I live in Porto, and I am allergic to peanuts.")
        store.derive()
        expected = talk.context("Where do I live?", budget=300).messages
        kept = len(store.user("alice").events())
    with memstore.open(f"{url}{'&' if '?' in url else '?'}{READS}", settings=HASHING) as reading:
        alice = reading.user("alice")
        context = alice.conversation("c").context("Where do I live?", budget=300)
        assert (context.messages, context.receipt.id) == (expected, None)
        assert "Porto" in str(alice.recall("Porto")) and alice.facts()
        assert len(alice.events()) == kept
        with pytest.raises(DatabaseError, match=r"only reads.*nothing of this call was stored.*primary"):
            alice.conversation("c").add("user", "This is not kept.")


@contextmanager
def standby_of(primary: EmbeddedServer, folder: Path) -> Iterator[str]:
    """Run a synchronous hot standby of a server; give the folder of its socket."""
    data, sockets = folder / "data", folder / "run"
    sockets.mkdir(parents=True)
    copy = [
        "pg_basebackup",
        "--dbname",
        primary.url,
        "--pgdata",
        str(data),
        "--checkpoint=fast",
        "--write-recovery-conf",
    ]
    account = Account.of(folder)
    subprocess.run(executable(copy, account), check=True, capture_output=True)
    owner = primary.folder.joinpath("data").stat()
    for path in (folder, *folder.rglob("*")):
        os.chown(path, owner.st_uid, owner.st_gid, follow_symlinks=False)
    command = ["postgres", "-D", str(data)]
    for setting in (
        f"unix_socket_directories={sockets}",
        "hot_standby=on",
        "cluster_name=standby",
        "listen_addresses=",
    ):
        command += ["-c", setting]
    process = account.spawn(
        executable(command, account), data, sockets, stdin=subprocess.DEVNULL, output=subprocess.DEVNULL
    )
    try:
        with psycopg.connect(primary.url, autocommit=True) as connection:
            wait_until(lambda: connection.execute("select from pg_stat_replication where state = 'streaming'").rowcount)
            connection.execute("alter system set synchronous_standby_names = '*'")
            connection.execute("select pg_reload_conf()")
            wait_until(lambda: connection.execute("select from pg_stat_replication where sync_state = 'sync'").rowcount)
        yield str(sockets)
    finally:
        process.terminate()
        process.wait()


@pytest.mark.slow
def test_a_standby_takes_the_place_of_a_lost_primary(tmp_path: Path) -> None:
    """Nothing that was acknowledged is lost, and each store goes on within five seconds of the promotion."""
    primary = EmbeddedServer.open(tmp_path / "primary")
    with memstore.open(primary.url, settings=HASHING) as store:
        store.user("alice").conversation("c").add("user", "I live in Porto.")
        store.derive()
    parts = psycopg.conninfo.conninfo_to_dict(primary.url)
    with standby_of(primary, tmp_path / "standby") as sockets:
        with memstore.open(primary.url.replace(str(parts["host"]), sockets), settings=HASHING) as reading:
            context = reading.user("alice").conversation("c").context("Where do I live?", budget=300)
            assert "Porto" in str(context.messages) and context.receipt.id is None
        hosts = f"host={parts['host']},{sockets}&target_session_attrs=read-write"
        both = f"postgresql://{parts['user']}@/{parts['dbname']}?{hosts}"
        stop, acknowledged, promoted = Event(), list[str](), Event()
        resumed = dict[int, float]()

        def write(writer: int) -> None:
            with memstore.open(both, settings=HASHING) as store:
                n = 0
                while not stop.is_set():
                    with suppress(DatabaseError):
                        name = f"{writer}/{n}"
                        store.user("bob").conversation(str(writer)).add("user", name, external_id=name)
                        acknowledged.append(name)
                        if promoted.is_set():
                            resumed.setdefault(writer, time.monotonic())
                        n += 1

        writers = [Thread(target=write, args=[n]) for n in range(4)]
        for writer in writers:
            writer.start()
        wait_until(lambda: len(acknowledged) > 100)
        os.kill(int((tmp_path / "primary" / "data" / "postmaster.pid").read_text().split()[0]), signal.SIGQUIT)
        with psycopg.connect(f"{both.partition('?')[0]}?host={sockets}", autocommit=True) as standby:
            standby.execute("alter system reset synchronous_standby_names")
            standby.execute("select pg_promote()")
        writable = time.monotonic()
        promoted.set()
        before = len(acknowledged)
        wait_until(lambda: len(resumed) == len(writers) and len(acknowledged) > before + 100)
        stop.set()
        for writer in writers:
            writer.join()
        with memstore.open(both, settings=HASHING) as store:
            talks = [store.user("bob").conversation(str(writer)) for writer in range(4)]
            stored = [message.text for talk in talks for message in talk.messages()]
        assert len(stored) == len(set(stored))
        assert set(acknowledged) <= set(stored)
        assert max(resumed.values()) - writable < 5
    primary.close()
