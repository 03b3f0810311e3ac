#!/usr/bin/env python3
"""The REST server beside the library, on the same store in the same run.

    benchmarks/rest.py context      p50 of `context` by both, in turn; goal: at most 1.3 times

Both sides have an encoder of their own. benchmarks/steady.py has a hundred clients ask at once.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import subprocess
import sys
import tempfile
import time
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
        while httpx.get(f"{address}/readyz", timeout=120).status_code != httpx.codes.OK:
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=("context",))
    parser.add_argument("--embedder", default="sentence-transformers:all-MiniLM-L6-v2")
    parser.add_argument("--messages", type=int, default=10_000, help="of the user whose contexts are asked for")
    parser.add_argument("--rounds", type=int, default=200)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="memstore-rest-") as folder:
        context(args, Path(folder))


if __name__ == "__main__":
    main()
