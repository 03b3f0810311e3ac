"""Workers as processes of their own, and histories for them."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psycopg

import memstore
from tests.command_line import environment, variables

HASHING = {"embedder": "hashing:256"}
QUICK = {"worker_sweep_seconds": 1, "worker_stalled_seconds": 4}  # less, and on a busy machine living ones are dead
START = datetime(2024, 3, 1, 9, 0, tzinfo=UTC)


def said(conversation: str, messages: int, *, start: int = 0) -> list[dict[str, object]]:
    """A history in sessions of ten messages, whose facts are this conversation's own."""
    return [
        {
            "role": "user" if n % 2 == 0 else "assistant",
            "content": f"I live in {conversation.title()} Street {n}, and my sister Clara works as a nurse there."
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


@contextmanager
def worker(url: str, folder: Path, *, concurrency: int = 2, **settings: str) -> Iterator[subprocess.Popen[bytes]]:
    """A worker, whose log is a file of the folder; it is killed in the end where it still runs."""
    command = [sys.executable, "-m", "memstore", "worker", "-c", str(concurrency), "-d", url]
    quick = {name: str(value) for name, value in QUICK.items()}
    env = environment(**variables(quick | settings)) | {"OPENBLAS_NUM_THREADS": "1"}
    with (folder / "worker.log").open("ab") as log:
        process = subprocess.Popen(command, env=env, stdout=log, stderr=log)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def pending(url: str) -> int:
    """Give how many messages wait for derivers, each one's counted."""
    with psycopg.connect(url) as connection:
        row = connection.execute("select coalesce(sum(last_seq - done_seq), 0) from derivations").fetchone()
    assert row is not None
    return int(row[0])


def wait_until_derived(url: str, seconds: float = 90) -> None:
    last = time.monotonic() + seconds
    while left := pending(url):
        assert time.monotonic() < last, f"{left} messages are still pending"
        time.sleep(0.1)
