#!/usr/bin/env python3
"""Throughput and memory over a very long history: taken in, then derived by a backfill, sampled as they go.

    benchmarks/years.py --data FOLDER [--messages 500000] [--users 20] [--only embed] [--seconds 1200]
                        [--embedder none] [-c 4] [--json FILE] [--plot FILE.svg]

The history is made of LoCoMo's conversations, again and again, for users of many conversations each: every copy is a
conversation of its own, a year and more after the one before. What works is the command line in a process of its own.
Rates are messages a second between two marks, memory is the most that was held between them: by that process, and by
all of the server's together (shared pages counted once). On a machine that others use, how many messages go through in
a second of the processors' time (of that process and the server's) tells more than how many in one by the clock.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import count, islice, pairwise
from pathlib import Path
from typing import Any

import psycopg
from backfill import server_seconds
from data import Missing, file, objects
from plot import drawn
from report import Cell, Table, reported

import memstore

MARKS = 10
LOOK = 2.0  # seconds between two looks, each of which takes a twentieth of one where the server holds a GiB
STORED = "select coalesce(sum(last_seq), 0) from conversations"
DERIVED = "select coalesce(sum(done_seq), 0) from derivations where deriver = any(%s)"


@dataclass(frozen=True)
class Sample:
    """So many messages, after so many seconds and so many of the processors; MiB of the process and of the server."""

    messages: int
    seconds: float
    cpu: float
    process: float
    server: float


def history(data: Path, messages: int, users: int) -> Iterator[dict[str, Any]]:
    """Give so many messages, the conversations of all users in turn."""
    given = list(objects(file(data, "locomo-dev")))
    return islice(_copies(given, users), messages)


def _copies(given: Sequence[dict[str, Any]], users: int) -> Iterator[dict[str, Any]]:
    sources = list(dict.fromkeys(one["user"] for one in given))
    own = {name: [one for one in given if one["user"] == name] for name in sources}
    for number in count():
        source, user, year = sources[number % len(sources)], number % users, number // users
        for one in own[source]:
            at = datetime.fromisoformat(one["occurred_at"]) + timedelta(days=400 * year)
            named = {
                "user": f"user{user}",
                "conversation": f"talk{number}",
                "external_id": f"{number}:{one['external_id']}",
            }
            yield one | named | {"occurred_at": at.isoformat()}


def sampled(command: Sequence[str], url: str, folder: Path, query: str, *values: object) -> list[Sample]:
    """Run a command of memstore's and look now and then at what it has done and holds. Raises where it fails."""
    postmaster = int((folder / "data" / "postmaster.pid").read_text().split()[0])
    environment = os.environ | {"MEMSTORE_OUTBOX_DAYS": "0"}
    found, began, before = list[Sample](), time.perf_counter(), server_seconds(folder)
    own = 0.0
    with (
        subprocess.Popen([sys.executable, "-m", "memstore", *command, "-d", url], env=environment) as process,
        psycopg.connect(url, autocommit=True) as connection,
    ):
        while True:
            ended = process.poll() is not None
            row = connection.execute(query, values).fetchone()
            assert row is not None
            memory = (0.0 if ended else _held([process.pid])), _held(_processes(postmaster))
            own = own if ended else _used(process.pid)
            cpu = own + server_seconds(folder) - before
            found.append(Sample(int(row[0]), time.perf_counter() - began, cpu, *memory))
            if ended:
                break
            time.sleep(LOOK)
    if process.returncode not in (0, 1):
        raise SystemExit(f"memstore {command[0]} ended with {process.returncode}")
    return found


def _processes(postmaster: int) -> list[int]:
    found = [postmaster]
    for place in Path("/proc").glob("[0-9]*/stat"):
        try:
            if place.read_text().rpartition(")")[2].split()[1] == str(postmaster):
                found.append(int(place.parent.name))
        except OSError:  # it has ended
            continue
    return found


def _used(process: int) -> float:
    """Give the seconds of the processors that a process has used."""
    used = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[11:13]
    return sum(map(int, used)) / os.sysconf("SC_CLK_TCK")


