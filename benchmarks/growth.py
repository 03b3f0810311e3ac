"""Latency beside the peers as one user's memory grows: the same made-up units for all, the same vectors looked up."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter

from corpus import Unit
from data import Question
from latency import filled
from rankings import OURS
from report import Cell, Table
from rivals import Peers, known
from speed import QUESTIONS, Filling
from vectors import Kept, use

import memstore
from memstore import MemoryStore

UNITS, ROUNDS, HITS = (1_000, 10_000, 50_000), 4, 20
LONGEST = 300.0  # seconds to fill a peer: who took more than a tenth of it is not given the next size
Seconds = dict[str, list[float]]


def tables(options: argparse.Namespace, pythons: Mapping[str, Path]) -> Iterator[Table]:
    """Time each size; a peer that would take too long to fill has no figure there."""
    sizes = options.units or UNITS
    embedder = Kept(options.cache / "vectors-sizes.npz")
    with TemporaryDirectory(prefix="memstore-peers-") as folder:
        place = (options.store or Path(folder)).resolve() / "speed"
        with memstore.open(f"embedded:{place}", settings={"receipts_days": 0}) as store:
            use(store, embedder)
            units = {size: units_of(store, size) for size in sizes}
            write(Path(folder), embedder, units[max(sizes)])
            with Peers(Path(folder), pythons) as peers:
                found = {size: _of_size(store, peers, size, units[size]) for size in sorted(sizes)}
        embedder.save()
    title = f"One user, {HITS} hits, p50 in ms, by the number of units; without encoding the question"
    yield Table("sizes", title, ("system", *(f"{size:,}" for size in sorted(sizes))), rows(found))


def units_of(store: MemoryStore, size: int) -> list[Unit]:
    """Give the units of a user with so many, who is made where needed."""
    found = filled(store, size).conversation("life").messages()
    return [Unit(str(one.seq), one.role, one.occurred_at, f"{one.role}: {one.text}") for one in found]


def dated(unit: Unit) -> str:
    """Give a unit as Hindsight embeds it."""
    return f"{unit.said} (happened in {unit.at:%B %Y})"


def write(folder: Path, embedder: Kept, units: Sequence[Unit]) -> None:
    """Write made-up vectors for texts, real ones for questions; every size's texts are among the largest one's."""
    texts = [one.said for one in units]
    vectors = Filling(embedder).embed_documents(texts)
    questions = [embedder.embed_query(question) for question in QUESTIONS]
    known.write(folder, [*texts, *map(dated, units), *QUESTIONS], [*vectors, *vectors, *questions])


def _of_size(store: MemoryStore, peers: Peers, size: int, units: Sequence[Unit]) -> Seconds:
    user = f"units-{size}"
    filling = peers.add(user, units)
    found = in_turn(store, peers, [Question(user, text, "", frozenset()) for text in QUESTIONS * ROUNDS])
    for title, seconds in filling.items():
        if 10 * seconds > LONGEST:
            peers.systems.pop(title, None)
    return found


def in_turn(store: MemoryStore, peers: Peers, asked: Sequence[Question]) -> Seconds:
    """Give the seconds of each system, question by question, the systems in turn."""
    found: Seconds = {OURS: []}
    store.user(asked[0].user).recall(asked[0].text, limit=HITS)
    for question in asked:
        begun = perf_counter()
        store.user(question.user).recall(question.text, limit=HITS)
        found[OURS].append(perf_counter() - begun)
        for title, answer in peers.answers(question, HITS):
            found.setdefault(title, []).append(answer["seconds"])
    return found


def rows(found: Mapping[int, Seconds]) -> list[list[Cell]]:
    """Give a row for each system, with its medians in ms."""
    systems = dict.fromkeys(name for timed in found.values() for name in timed)
    return [
        [name, *(round(1000 * median(timed[name]), 2) if name in timed else None for timed in found.values())]
        for name in systems
    ]
