#!/usr/bin/env python3
"""History in and derived, side by side with what memstore stands on, in one run: read the ratios, not the figures.

    benchmarks/backfill.py --data FOLDER            both parts, on LoCoMo
    benchmarks/backfill.py import --data FOLDER     one of them

import     messages a second of `import`, against COPY of the rows that it made; then with full text (`derive` with no
           embedder: chunks, terms and lengths), against COPY of those rows too; goal: at least 0.3
backfill   messages a second of a worker with `-c`, all derivers, against the bare encoder on the texts that it was
           asked for, in one call; goal: at least 0.85

COPY has everything done for it: rows checked, counted and numbered, terms cut and hashed. Data that a
process loads once is loaded before. Seconds are also shown as those of the processors, of this process and the server
together: on a machine that others use they say more. With --rounds the median one of several is shown, each into
databases of its own.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import psycopg
from data import file, objects

import memstore
from memstore._sync.derive.pipeline import DeriveScope, derive
from memstore.client.worker import WorkingStore
from memstore.providers import Embedder, Vectors, load_embedder
from memstore.settings import load

MESSAGES, FULL_TEXT = ("users", "conversations", "messages", "derivations"), ("item_text",)
DEFAULT = "onnx:all-MiniLM-L6-v2"
FASTEST = {"event_retention_days": 0}
UNITS = DeriveScope(derivers=("chunks",))


class Overheard:
    """An embedder that keeps the texts that it is asked for."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder, self.texts, self._lock = embedder, list[str](), threading.Lock()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._embedder, name)

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        with self._lock:
            self.texts += texts
        return self._embedder.embed_documents(texts)


class Spent(NamedTuple):
    """Seconds, and those of the processors."""

    wall: float
    cpu: float


@contextmanager
def made(url: str, name: str, *, of: str = "template1") -> str:
    """Return the URL of a database of this name on the server of `url`; create it if needed, as a copy of another."""
    with psycopg.connect(url, autocommit=True) as connection:
        if not connection.execute("select 1 from pg_database where datname = %s", [name]).fetchone():
            connection.execute(f"create database {name} template {of}")
    parts = psycopg.conninfo.conninfo_to_dict(url) | {"dbname": name}
    found = f"postgresql://{parts['user']}@/{name}?host={parts['host']}&port={parts.get('port', 5432)}"
    memstore.open(found, settings={"embedder": "none"}).close()
    return found


def spending(folder: Path) -> Iterator[list[Spent]]:
    """Return what is spent inside, by this process and by the server of a folder."""
    told: list[Spent] = []
    start, used = time.perf_counter(), time.process_time() + server_seconds(folder)
    yield told
    told.append(Spent(time.perf_counter() - start, time.process_time() + server_seconds(folder) - used))


def server_seconds(folder: Path) -> float:
    """Return the seconds that a server's processes have used, those that have ended included."""
    postmaster = (folder / "data" / "postmaster.pid").read_text().split()[0]
    used = 0
    for place in Path("/proc").glob("[0-9]*/stat"):
        try:
            own = place.read_text().rpartition(")")[2].split()
        except OSError:  # it has ended
            continue
        if place.parent.name == postmaster:
            used += sum(map(int, own[11:15]))
        elif own[1] == postmaster:
            used += sum(map(int, own[11:13]))
    return used / os.sysconf("SC_CLK_TCK")


def line(what: str, ours: Spent, beside: Spent, of: int, goal: float) -> None:
    """Print a row: what both do a second, and how they compare, in seconds and in those of the processors."""
    ratio, cpu = beside.wall / ours.wall, beside.cpu / ours.cpu
    judged = "reached" if ratio >= goal else "MISSED"
    rates = f"{of / ours.wall:>8.0f} {of / beside.wall:>8.0f}"
    print(f"{what:<44} {rates} {ratio:>7.2f} {cpu:>7.2f}   ≥ {goal:<5} {judged}", flush=True)


def imported(url: str, path: Path, folder: Path) -> tuple[Spent, Spent, int]:
    """Return what an import takes, what the full text after it takes too, and how many messages that are."""
    with memstore.open(url, settings=FASTEST | {"embedder": "none"}) as store:
        assert store.counter.count("warm")
        line = folder / "line.jsonl"
        line.write_text('{"user": "warm", "conversation": "warm", "role": "user", "content": 0}\n')
        assert store.import_file(line).skipped == 1
        with store._database.admin_transaction(), store._database.admin_transaction():
            pass  # an import has two connections
        assert not derive(store._database, store._runtime.load_dependencies(), UNITS).chunks
        with spending(folder) as both:
            with spending(folder) as first:
                done = store.import_file(path)
            derive(store._database, store._runtime.load_dependencies(), UNITS)
        return first[0], both[0], done.new


