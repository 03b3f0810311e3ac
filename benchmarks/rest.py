#!/usr/bin/env python3
"""The REST server beside the library, on the same store in the same run.

    benchmarks/rest.py context                  p50 of `context` by both, in turn; goal: at most 1.3 times
    benchmarks/rest.py clients --seconds 120    100 clients at once: failures, p50, p99, and the server's memory

Both sides have an encoder of their own. Clients of the second part are users of their own, and each goes on as an
assistant does: a message in, a context out. The server's memory is read all the while.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from statistics import median, quantiles
from typing import Any

import httpx
from speed import QUESTIONS, START, texts

import memstore

BUDGET = 2000
CONTEXT = "/v1/users/someone/conversations/long/context"
WARM_UP = 20


@contextmanager
def served(database: str, embedder: str, log: Path) -> Iterator[tuple[str, int]]:
    """Serve a store as a process of its own; give where it answers, and its process."""
    more = {"MEMSTORE_EMBEDDER": embedder, "MEMSTORE_CONFIG": "", "MEMSTORE_SERVER_REQUESTS_PER_SECOND": "0"}
    command = [sys.executable, "-m", "memstore", "serve", "--port", "0", "--json", "-d", database]
    with log.open("w") as errors:
        process = subprocess.Popen(command, env=os.environ | more, stdout=subprocess.PIPE, stderr=errors, text=True)
    try:
        assert process.stdout is not None
        said = "".join(iter(process.stdout.readline, "}\n")) + "}"
        address = json.loads(said)["url"]
        while httpx.get(f"{address}/readyz").status_code != httpx.codes.OK:
            time.sleep(0.2)
        yield address, process.pid
    finally:
        process.terminate()
        process.wait()


def posted(connection: HTTPConnection, where: str, body: dict[str, Any]) -> bytes:
    """Ask on a connection that stays, with no more than the standard library takes."""
    connection.request("POST", where, json.dumps(body), {"Content-Type": "application/json"})
    answer = connection.getresponse()
    told = answer.read()
    assert answer.status == httpx.codes.OK, told
    return told


def context(args: argparse.Namespace, folder: Path) -> None:
    """Ask both for the same contexts, in turn."""
    database = f"embedded:{folder / 'store'}"
    settings = {"embedder": args.embedder, "resident_minutes": 0}
    with memstore.open(database, settings=settings) as store:
        talk = store.user("someone").conversation("long")
        said = [{"role": "user", "content": text, "occurred_at": START} for text in texts(args.messages, 7)]
        talk.add_many(said)
        store.derive()
        with served(database, args.embedder, folder / "server.log") as (address, _):
            connection = HTTPConnection(address.removeprefix("http://"))
            library, rest = [], []
            gc.collect()
            gc.freeze()
            for n in range(args.rounds + WARM_UP):
                question = f"{QUESTIONS[n % len(QUESTIONS)]} ({n})"
                began = time.perf_counter()
                talk.context(question, budget=BUDGET)
                between = time.perf_counter()
                posted(connection, CONTEXT, {"query": question, "budget": BUDGET})
                library.append(between - began)
                rest.append(time.perf_counter() - between)
    print(f"context of {args.messages:,} messages, {args.embedder}, {args.rounds} rounds, ms: p50 and p99")
    for name, seconds in (("library", library[WARM_UP:]), ("REST", rest[WARM_UP:])):
        print(f"  {name:<8} {1000 * median(seconds):8.2f} {1000 * quantiles(seconds, n=100)[98]:8.2f}")
    ratio = median(rest[WARM_UP:]) / median(library[WARM_UP:])
    print(f"  ratio of the medians {ratio:.2f}   goal <= 1.3   {'reached' if ratio <= 1.3 else 'MISSED'}")


def memory(process: int) -> float:
    """Give the resident memory of a process, in MB."""
    status = Path(f"/proc/{process}/status").read_text(encoding="ascii")
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS")) / 1024


async def client(address: str, number: int, until: float, seen: Counter[str], seconds: list[float]) -> None:
    """Talk as one user until the time is up; whatever is no success is counted by its name."""
    talk = f"/v1/users/client-{number}/conversations/talk"
    said = texts(50, number)
    async with httpx.AsyncClient(base_url=address, timeout=60) as asking:
        turn = 0
        while time.monotonic() < until:
            text = said[turn % len(said)]
            for where, body in (
                (f"{talk}/messages", {"messages": [{"role": "user", "content": text}]}),
                (f"{talk}/context", {"budget": 600}),
            ):
                began = time.perf_counter()
                try:
                    answer = await asking.post(where, json=body)
                    seen["ok" if answer.is_success else f"status {answer.status_code}"] += 1
                except httpx.HTTPError as error:
                    seen[type(error).__name__] += 1
                seconds.append(time.perf_counter() - began)
            turn += 1


async def crowd(address: str, process: int, args: argparse.Namespace) -> None:
    """Let all clients talk at once, and watch the server's memory."""
    seen: Counter[str] = Counter()
    seconds: list[float] = []
    used: list[float] = []
    until = time.monotonic() + args.seconds
    talking = [asyncio.ensure_future(client(address, n, until, seen, seconds)) for n in range(args.clients)]
    while time.monotonic() < until:
        await asyncio.sleep(1)
        used.append(memory(process))
    await asyncio.gather(*talking)
    failed = seen.total() - seen["ok"]
    print(f"{args.clients} clients for {args.seconds} s, {args.embedder}: {seen.total():,} requests, {failed} failed")
    print(f"  {dict(seen)}")
    print(f"  {seen.total() / args.seconds:.0f} a second; ms p50 and p99: ", end="")
    print(f"{1000 * median(seconds):.0f} {1000 * quantiles(seconds, n=100)[98]:.0f}")
    quarters = (used[round((len(used) - 1) * part / 4)] for part in range(5))
    print(f"  the server's memory at first and after each quarter, MB: {' '.join(f'{one:.0f}' for one in quarters)}")


def clients(args: argparse.Namespace, folder: Path) -> None:
    """Serve an empty store to a crowd."""
    with served(f"embedded:{folder / 'store'}", args.embedder, folder / "server.log") as (address, process):
        asyncio.run(crowd(address, process, args))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=("context", "clients"))
    parser.add_argument("--embedder", default="sentence-transformers:all-MiniLM-L6-v2")
    parser.add_argument("--messages", type=int, default=10_000, help="of the user whose contexts are asked for")
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--clients", type=int, default=100)
    parser.add_argument("--seconds", type=int, default=120)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="memstore-rest-") as folder:
        {"context": context, "clients": clients}[args.part](args, Path(folder))


if __name__ == "__main__":
    main()
