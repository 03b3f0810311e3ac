#!/usr/bin/env python3
"""Many users at once, and the server killed under them: what load was held, how long it took to be back, what is lost.

    benchmarks/crowd.py [--users 200] [--minutes 10] [--kills 1] [--pause 5] [--pool 16] [--json FILE]

Each user takes turns as a chat does: adds what is said, asks for a context, adds the answer, and now and then asks
recall; then it pauses, `--pause` seconds on average. Everything is derived beside it, in the same process. The server's
main process is killed with SIGKILL, at even distances. A user whose call failed repeats it, with the same
`external_id`, until it is done. In the end every message that a call had given back is looked for by its id, number and
words; numbers must have no gaps, nothing may be there twice, and `memstore verify` must find nothing.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import signal
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import memstore
from memstore import AsyncConversationScope, AsyncMemoryStore, Message
from memstore.processes import command_of

T = TypeVar("T")
PLACES = ("Leeds", "Porto", "Rome", "Lisbon", "Oslo", "Ghent", "Malmo", "Turin")


@dataclass
class Seen:
    """What happened: seconds of calls by name, errors with when, messages that were acknowledged, by user."""

    took: defaultdict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    errors: Counter[str] = field(default_factory=Counter)
    messages: defaultdict[str, list[Message]] = field(default_factory=lambda: defaultdict(list))
    over_budget: int = 0
    unknown_for: list[float] = field(default_factory=list)  # seconds from a first failure to the call being done

    async def done(self, what: str, call: Callable[[], Awaitable[T]]) -> T:
        """Repeat a call until it is done."""
        failed = None
        while True:
            began = time.perf_counter()
            try:
                given = await call()
            except memstore.DatabaseError as error:
                self.errors[f"{type(error).__name__}: {str(error).rpartition(' does not answer: ')[2][:60]}"] += 1
                failed = failed or time.perf_counter()
                await asyncio.sleep(0.1)
            else:
                now = time.perf_counter()
                self.took[what].append(now - began)
                if failed is not None and what != "derive":  # which goes on as long as there is anything to do
                    self.unknown_for.append(now - failed)
                return given


async def talk(talk: AsyncConversationScope, seen: Seen, until: float, pause: float, chance: random.Random) -> None:
    """Take turns until it is over."""
    told, number = seen.messages[talk.user.name], 0
    await asyncio.sleep(chance.random() * pause)
    while time.monotonic() < until:
        place = chance.choice(PLACES)
        said = f"I am in {place} today, for the {number}th time, and I like the bread there."
        told.append(await seen.done("add", partial(talk.add, "user", said, external_id=f"u{number}")))
        context = await seen.done("context", partial(talk.context, budget=1200, system="Be kind."))
        seen.over_budget += context.tokens > 1200
        answer = f"Noted: {place}, number {number}."
        told.append(await seen.done("add", partial(talk.add, "assistant", answer, external_id=f"a{number}")))
        if number % 4 == 3:
            await seen.done("recall", partial(talk.user.recall, f"When was I in {place}?"))
        number += 1
        await asyncio.sleep(chance.uniform(0.5, 1.5) * pause)


async def derive(store: AsyncMemoryStore, seen: Seen, until: float) -> None:
    """Derive what is pending, again and again."""
    while time.monotonic() < until:
        report = await seen.done("derive", store.derive)
        if report.failed:
            seen.errors[f"derive: {report.failed[0][:90]}"] += len(report.failed)
        await asyncio.sleep(1)


async def kill(folder: Path, times: list[float]) -> int:
    """Kill the server at these moments, as an out-of-memory killer would; give how often that was."""
    for moment in times:
        await asyncio.sleep(max(0.0, moment - time.monotonic()))
        pid = int((folder / "data" / "postmaster.pid").read_text().splitlines()[0])
        if str(folder / "data") not in command_of(pid):
            raise SystemExit("the server's process is not there")
        os.kill(pid, signal.SIGKILL)
    return len(times)


async def lost(store: AsyncMemoryStore, seen: Seen) -> dict[str, int]:
    """Give how much is missing, wrong, doubled or out of order of what was acknowledged."""
    found = Counter(lost=0, changed=0, doubled=0, gaps=0, unasked=0)
    for name, told in seen.messages.items():
        stored = await store.user(name).conversation("chat").messages()
        by_id = {one.id: one for one in stored}
        found["lost"] += sum(one.id not in by_id for one in told)
        found["changed"] += sum(
            (one.seq, one.content) != (by_id[one.id].seq, by_id[one.id].content) for one in told if one.id in by_id
        )
        found["doubled"] += len(stored) - len({one.external_id for one in stored})
        found["gaps"] += [one.seq for one in stored] != list(range(1, len(stored) + 1))
        found["unasked"] += len(stored) - len(told)
    return dict(found)


async def run(asked: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """Let them talk, kill the server, look."""
    settings = {"embedder": "hashing:384", "pool_size": asked.pool}
    seen, seconds = Seen(), asked.minutes * 60
    async with await memstore.open_async(f"embedded:{folder}", settings=settings) as store:
        began = time.monotonic()
        until = began + seconds
        users = [
            talk(store.user(f"user{n}").conversation("chat"), seen, until, asked.pause, random.Random(n))
            for n in range(asked.users)
        ]
        killings = kill(folder, [began + seconds * (n + 1) / (asked.kills + 1) for n in range(asked.kills)])
        deriving = asyncio.create_task(derive(store, seen, until))
        *_, killed = await asyncio.gather(*users, killings)
        lasted = time.monotonic() - began
        await deriving
        await store.derive()
        missing = await lost(store, seen)
        wrong = [one.problem for one in await store.backfills.verify()]
    return figures(asked, seen, lasted, killed, missing, wrong)


def figures(
    asked: argparse.Namespace, seen: Seen, lasted: float, killed: int, missing: dict[str, int], wrong: list[str]
) -> dict[str, Any]:
    calls = sum(len(took) for what, took in seen.took.items() if what != "derive")
    told: dict[str, Any] = {
        "users": asked.users,
        "seconds": round(lasted),
        "calls": calls,
        "calls a second": round(calls / lasted, 1),
        "messages acknowledged": sum(map(len, seen.messages.values())),
        "contexts over budget": seen.over_budget,
        "kills of the server": killed,
        "calls that failed and were repeated": sum(seen.errors.values()),
        "longest until such a call was done, s": round(max(seen.unknown_for, default=0), 1),
    }
    told |= missing
    for what in ("add", "context", "recall"):
        took = sorted(seen.took[what]) or [0.0]
        told[f"{what} p50 / p95 / p99 / max, ms"] = " / ".join(
            f"{1000 * took[min(len(took) - 1, int(len(took) * part))]:.0f}" for part in (0.5, 0.95, 0.99, 1)
        )
    return told | {"verify": wrong, "errors": dict(seen.errors)}


def main() -> None:
    """Run, print, and end with 1 where anything that was acknowledged is not there."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--users", type=int, default=200)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--kills", type=int, default=1)
    parser.add_argument("--pause", type=float, default=5)
    parser.add_argument("--pool", type=int, default=16)
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="memstore-crowd-") as folder:
        told = asyncio.run(run(asked, Path(folder) / "store"))
    for what, value in told.items():
        print(f"| {what} | {value} |")
    if asked.json:
        asked.json.write_text(json.dumps(told, indent=2) + "\n", encoding="utf-8")
    bad = told["verify"] or any(told[what] for what in ("lost", "changed", "doubled", "gaps", "contexts over budget"))
    raise SystemExit(1 if bad else 0)


if __name__ == "__main__":
    main()
