#!/usr/bin/env python3
"""The REST server under a hundred clients: whether any request fails, and whether its memory stays where it is.

    benchmarks/steady.py --seconds 120                  with MiniLM
    benchmarks/steady.py --embedders hashing:256 onnx:all-MiniLM-L6-v2 --json FILE

A client adds a message, recalls, asks for a context and lists, each time of a user drawn anew; one in fifty rounds
derives, the first of them soon. Every second the memory of all processes of the server is read: its own, and those of
its Postgres. It warms up first, until most users were met; figures of growth are of the time after that. With
`--arrays 4` users' arrays, which grow with what is stored, have reached their bound by then. It ends with 1 where a
request failed, or where the last quarter has more than 1.05 times the memory of the second one.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean, linear_regression, median, quantiles

import httpx
import psutil
from report import Table, written
from rest import served
from speed import QUESTIONS, texts

MEGABYTE = 2**20
DERIVES = 50  # rounds of a client, of which one derives
ROWS = 12  # of the curve
FLAT = 1.05


@dataclass(frozen=True)
class Sample:
    """A look at the server: seconds and requests so far; megabytes of its own, of its Postgres, and of both.

    Memory that processes of Postgres share is mostly its cache of the tables (shared_buffers), which fills.
    """

    seconds: float
    requests: int
    own: float
    database: float
    shared: float

    @property
    def all(self) -> float:
        """Of all processes; a page that several share is counted once."""
        return self.own + self.database + self.shared


@dataclass
class Seen:
    """What came of the requests."""

    answers: Counter[str] = field(default_factory=Counter)
    seconds: list[float] = field(default_factory=list)
    samples: list[Sample] = field(default_factory=list)
    warm_up: float = 0.0  # seconds

    @property
    def failed(self) -> int:
        """How many were no success."""
        return self.answers.total() - self.answers["ok"]

    def grown(self, part: str) -> tuple[float, float]:
        """Return MB per 1,000 requests after warming up, and the last quarter of that as a multiple of the second."""
        warm = [one for one in self.samples if one.seconds > self.warm_up]
        quarter = len(warm) // 4
        used = [getattr(one, part) for one in warm]
        slope, _ = linear_regression([one.requests / 1000 for one in warm], used)
        return slope, fmean(used[-quarter:]) / fmean(used[quarter : 2 * quarter])


def memory(processes: Iterable[psutil.Process]) -> tuple[float, float]:
    """Return the private memory of processes, in MB, and their parts of shared memory; none for one that is gone."""
    private = shared = 0.0
    for one in processes:
        with suppress(psutil.Error):
            found = one.memory_full_info()
            private += found.uss / MEGABYTE
            shared += (found.pss - found.uss) / MEGABYTE
    return private, shared


def of_database(folder: Path) -> list[psutil.Process]:
    """Return the processes of the Postgres whose data is under a folder."""
    (file,) = folder.rglob("postmaster.pid")
    postmaster = psutil.Process(int(file.read_text(encoding="utf-8").split()[0]))
    return [postmaster, *postmaster.children(recursive=True)]


async def ask(asking: httpx.AsyncClient, seen: Seen, method: str, where: str, body: object = None) -> None:
    """Send one request; whatever is no success is counted by its name."""
    began = time.perf_counter()
    try:
        answer = await asking.request(method, where, json=body)
        seen.answers["ok" if answer.is_success else f"{method} {answer.status_code}"] += 1
    except httpx.HTTPError as error:
        seen.answers[type(error).__name__] += 1
    seen.seconds.append(time.perf_counter() - began)


async def client(address: str, number: int, args: argparse.Namespace, until: float, seen: Seen) -> None:
    """Ask for one user after the other until the time is up."""
    draw, said = random.Random(number), texts(50, number)
    derives = number % 10  # rounds until this one derives: what the rules stand on is to be there when memory is read
    async with httpx.AsyncClient(base_url=address, timeout=60) as asking:
        while time.monotonic() < until:
            user = f"/v1/users/user-{draw.randrange(args.users)}"
            talk = f"{user}/conversations/talk-{draw.randrange(3)}"
            question = draw.choice(QUESTIONS)
            message = {"role": "user", "content": draw.choice(said)}
            await ask(asking, seen, "POST", f"{talk}/messages", {"messages": [message]})
            await ask(asking, seen, "POST", f"{user}/recall", {"query": question})
            await ask(asking, seen, "POST", f"{talk}/context", {"query": question, "budget": 600})
            listed = draw.choice((f"{talk}/messages", f"{user}/facts", f"{user}/conversations", f"{talk}/receipts"))
            await ask(asking, seen, "GET", listed)
            derives -= 1
            if derives < 0:
                derives = DERIVES
                await ask(asking, seen, "POST", f"{user}/derive")


async def crowd(address: str, process: int, folder: Path, args: argparse.Namespace) -> Seen:
    """Let all clients ask at once; look at the memory every second."""
    seen, began = Seen(warm_up=args.warm_up), time.monotonic()
    until = began + args.warm_up + args.seconds
    asking = [asyncio.ensure_future(client(address, number, args, until, seen)) for number in range(args.clients)]
    server = psutil.Process(process)
    while time.monotonic() < until:
        await asyncio.sleep(1)
        database = of_database(folder)
        own = {server, *server.children(recursive=True)} - set(database)  # which it has started
        so_far = time.monotonic() - began, seen.answers.total()
        seen.samples.append(Sample(*so_far, sum(memory(own)), *memory(database)))
    await asyncio.gather(*asking)
    return seen


def curve(name: str, embedder: str, seen: Seen) -> Table:
    """Return the memory over the time, as means of equal parts of it."""
    size = max(1, len(seen.samples) // ROWS)
    parts = [seen.samples[n : n + size] for n in range(0, len(seen.samples) - size + 1, size)]
    rows = [
        [
            f"{part[-1].seconds:.0f}",
            part[-1].requests,
            *(round(fmean(getattr(one, kind) for one in part), 1) for kind in ("own", "database", "shared", "all")),
        ]
        for part in parts
    ]
    columns = ("seconds", "requests", "server, MB", "its Postgres, MB", "what that shares, MB", "all, MB")
    return Table(f"{name}-curve", f"Memory (PSS) under 100 clients, {embedder}", columns, [list(row) for row in rows])


def summary(found: dict[str, Seen]) -> Table:
    """Return what failed, how long answers took, and how memory grew after the first quarter of the time."""
    columns = (
        "embedder",
        "requests",
        "failed",
        "p50, ms",
        "p99, ms",
        "server, MB per 1,000 requests",
        "Postgres, MB per 1,000 requests",
        "server, last quarter / second",
        "all, last quarter / second",
    )
    rows = [
        [
            embedder,
            seen.answers.total(),
            seen.failed,
            round(1000 * median(seen.seconds)),
            round(1000 * quantiles(seen.seconds, n=100)[98]),
            *(round(seen.grown(part)[0], 3) for part in ("own", "database")),
            *(round(seen.grown(part)[1], 3) for part in ("own", "all")),
        ]
        for embedder, seen in found.items()
    ]
    return Table("summary", "A hundred clients at once", columns, [list(row) for row in rows])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--embedders", nargs="+", default=["onnx:all-MiniLM-L6-v2"])
    parser.add_argument("--clients", type=int, default=100)
    parser.add_argument("--users", type=int, default=1000)
    parser.add_argument("--seconds", type=int, default=120)
    parser.add_argument("--warm-up", type=int, default=120, help="seconds before the others")
    parser.add_argument("--arrays", type=int, default=512, help="index_cache_mb of the server")
    parser.add_argument("--json", type=Path, help="write the figures")
    args = parser.parse_args()
    found = {}
    os.environ["MEMSTORE_INDEX_CACHE_MB"] = str(args.arrays)
    for embedder in args.embedders:
        with tempfile.TemporaryDirectory(prefix="memstore-steady-") as name:
            folder = Path(name)
            with served(f"embedded:{folder / 'store'}", embedder, folder / "server.log") as (address, process):
                seen = found[embedder] = asyncio.run(crowd(address, process, folder, args))
        print(curve(embedder.partition(":")[0], embedder, seen).text(), f"\n{dict(seen.answers)}\n", flush=True)
    print(summary(found).text())
    if args.json:
        tables = [summary(found), *(curve(name.partition(":")[0], name, seen) for name, seen in found.items())]
        told = {"users": args.users, "warm-up": args.warm_up, "seconds": args.seconds, "arrays": args.arrays}
        options = " ".join(f"--{name} {value}" for name, value in told.items())
        written(args.json, f"benchmarks/steady.py --embedders {' '.join(found)} {options}", tables)
    return int(any(one.failed or one.grown("all")[1] > FLAT for one in found.values()))


if __name__ == "__main__":
    sys.exit(main())
