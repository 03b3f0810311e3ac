"""Workers as processes of their own, and histories for them."""

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path

import psycopg

import memstore
from memstore.client.worker import WorkingStore
from memstore.derive import worker as worker_module
from tests.command_line import environment, variables

HASHING = {"embedder": "hashing:256"}
# Less, and on a busy machine living ones are dead.
worker_module.SWEEP_SECONDS, worker_module.STALLED_SECONDS = 1, 4
QUICK = "import tests.working; from memstore.__main__ import main; main()"
START = datetime(2024, 3, 1, 9, 0, tzinfo=UTC)


LIVES = "I live in {place} Street {n}, and my sister Clara works as a nurse there."


def said(conversation: str, messages: int, *, start: int = 0, told: str = LIVES) -> list[dict[str, object]]:
    """A history in sessions of ten messages, whose facts are this conversation's own."""
    return [
        {
            "role": "user" if n % 2 == 0 else "assistant",
            "content": told.format(place=conversation.title(), n=n)
            if n % 4 == 0
            else f"Noted, {conversation}, point {n}. Shall we go on with the plan for the week?",
            "occurred_at": START + timedelta(days=n // 10, minutes=n % 10),
            "external_id": f"{conversation}:{n}",
        }
        for n in range(start, start + messages)
    ]


def fill(url: str, users: int, conversations: int, messages: int) -> list[str]:
    """Store a history of so many users, conversations of each, and messages of each; give the users."""
    names = [f"user{number}" for number in range(users)]
    with memstore.open(url, settings=HASHING) as store:
        for name in names:
            for number in range(conversations):
                place = f"{name}talk{number}"
                store.user(name).conversation(place).add_many(said(place, messages))
    return names


@asynccontextmanager
async def working(store: WorkingStore) -> AsyncIterator[None]:
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


@contextmanager
def worker(
    url: str, folder: Path, *, concurrency: int = 2, machine: str = "", **settings: str
) -> Iterator[subprocess.Popen[bytes]]:
    """A worker, whose log is a file of the folder; it is killed in the end where it still runs.

    On a `machine` it has temporary and home folders of its own, and where the system lets it a network of its own.
    """
    command = [sys.executable, "-c", QUICK, "worker", "-c", str(concurrency), "-d", url]
    env = environment(**variables(settings)) | {"OPENBLAS_NUM_THREADS": "1"}
    if machine:
        env |= _own_folders(folder / machine)
        command = [*_without_network(), *command]
    with (folder / "worker.log").open("ab") as log:
        process = subprocess.Popen(command, env=env, stdout=log, stderr=log)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def _own_folders(machine: Path) -> dict[str, str]:
    (machine / "tmp").mkdir(parents=True, exist_ok=True)
    found = {name: str(machine) for name in ("HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME")}
    return found | {"TMPDIR": str(machine / "tmp")}


@cache
def _without_network() -> tuple[str, ...]:
    """Give what runs a command in a network namespace of its own, from which a socket in a folder is still reached."""
    command = ("unshare", "-n") if os.geteuid() == 0 else ("unshare", "-rn")
    try:
        return command if subprocess.run([*command, "true"], capture_output=True).returncode == 0 else ()
    except FileNotFoundError:
        return ()


def pending(url: str) -> int:
    """Give how many messages wait for derivers, each one's counted."""
    return number(url, "select coalesce(sum(last_seq - done_seq), 0) from derivations")


def number(url: str, query: str) -> int:
    with psycopg.connect(url) as connection:
        row = connection.execute(query).fetchone()
    assert row is not None
    return int(row[0])


def wait_until(condition: Callable[[], object], seconds: float = 60) -> None:
    last = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < last
        time.sleep(0.1)


def wait_until_derived(url: str, seconds: float = 90) -> None:
    wait_until(lambda: not pending(url), seconds)


def wait_until_idle(url: str, seconds: float = 90) -> None:
    """Wait until no job is left either: one of a conversation that another job has derived meanwhile has its turn."""
    wait_until_derived(url, seconds)
    left = "select count(*) from procrastinate_jobs where status in ('todo', 'doing')"
    wait_until(lambda: not number(url, left), 30)
