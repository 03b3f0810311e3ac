#!/usr/bin/env python3
"""The REST server compared with the library, on the same store in the same run.

    benchmarks/rest.py [--embedders A B] [--messages 1000] [--rounds 100] [--json FILE]

The same contexts are asked of both in turn; goal: a median of at most 1.3 times.

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
from report import Cell, Table, reported
from speed import QUESTIONS, START, texts

import memstore

BUDGET = 2000
CONTEXT = "/v1/users/someone/conversations/long/context"
WARM_UP, GOAL = 20, 1.3


@contextmanager
def served(database: str, embedder: str, log: Path) -> Iterator[tuple[str, int]]:
    """Serve a store as a process of its own; give where it answers, and its process."""
    more = {"MEMSTORE_EMBEDDER": embedder, "MEMSTORE_CONFIG": ""}
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


def rows(embedder: str, args: argparse.Namespace, folder: Path) -> list[list[Cell]]:
    """Ask both for the same contexts, in turn; give a row for each."""
    database = f"embedded:{folder / 'store'}"
    settings = {"embedder": embedder}
    with memstore.open(database, settings=settings) as store:
        talk = store.user("someone").conversation("long")
        said = [{"role": "user", "content": text, "occurred_at": START} for text in texts(args.messages, 7)]
        talk.add_many(said)
        store.derive()
        with served(database, embedder, folder / "server.log") as (address, _):
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
    taken = {"library": library[WARM_UP:], "REST": rest[WARM_UP:]}
    return [
        [
            f"{name}, {embedder}",
            round(1000 * median(seconds), 1),
            round(1000 * quantiles(seconds, n=100)[98], 1),
            round(median(seconds) / median(taken["library"]), 2),
            GOAL if name == "REST" else None,
        ]
        for name, seconds in taken.items()
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--embedders", nargs="+", default=["onnx:all-MiniLM-L6-v2", "hashing:256"])
    parser.add_argument("--messages", type=int, default=1000, help="of the user whose contexts are asked for")
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--json", type=Path, help="write the figures")
    args = parser.parse_args()
    found = []
    for embedder in args.embedders:
        with tempfile.TemporaryDirectory(prefix="memstore-rest-") as folder:
            found += rows(embedder, args, Path(folder))
    title = f"A context of {BUDGET:,} tokens over {args.messages:,} messages, in ms"
    reported([Table("rest", title, ("", "p50", "p99", "ratio of the medians", "goal"), found)], args.json)


if __name__ == "__main__":
    main()
