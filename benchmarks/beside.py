"""memstore beside other memories and beside plain search: the same units, the same vectors, the same run.

Every peer is installed at a pinned version into an environment of its own and runs in a process of its own
(benchmarks/peers). Vectors are looked up on all sides, so what is timed is storage and ranking alone; how long
encoding a question takes stands beside it. The systems take turns question by question: a machine that is busy is busy
for all.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

import data
import psycopg
from evidence import ADVERSARIAL
from opened import opened
from rankings import DEPTH, OURS, Rankings
from report import ROOT, Cell, Table
from vectors import Kept

from memstore import MemoryStore
from memstore.store.embedded import EmbeddedServer

sys.path.append(str(ROOT / "benchmarks" / "peers"))

import known
from environments import System, Unavailable, python_of

PEERS = {
    "LangChain PGVector": ("PGVector", ""),
    "LangGraph PostgresStore": ("LangGraph", ""),
    "mem0 (infer off, qdrant)": ("mem0", "qdrant"),
    "mem0 (infer off, pgvector)": ("mem0", "pgvector"),
    "Hindsight (no LLM)": ("Hindsight", ""),
}
HITS, TIMED, BATCH = 20, 100, 200


@dataclass(frozen=True)
class Set:
    """What is put to all: a data set, of some users, within budgets."""

    title: str
    file: str
    store: str
    budgets: tuple[int, ...]
    users: frozenset[str] = frozenset()


SETS = {
    "locomo": Set("LoCoMo", "locomo-dev", "locomo", (500, 1000, 2000, 4000)),
    "beam": Set(
        "BEAM, a conversation of 1M tokens", "beam-1M-dev", "beam-1M", (1000, 2000, 4000), frozenset({"beam-1M-3"})
    ),
}


def tables(options: argparse.Namespace) -> Iterator[Table]:
    """Put each set to every system that can be had."""
    for name in options.sets:
        data.file(options.data, SETS[name].file)
    found = {}
    for title in options.systems or PEERS:
        try:
            found[title] = python_of(PEERS[title][0], options.cache / "peers")
        except Unavailable as reason:
            print(f"skipped: {title} cannot be installed: {reason}", file=sys.stderr, flush=True)
    for name in options.sets:
        yield from _beside(options, SETS[name], name, found)


def _beside(options: argparse.Namespace, given: Set, name: str, pythons: Mapping[str, Path]) -> Iterator[Table]:
    asked = [one for one in data.questions(options.data, given.file) if not given.users or one.user in given.users]
    with (
        TemporaryDirectory(prefix="memstore-peers-") as folder,
        opened(options, given.store, data.file(options.data, given.file)) as (store, embedder),
        Peers(Path(folder), pythons) as peers,
    ):
        rankings = Rankings(store, embedder)
        peers.start(rankings, asked)
        recalled = rankings.measure(asked, given.budgets, peers.ask)
        timed = _timed(store, embedder, peers, asked[:: max(1, len(asked) // TIMED)])
        units = sum(len(rankings.of(user)[0].units) for user in {one.user for one in asked})
        versions = peers.versions()
    yield recalled.table(f"recall-{name}", f"{given.title}: evidence recall in percent within so many tokens")
    if any(one.category == ADVERSARIAL for one in asked):
        yield recalled.of_category(f"adversarial-{name}", f"{given.title}: adversarial questions", ADVERSARIAL)
    yield _latency(f"latency-{name}", f"{given.title}: a question over {units:,} units, {HITS} hits, in ms", timed)
    yield Table(f"versions-{name}", "Versions of the peers", ("system", "versions"), versions)


class Peers:
    """The processes of the peers, and the Postgres that they share; a context manager."""

    def __init__(self, folder: Path, pythons: Mapping[str, Path]) -> None:
        self.folder, self.pythons = folder, pythons
        self.systems: dict[str, System] = {}
        self.stack = ExitStack()

    def __enter__(self) -> Peers:
        return self

    def __exit__(self, *_: object) -> None:
        self.stack.close()

    def start(self, rankings: Rankings, asked: Sequence[data.Question]) -> None:
        """Start every peer and give it all units. One that fails at that is left out, with the reason."""
        users = sorted({one.user for one in asked})
        _write_vectors(self.folder, rankings, users, asked)
        server = EmbeddedServer.open(self.folder / "postgres")
        self.stack.callback(server.close)
        for title, python in self.pythons.items():
            begun = perf_counter()
            try:
                self.systems[title] = self._started(title, python, server.url)
                for user in users:
                    self._fill(title, user, rankings)
            except RuntimeError as reason:
                self.systems.pop(title, None)
                print(f"left out: {title}: {reason}", file=sys.stderr, flush=True)
            print(f"{title}: filled after {perf_counter() - begun:.0f} s", file=sys.stderr, flush=True)

    def _started(self, title: str, python: Path, url: str) -> System:
        peer, variant = PEERS[title]
        own = re.sub(r"\W+", "_", f"{peer} {variant}".strip().lower())
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(f'CREATE DATABASE "{own}"')
        folder = self.folder / own
        folder.mkdir()
        environment = {
            known.VECTORS: str(self.folder),
            known.DATABASE: re.sub(r"/memstore\?", f"/{own}?", url),
            known.FOLDER: str(folder),
        }
        return self.stack.enter_context(System(peer, variant, python, environment))

    def _fill(self, title: str, user: str, rankings: Rankings) -> None:
        units = rankings.of(user)[0].units
        for start in range(0, len(units), BATCH):
            rows = [
                {"row": row, "said": one.said, "role": one.role, "at": one.at.isoformat()}
                for row, one in enumerate(units[start : start + BATCH], start)
            ]
            _checked(self.systems[title].answer({"user": user, "units": rows}))

    def ask(self, question: data.Question) -> Iterator[tuple[str, list[int]]]:
        """Give each peer's rows for a question."""
        for title, answer in self.answers(question, DEPTH):
            yield title, answer["rows"]

    def answers(self, question: data.Question, limit: int) -> Iterator[tuple[str, dict[str, Any]]]:
        """Give each peer's answer, with its seconds."""
        for title, system in self.systems.items():
            yield title, _checked(system.answer({"user": question.user, "question": question.text, "limit": limit}))

    def versions(self) -> list[list[Cell]]:
        """Give what each peer says of itself."""
        return [[title, ", ".join(f"{n} {v}" for n, v in one.versions.items())] for title, one in self.systems.items()]


