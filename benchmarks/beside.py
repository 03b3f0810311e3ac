"""memstore compared with other memories and with plain search: the same chunks, the same vectors, the same run.

Every peer is installed at a pinned version into an environment of its own and runs in a process of its own
(benchmarks/peers). Vectors are looked up on all sides, so storage and ranking alone are timed; the time to
encode a question is shown apart. The systems take turns question by question: a machine that is busy is busy
for all.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter

import beam
import data
import growth
from corpus import Chunk
from evidence import ADVERSARIAL, BY_DAY
from growth import HITS, dated, in_turn
from opened import EVERY, opened
from rankings import DEPTH, OURS, Rankings
from report import Cell, Table
from rivals import PEERS, Peers, installed, known
from vectors import Kept

TIMED = 100  # questions


@dataclass(frozen=True)
class Set:
    """What is put to all: a data set, of some users, within budgets."""

    title: str
    file: str
    store: str
    budgets: tuple[int, ...]
    users: frozenset[str] = frozenset()
    derivers: tuple[str, ...] = EVERY


SETS = {
    "locomo": Set("LoCoMo", "locomo-dev", "locomo", (500, 1000, 2000, 4000)),
    "beam": Set(
        "BEAM, a conversation of 1M tokens",
        "beam-1M-dev",
        "beam-1M",
        beam.BUDGETS,
        frozenset({"beam-1M-3"}),
        beam.DERIVERS,
    ),
}


def tables(options: argparse.Namespace) -> Iterator[Table]:
    """Put each set to every system that can be had."""
    for name in options.sets:
        if name in SETS:
            for file in (SETS[name].file, f"{SETS[name].file}-questions"):
                data.file(options.data, file)
    pythons = installed(options.systems or PEERS, options.cache / "peers")
    for name in options.sets:
        yield from _beside(options, SETS[name], name, pythons) if name in SETS else growth.tables(options, pythons)


def _beside(options: argparse.Namespace, given: Set, name: str, pythons: Mapping[str, Path]) -> Iterator[Table]:
    asked = [one for one in data.questions(options.data, given.file) if not given.users or one.user in given.users]
    users = sorted({one.user for one in asked})
    with (
        TemporaryDirectory(prefix="memstore-peers-") as folder,
        opened(options, given.store, _history(options, given, users, folder), given.derivers) as (store, embedder),
    ):
        rankings = Rankings(store, embedder)
        chunks = {user: rankings.of(user)[0].chunks for user in users}
        _write_vectors(Path(folder), embedder, [one for user in users for one in chunks[user]], asked)
        with Peers(Path(folder), pythons) as peers:
            for user in users:
                peers.add(user, chunks[user])
            recalled = rankings.measure(asked, given.budgets, lambda question: _rows(peers, question))
            recalled.leave_out(PEERS.keys() - peers.systems.keys())
            timed = in_turn(store, peers, asked[:: max(1, len(asked) // TIMED)])
            versions = peers.versions()
        timed |= {"(encoding a question, the same for all)": [_encoding(embedder, one.text) for one in asked[:TIMED]]}
    count = sum(map(len, chunks.values()))
    yield recalled.table(f"recall-{name}", f"{given.title}: evidence recall in percent within so many tokens")
    yield recalled.table(f"recall-by-day-{name}", f"{given.title}: {BY_DAY}", by_day=True)
    if any(one.category == ADVERSARIAL for one in asked):
        yield recalled.of_category(f"adversarial-{name}", f"{given.title}: adversarial questions", ADVERSARIAL)
    yield _latency(f"latency-{name}", f"{given.title}: a question over {count:,} chunks, {HITS} hits, in ms", timed)
    yield Table(f"versions-{name}", "Versions of the peers", ("system", "versions"), versions)


def _history(options: argparse.Namespace, given: Set, users: Sequence[str], folder: str) -> Path:
    return data.part(options.data, given.file, users, Path(folder))


def _rows(peers: Peers, question: data.Question) -> Iterator[tuple[str, list[int]]]:
    for title, answer in peers.answers(question, DEPTH):
        yield title, answer["rows"]


def _write_vectors(folder: Path, embedder: Kept, chunks: Sequence[Chunk], asked: Sequence[data.Question]) -> None:
    """Write the vectors of all chunks and questions, and of the chunks as Hindsight embeds them: with their month."""
    said = [one.said for one in chunks] + [dated(one) for one in chunks]
    vectors = [*embedder.embed_documents(said), *(embedder.embed_query(one.text) for one in asked)]
    embedder.save()
    known.write(folder, [*said, *(one.text for one in asked)], vectors)


def _encoding(embedder: Kept, text: str) -> float:
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
