#!/usr/bin/env python3
"""The REST server under a hundred clients: whether any request fails, and whether its memory stays where it is.

    benchmarks/steady.py --seconds 120                  with MiniLM
    benchmarks/steady.py --embedders hashing:256 sentence-transformers:all-MiniLM-L6-v2 --json FILE

A client adds a message, recalls, asks for a context and lists, each time of a user drawn anew; one in fifty rounds
derives, the first of them soon. Every second the memory of all processes of the server is read: its own, and those of
its Postgres. The first quarter of the time is warming up: what is told of growth is of the rest. It ends with 1 where a
request failed, or where the last quarter has more than 1.05 times the memory of the second one.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import sys
import tempfile
import time
from collections import Counter
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
    """A look at the server: seconds and requests so far; megabytes of its own, of its Postgres, and of both."""

    seconds: float
    requests: int
    own: float
    database: float

    @property
    def all(self) -> float:
        """Of all processes: PSS, in which a page that several share is counted once."""
        return self.own + self.database


@dataclass
class Seen:
    """What came of the requests."""

    answers: Counter[str] = field(default_factory=Counter)
    seconds: list[float] = field(default_factory=list)
    samples: list[Sample] = field(default_factory=list)

    @property
    def failed(self) -> int:
        """How many were no success."""
        return self.answers.total() - self.answers["ok"]

    def grown(self, part: str) -> tuple[float, float]:
        """Give MB per 1,000 requests after the first quarter, and the last quarter as a multiple of the second."""
        quarter = len(self.samples) // 4
        warm = self.samples[quarter:]
        used = [getattr(one, part) for one in warm]
        slope, _ = linear_regression([one.requests / 1000 for one in warm], used)
        return slope, fmean(used[-quarter:]) / fmean(used[:quarter])


def memory(process: psutil.Process) -> float:
    """Give the PSS of a process in MB; 0 for one that is gone."""
    try:
        return float(process.memory_full_info().pss) / MEGABYTE
    except psutil.Error:
        return 0.0


def of_database(folder: Path) -> list[psutil.Process]:
    """Give the processes of the Postgres whose data is under a folder."""
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
    seen, began = Seen(), time.monotonic()
    asking = [
        asyncio.ensure_future(client(address, number, args, began + args.seconds, seen))
        for number in range(args.clients)
    ]
    server = psutil.Process(process)
    while time.monotonic() < began + args.seconds:
        await asyncio.sleep(1)
        own = sum(map(memory, [server, *server.children(recursive=True)]))
        database = sum(map(memory, of_database(folder)))
        seen.samples.append(Sample(time.monotonic() - began, seen.answers.total(), own, database))
    await asyncio.gather(*asking)
    return seen


def curve(name: str, embedder: str, seen: Seen) -> Table:
    """Give the memory over the time, as means of equal parts of it."""
    size = max(1, len(seen.samples) // ROWS)
    parts = [seen.samples[n : n + size] for n in range(0, len(seen.samples) - size + 1, size)]
    rows = [
        [
            f"{part[-1].seconds:.0f}",
            part[-1].requests,
            *(round(fmean(getattr(one, kind) for one in part), 1) for kind in ("own", "database", "all")),
        ]
        for part in parts
    ]
    columns = ("seconds", "requests", "server, MB", "its Postgres, MB", "all, MB")
    return Table(f"{name}-curve", f"Memory (PSS) under 100 clients, {embedder}", columns, [list(row) for row in rows])


def summary(found: dict[str, Seen]) -> Table:
    """Give what failed, how long answers took, and how memory grew after the first quarter of the time."""
    columns = (
        "embedder",
        "requests",
        "failed",
        "p50, ms",
        "p99, ms",
        "server, MB per 1,000 requests",
        "all, MB per 1,000 requests",
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
            *(round(grown[at], 3) for at in (0, 1) for grown in (seen.grown("own"), seen.grown("all"))),
        ]
        for embedder, seen in found.items()
    ]
    return Table("summary", "A hundred clients at once", columns, [list(row) for row in rows])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--embedders", nargs="+", default=["sentence-transformers:all-MiniLM-L6-v2"])
    parser.add_argument("--clients", type=int, default=100)
    parser.add_argument("--users", type=int, default=1000)
    parser.add_argument("--seconds", type=int, default=120)
    parser.add_argument("--json", type=Path, help="write the figures")
    args = parser.parse_args()
    found = {}
    for embedder in args.embedders:
        with tempfile.TemporaryDirectory(prefix="memstore-steady-") as name:
            folder = Path(name)
            with served(f"embedded:{folder / 'store'}", embedder, folder / "server.log") as (address, process):
                seen = found[embedder] = asyncio.run(crowd(address, process, folder, args))
        print(curve(embedder.partition(":")[0], embedder, seen).text(), f"\n{dict(seen.answers)}\n", flush=True)
    print(summary(found).text())
    if args.json:
        tables = [summary(found), *(curve(name.partition(":")[0], name, seen) for name, seen in found.items())]
        written(args.json, f"benchmarks/steady.py --embedders {' '.join(found)} --seconds {args.seconds}", tables)
    return int(any(one.failed or one.grown("all")[1] > FLAT for one in found.values()))


if __name__ == "__main__":
    sys.exit(main())