def _held(processes: Sequence[int]) -> float:
    """Give the MiB that processes hold, what they share counted once."""
    held = 0
    for process in processes:
        try:
            lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
        except OSError:
            continue
        held += sum(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    return held / 1024


def between(samples: Sequence[Sample], marks: Sequence[int]) -> list[list[Cell]]:
    """Give the rates up to each mark from the one before, by the clock and by the processors, and the most memory.

    A mark that was passed between two looks is taken to have been passed evenly.
    """
    rows: list[list[Cell]] = [[], [], [], []]
    last = max((one for one in samples if one.messages == samples[0].messages), key=lambda one: one.seconds)
    for mark in marks:
        here = _passed(samples, mark)
        if here is None or here.seconds <= last.seconds:
            for row in rows:
                row.append(None)
            continue
        inside = [one for one in samples if last.seconds < one.seconds < here.seconds] + [here]
        count = here.messages - last.messages
        rows[0].append(round(count / (here.seconds - last.seconds), 1))
        rows[1].append(round(count / (here.cpu - last.cpu), 1) if here.cpu > last.cpu else None)
        rows[2].append(round(max(one.process for one in inside), 1))
        rows[3].append(round(max(one.server for one in inside), 1))
        last = here
    return rows


def _passed(samples: Sequence[Sample], mark: int) -> Sample | None:
    """Give how it stood when so many messages were done; None where they never were."""
    for before, after in pairwise(samples):
        if before.messages < mark <= after.messages:
            share = (mark - before.messages) / (after.messages - before.messages)
            seconds = before.seconds + share * (after.seconds - before.seconds)
            cpu = before.cpu + share * (after.cpu - before.cpu)
            return Sample(mark, seconds, cpu, max(before.process, after.process), max(before.server, after.server))
    return None


def measured(options: argparse.Namespace, temporary: Path) -> Table:
    path = temporary / "history.jsonl"
    with path.open("w", encoding="utf-8") as out:
        for one in history(options.data, options.messages, options.users):
            out.write(json.dumps(one, ensure_ascii=False) + "\n")
    os.environ["MEMSTORE_EMBEDDER"] = options.embedder
    folder, rows = temporary / "store", list[list[Cell]]()
    marks = [options.messages * n // MARKS for n in range(1, MARKS + 1)]
    only = options.only or ["embed", "summaries", "facts"]
    derivers = [{"summaries": "summarize"}.get(one, one) for one in only]
    backfill = ["backfill", "run", "-c", str(options.concurrency), "--max-seconds", str(options.seconds)]
    for name in options.only or ():
        backfill += ["--only", name]
    with memstore.open(f"embedded:{folder}") as store:
        parts = {
            "import": sampled(["import", str(path)], store.url, folder, STORED),
            f"backfill ({', '.join(only)})": sampled(
                backfill, store.url, folder, f"select ({DERIVED}) / {len(derivers)}", derivers
            ),
        }
        for name, samples in parts.items():
            told = ("messages a second", "messages a second of the processors", "MiB", "MiB of the server")
            rows += [[f"{name}, {what}", *row] for what, row in zip(told, between(samples, marks), strict=True)]
            print(f"{name}: {samples[-1].messages:,} messages in {samples[-1].seconds:.0f} s", flush=True)
    title = f"Up to so many messages of {options.messages:,}, embedder {options.embedder}: a second, and memory"
    return Table("years", title, ("", *(f"{mark:,}" for mark in marks)), rows)


def plotted(table: Table) -> Table:
    """Give what is drawn: not the rates by the clock, which on a machine that others use are mostly theirs."""
    return replace(table, rows=[row for row in table.rows if not str(row[0]).endswith("a second")])


def main() -> int:
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--data", type=Path, required=True, help="the folder with the data sets")
    parser.add_argument("--messages", type=int, default=500_000)
    parser.add_argument("--users", type=int, default=20)
    parser.add_argument("--only", nargs="+", help="of embed, summaries, facts")
    parser.add_argument("--seconds", type=int, default=1200, help="of the backfill, at most")
    parser.add_argument("--embedder", default="none")
    parser.add_argument("-c", "--concurrency", type=int, default=4)
    parser.add_argument("--json", type=Path, help="write the figures")
    parser.add_argument("--plot", type=Path, help="draw them, as SVG")
    options = parser.parse_args()
    try:
        file(options.data, "locomo-dev")
    except Missing as reason:
        print(f"skipped: {reason}")
        return 0
    with tempfile.TemporaryDirectory(prefix="memstore-bench-") as temporary:
        table = measured(options, Path(temporary))
    reported([table], options.json)
    if options.plot:
        options.plot.write_text(drawn([plotted(table)]), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
