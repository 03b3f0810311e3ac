#!/usr/bin/env python3
"""Deriving a long conversation: is the work linear, and the memory bounded?

    benchmarks/linear.py [--sizes 2500,5000,10000,20000] [--embedder hashing:256] [--json FILE] [--plot FILE.svg]

Each size is one conversation in a fresh store, in a process of its own, derived at once: seconds of all derivers and of
the summaries alone, by the clock and of this process' CPU (on a busy machine read those), statements sent for the
summaries, how much the peak of the process' memory grew while deriving, and how deep the nest became. Linear: every
column but memory and depth doubles with the messages. A hashing
embedder by default, because the encoder would take most of the time and is linear anyway, one text after the other.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from report import Cell, Table, reported
from speed import START, texts

import memstore
from memstore._sync.derive.derive import Part, derive
from memstore._sync.store.database import Transaction
from memstore.derive.resources import Resources

SESSION = 40  # messages, a minute apart; the next one begins on the next day
BATCH = 500
COLUMNS = ("messages", "seconds", "CPU", "summarizing", "its CPU", "statements", "MB more", "summaries", "levels")
TIMES = COLUMNS[1:5]


def peak() -> float:
    """Give the most memory that this process ever had, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1024 if sys.platform != "darwin" else 1024**2)


def now() -> NDArray[np.float64]:
    """Give the time, and the CPU time of this process (the server's own is not in it), in seconds."""
    return np.array([time.perf_counter(), time.process_time()])


def count_statements() -> list[int]:
    """Have every statement counted from now on; give the count, in a list of one."""
    count = [0]
    for name in ("all", "tuples", "one", "run", "run_many"):
        setattr(Transaction, name, counted(getattr(Transaction, name), count))
    return count


def counted(method: Callable[..., Any], count: list[int]) -> Callable[..., Any]:
    """Give a method that counts its calls."""

    def counting(*args: Any, **kwargs: Any) -> Any:
        count[0] += 1
        return method(*args, **kwargs)

    return counting


def measure(size: int, embedder: str) -> dict[str, float]:
    """Derive a conversation of `size` messages; give the figures."""
    with (
        tempfile.TemporaryDirectory(prefix="memstore-bench-") as folder,
        memstore.open(f"embedded:{Path(folder) / 'store'}", settings={"embedder": embedder}) as store,
    ):
        scope = store.user("long").conversation("life")
        for at in range(0, size, BATCH):
            scope.add_many([message(at + n, text) for n, text in enumerate(texts(min(BATCH, size - at), at))])
        resources = Resources(store.counter, store.embedder, store.settings)
        before, start, count = peak(), now(), count_statements()
        assert not derive(store._database, resources, Part(scope.user.id, derivers=("summarize",))).failed
        summarizing, statements = now() - start, count[0]
        assert not store.derive().failed
        every, more = now() - start, peak() - before
        found = scope.summaries()
        levels = max(one.level for one in found)
        return dict(zip(COLUMNS, (size, *every, *summarizing, statements, more, len(found), levels), strict=True))


def cells(row: dict[str, float]) -> list[Cell]:
    """Give the figures of a size as a row: times with a digit after the point."""
    first, *rest = COLUMNS
    return [f"{row[first]:,}", *(round(row[name], 1) if name in TIMES else round(row[name]) for name in rest)]


def message(number: int, text: str) -> dict[str, Any]:
    """Give one of the messages."""
    moment = START + timedelta(days=number // SESSION, minutes=number % SESSION)
    return {"role": "user" if number % 2 == 0 else "assistant", "content": text, "occurred_at": moment}


def plot(rows: list[dict[str, float]], file: Path) -> None:
    """Draw each figure over the number of messages, with the line through the first point and nothing."""
    import matplotlib.pyplot as plt

    names = ("CPU", "its CPU", "statements", "MB more")
    figure, axes = plt.subplots(1, len(names), figsize=(13, 3.2), layout="constrained")
    sizes = [row["messages"] for row in rows]
    for axis, name in zip(axes, names, strict=True):
        axis.plot(sizes, [row[name] for row in rows], marker="o", label="measured")
        if name != "MB more":
            axis.plot([0, sizes[-1]], [0, rows[0][name] / sizes[0] * sizes[-1]], "--", color="grey", label="linear")
        axis.set(title=name, xlabel="messages", xlim=(0, None), ylim=(0, None))
    axes[0].legend(frameon=False)
    figure.savefig(file, metadata={"Date": None})


def main() -> int:
    """Measure every size, each in a process of its own."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--sizes", default="2500,5000,10000,20000")
    parser.add_argument("--embedder", default="hashing:256")
    parser.add_argument("--json", type=Path, help="write the figures")
    parser.add_argument("--plot", type=Path, help="write the curves as SVG")
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(measure(options.one, options.embedder)))
        return 0
    rows = []
    for size in map(int, options.sizes.split(",")):
        command = [sys.executable, __file__, "--one", str(size), "--embedder", options.embedder]
        rows.append(json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout.splitlines()[-1]))
        print(rows[-1], file=sys.stderr, flush=True)
    title = f"One conversation derived at once, embedder {options.embedder}"
    reported([Table("linear", title, COLUMNS, [cells(row) for row in rows])], options.json)
    if options.plot:
        plot(rows, options.plot)
    return 0


if __name__ == "__main__":
    sys.exit(main())