def _checked(reply: dict[str, Any]) -> dict[str, Any]:
    if "error" in reply:
        raise RuntimeError(f"{reply['error']}: {reply.get('says')}")
    return reply


def _write_vectors(folder: Path, rankings: Rankings, users: Iterable[str], asked: Sequence[data.Question]) -> None:
    """Write the vectors of all units and questions, and of the units as Hindsight embeds them: with their month."""
    units = [unit for user in users for unit in rankings.of(user)[0].units]
    said = [one.said for one in units] + [f"{one.said} (happened in {one.at:%B %Y})" for one in units]
    embed = rankings.embedder
    questions = [embed.embed_query(one.text) for one in asked]
    known.write(folder, [*said, *(one.text for one in asked)], [*embed.embed_documents(said), *questions])


def _timed(store: MemoryStore, embedder: Kept, peers: Peers, asked: Sequence[data.Question]) -> dict[str, list[float]]:
    """Give the seconds of each system, one question after the other, the systems in turn."""
    found: dict[str, list[float]] = {OURS: []}
    for question in asked:
        begun = perf_counter()
        store.user(question.user).recall(question.text, limit=HITS)
        found[OURS].append(perf_counter() - begun)
        for title, answer in peers.answers(question, HITS):
            found.setdefault(title, []).append(answer["seconds"])
    return found | {"(encoding a question, the same for all)": [_seconds_of(embedder, one.text) for one in asked]}


def _seconds_of(embedder: Kept, text: str) -> float:
    begun = perf_counter()
    embedder.real.embed_query(text)
    return perf_counter() - begun


def _latency(name: str, title: str, timed: Mapping[str, Sequence[float]]) -> Table:
    ours = median(timed[OURS])
    rows: list[list[Cell]] = [
        [
            system,
            round(1000 * median(seconds), 2),
            round(1000 * sorted(seconds)[int(len(seconds) * 0.99)], 2),
            round(median(seconds) / ours, 2),
            len(seconds),
        ]
        for system, seconds in timed.items()
    ]
    return Table(name, title, ("system", "p50", "p99", "p50 of memstore's", "questions"), rows)