def copied(source: str, target: str, tables: Sequence[str], folder: Path) -> Spent:
    """Return what COPY takes to bring the rows of these tables into an empty store."""
    rows = {}
    with psycopg.connect(source) as connection, connection.cursor() as cursor:
        for table in tables:
            with cursor.copy(f"copy {table} to stdout (format binary)") as out:
                rows[table] = b"".join(out)
    with psycopg.connect(target) as connection, connection.cursor() as cursor:
        with spending(folder) as told:
            for table in tables:
                with cursor.copy(f"copy {table} from stdin (format binary)") as into:
                    into.write(rows[table])
            connection.commit()
        return told[0]


def import_part(folder: Path, path: Path, rounds: int) -> None:
    """Compare with COPY, each round in new databases; print the round in the middle."""
    rows: list[tuple[Beside, Beside]] = []
    with memstore.open(f"embedded:{folder}", settings={"embedder": "none"}) as store:
        for number in range(rounds):
            names = (f"{name}_{number}" for name in ("ours", "messages_only", "with_text"))
            ours, only, both = (made(store.url, name) for name in names)
            alone, with_text, messages = imported(ours, path, folder)
            bare = copied(ours, only, MESSAGES, folder)
            bare_text = copied(ours, both, (*MESSAGES, *FULL_TEXT), folder)
            rows.append((Beside(alone, bare, messages), Beside(with_text, bare_text, messages)))
    for what, found in zip(
        ("against COPY of messages", "and full text, against COPY of both"), zip(*rows, strict=True), strict=True
    ):
        middle = sorted(found, key=lambda one: one.copied.wall / one.ours.wall)[len(found) // 2]
        line(f"import {what}", *middle, 0.3)


class Beside(NamedTuple):
    """What memstore and COPY spend on so many messages."""

    ours: Spent
    copied: Spent
    messages: int


def backfill_part(folder: Path, path: Path, concurrency: int, embedder: str) -> None:
    encoder = load_embedder(embedder)
    assert encoder is not None
    encoder.embed_documents(["warm"] * 64)
    overheard = Overheard(encoder)
    url = f"embedded:{folder}"
    with memstore.open(url, settings={"embedder": "none"}) as store:
        messages = store.import_file(path).new

    async def worked() -> Spent:
        async with await WorkingStore.open(url, settings=load({"embedder": embedder})) as store:
            store._runtime.__dict__["embedder"] = overheard
            overheard.texts.clear()
            backfill = await store.backfills.begin()
            with spending(folder) as told:
                await store.work_until_done(backfill, lambda _: None, concurrency=concurrency)
            return told[0]

    spent = asyncio.run(worked())
    print(f"{len(overheard.texts)} texts of {messages} messages; a worker with -c {concurrency}")
    with alone() as own:
        encoder.embed_documents(overheard.texts)
    line("backfill, against the embedder alone", spent, own[0], messages, 0.85)


@contextmanager
def alone() -> Iterator[list[Spent]]:
    """Return what this process spends inside."""
    told: list[Spent] = []
    start, used = time.perf_counter(), time.process_time()
    yield told
    told.append(Spent(time.perf_counter() - start, time.process_time() - used))


def main() -> int:
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("parts", nargs="*", default=["import", "backfill"], choices=["import", "backfill"])
    parser.add_argument("--data", type=Path, required=True, help="the folder with the data sets")
    parser.add_argument("--set", default="locomo-dev", help="which of them")
    parser.add_argument("-c", "--concurrency", type=int, default=8)
    parser.add_argument("--embedder", default=DEFAULT)
    parser.add_argument("--rounds", type=int, default=3, help="of the first part")
    parser.add_argument("--most", type=int, help="messages at most")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="memstore-bench-") as temporary:
        folder = Path(temporary)
        path = folder / "history.jsonl"
        with path.open("w", encoding="utf-8") as out:
            for number, one in enumerate(objects(file(options.data, options.set))):
                if options.most is None or number < options.most:
                    out.write(json.dumps(one, ensure_ascii=False) + "\n")
        print(f"{'messages a second':<44} {'memstore':>8} {'beside':>8} {'ratio':>7} {'of CPU':>7}   goal")
        if "import" in options.parts:
            import_part(folder / "import", path, options.rounds)
        if "backfill" in options.parts:
            backfill_part(folder / "backfill", path, options.concurrency, options.embedder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
