#!/usr/bin/env python3
"""One, two and four workers over the same history: how much faster, and whether anything was derived twice.

    benchmarks/workers.py --data FOLDER [--set locomo-dev] [--most N] [--workers 1 2 4] [-c 4]
                          [--embedders hashing:256 onnx:all-MiniLM-L6-v2] [--json FILE]

Each worker is a process with temporary and home folders of its own, and where the system allows it in a network
namespace of its own: they share the database alone. All have loaded their encoder before the clock starts, and take
the same copy of the store; "embedded twice" are texts that all together were asked for more often than one worker is.
Beside the seconds stand those of the processors, workers and server together: where others use the machine, more
workers get more of it, and only these tell what the work costs.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any

import psycopg
from backfill import DEFAULT, Spent, server_seconds
from data import Missing, file, objects
from databases import made
from report import Cell, Table, reported

import memstore
from memstore._sync.derive.scheduler import enqueue_pending
from memstore.client.worker import WorkingStore, stopped_by_signals
from memstore.providers import Embedder, Vectors, load_embedder

NO_NETWORK = ("unshare", "-n") if os.geteuid() == 0 else ("unshare", "-rn")


class Hearing:
    """An embedder that writes down which texts it is asked for."""

    def __init__(self, embedder: Embedder, heard: Path) -> None:
        self._embedder, self._heard, self._lock = embedder, heard.open("a"), threading.Lock()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._embedder, name)

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        with self._lock:
            self._heard.writelines(sha256(text.encode()).hexdigest() + "\n" for text in texts)
            self._heard.flush()
        return self._embedder.embed_documents(texts)


async def work(url: str, heard: Path, embedder: str, concurrency: int) -> None:
    """Be a worker, with the encoder loaded before the first job."""
    loaded = load_embedder(embedder)
    assert loaded is not None
    loaded.embed_documents(["warm"] * 64)
    settings = {"embedder": embedder, "worker_sweep_seconds": 2}
    async with await WorkingStore.open(url, settings=settings) as store:
        store._opened.__dict__["embedder"] = Hearing(loaded, heard)
        worker = await store.worker(concurrency)
        with stopped_by_signals(worker):
            await worker.run()


@contextmanager
def machine(folder: Path, url: str, embedder: str, concurrency: int) -> Iterator[int]:
    """A worker as on a machine of its own, which says in a file `heard` what it was asked for; give its process."""
    (folder / "tmp").mkdir(parents=True)
    own = {"TMPDIR": str(folder / "tmp")} | dict.fromkeys(("HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME"), str(folder))
    command = [sys.executable, __file__, "--work", url, "--heard", str(folder / "heard"), "-c", str(concurrency)]
    process = subprocess.Popen([*_apart(), *command, "--embedders", embedder], env=os.environ | own)
    try:
        yield process.pid
    finally:
        process.terminate()
        process.wait()


def _apart() -> tuple[str, ...]:
    try:
        return NO_NETWORK if subprocess.run([*NO_NETWORK, "true"], capture_output=True).returncode == 0 else ()
    except FileNotFoundError:
        return ()


def number(url: str, query: str) -> int:
    with psycopg.connect(url) as connection:
        row = connection.execute(query).fetchone()
    assert row is not None
    return int(row[0])


def used(process: int) -> float:
    """Give the seconds that the processors have worked for a process."""
    own = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, own[11:13])) / os.sysconf("SC_CLK_TCK")


def taken(
    url: str, server: Path, folder: Path, workers: int, embedder: str, concurrency: int
) -> tuple[Spent, Counter[str]]:
    """Give what so many workers take for all that is pending, and how often each text was embedded."""
    with memstore.open(url, settings={"embedder": embedder}) as store, ExitStack() as stack:
        store.backfills.begin()
        store.backfills.pause()
        processes = [
            stack.enter_context(machine(folder / str(place), url, embedder, concurrency)) for place in range(workers)
        ]
        while number(url, "select count(*) from procrastinate_workers") < workers:
            time.sleep(0.1)
        store.backfills.resume()
        began, before = time.perf_counter(), sum(map(used, processes)) + server_seconds(server)
        while number(url, "select coalesce(sum(last_seq - done_seq), 0) from derivations"):
            enqueue_pending(store._database)
            time.sleep(0.1)
        cpu = sum(map(used, processes)) + server_seconds(server) - before
        spent = Spent(time.perf_counter() - began, cpu)
        assert store.backfills.verify() == []
    return spent, Counter(line for path in folder.glob("*/heard") for line in path.read_text().splitlines())


def rows(base: str, temporary: Path, options: argparse.Namespace, embedder: str) -> Iterator[list[Cell]]:
    alone: tuple[Spent, Counter[str]] | None = None
    for workers in options.workers:
        name = f"{embedder.partition(':')[0].replace('-', '_')}_{workers}"
        url = made(base, name, of="given")
        messages = number(url, "select count(*) from messages")
        spent, heard = taken(url, temporary / "store", temporary / name, workers, embedder, options.concurrency)
        alone = alone or (spent, heard)
        rate, faster = messages / spent.wall, alone[0].wall / spent.wall
        row: list[Cell] = [embedder.partition(":")[0], workers, round(spent.wall, 1), round(rate, 1), round(faster, 2)]
        missing, twice = (alone[1] - heard).total(), (heard - alone[1]).total()
        yield [*row, round(spent.cpu, 1), heard.total(), twice, missing]


def main() -> int:
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--data", type=Path, help="the folder with the data sets")
    parser.add_argument("--set", default="locomo-dev", help="which of them")
    parser.add_argument("--most", type=int, default=10**9, help="messages at most, of each user as many")
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--embedders", nargs="+", default=["hashing:256", DEFAULT])
    parser.add_argument("-c", "--concurrency", type=int, default=4)
    parser.add_argument("--json", type=Path, help="write the figures")
    parser.add_argument("--work", help=argparse.SUPPRESS)
    parser.add_argument("--heard", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        asyncio.run(work(options.work, options.heard, options.embedders[0], options.concurrency))
        return 0
    try:
        path = file(options.data, options.set)
    except Missing as reason:
        print(f"skipped: {reason}")
        return 0
    found: list[list[Cell]] = []
    with tempfile.TemporaryDirectory(prefix="memstore-bench-") as temporary:
        history, count = Path(temporary) / "history.jsonl", Counter[str]()
        with history.open("w", encoding="utf-8") as out:
            for one in objects(path):
                count[one["user"]] += 1
                if count[one["user"]] <= options.most:
                    out.write(json.dumps(one, ensure_ascii=False) + "\n")
        with memstore.open(f"embedded:{temporary}/store", settings={"embedder": "none"}) as store:
            with memstore.open(made(store.url, "given"), settings={"embedder": "none"}) as given:
                given.import_file(history)
            for embedder in options.embedders:
                for row in rows(store.url, Path(temporary), options, embedder):
                    print(*row, flush=True)
                    found.append(row)
    columns = (
        "embedder",
        "workers",
        "seconds",
        "messages/s",
        "speed-up",
        "of CPU",
        "texts",
        "embedded twice",
        "missing",
    )
    table = Table("workers", "Workers over one history, each with folders and a network of its own", columns, found)
    reported([table], options.json)
    return 0


if __name__ == "__main__":
    sys.exit(main())
