"""Latency of all systems as one user's memory grows: the same made-up chunks for all, the same vectors looked up.

Each peer takes a user's first chunks by its own calls. The rest is copied into its tables as it stores them itself, by
the example of the first, and its HNSW indexes are made anew as it defines them: thousands of calls take hours, and the
timed part is the same. Peers without such tables get everything by their calls, and only sizes for which that is
bearable.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

import numpy as np
import psycopg
from corpus import Chunk
from data import Question
from opened import settings
from pgvector.psycopg import register_vector
from rankings import OURS
from report import Cell, Table
from rivals import PEERS, Peers, known
from scale import Disguised, ensure
from scale_data import BATCH, START, Made, Vectors
from vectors import use

import memstore
from memstore import MemoryStore
from memstore._sync.derive.maintenance import maintain_indexes
from memstore.store.sql import parse_statements

UNITS, QUESTIONS, ROUNDS, HITS = (1_000, 10_000, 100_000), 10, 4, 20
BY_CALLS = 10_000  # chunks that a peer takes one by one in some minutes
COPIED = {"PGVector", "LangGraph", "mem0 pgvector"}
BULK = parse_statements((Path(__file__).parent / "peers" / "bulk.sql").read_text(encoding="utf-8"))
Seconds = dict[str, list[float]]


@dataclass(frozen=True)
class Person:
    """A made-up user, as peers are given it."""

    made: Made

    @cached_property
    def asked(self) -> dict[str, Vectors]:
        """Questions and their vectors."""
        return dict(self.made.question(number) for number in range(QUESTIONS))

    def chunks(self, batch: int) -> list[Chunk]:
        """Return a batch of chunks, whose vectors are `made.vectors` of it."""
        texts = [" ".join(f"w{word}" for word in words) for words in self.made.words(batch)]
        rows = range(batch * BATCH, min((batch + 1) * BATCH, self.made.chunks))
        return [
            Chunk(str(row), ("user", "assistant")[row % 2], START, text) for row, text in zip(rows, texts, strict=False)
        ]

    @property
    def batches(self) -> range:
        """All batches."""
        return range(-(-self.made.chunks // BATCH))

    @cached_property
    def nearest(self) -> list[set[int]]:
        """The exact nearest chunks of each question."""
        asked = np.array([*self.asked.values()])
        scores = np.concatenate([self.made.vectors(batch) @ asked.T for batch in self.batches])[: self.made.chunks]
        return [set(column.tolist()) for column in np.argpartition(-scores, HITS, axis=0)[:HITS].T]


def tables(options: argparse.Namespace, pythons: Mapping[str, Path]) -> Iterator[Table]:
    """Time each size; a peer that would take too long to fill has no figure there."""
    people = [Person(Made(f"scale-{size}", size, seed=size)) for size in sorted(options.chunks or UNITS)]
    asked = {text: vector for one in people for text, vector in one.asked.items()}
    with TemporaryDirectory(prefix="memstore-peers-") as folder:
        place = (options.store or Path(folder)).resolve() / "scale"
        with memstore.open(f"embedded:{place}", settings=settings(options)) as store:
            use(store, Disguised(None, asked))
            _write_vectors(Path(folder), people, asked)
            with Peers(Path(folder), pythons) as peers:
                found = {one.made.chunks: _of_size(store, peers, one) for one in people}
                versions = peers.versions()
    columns = ("system", *(f"{size:,}" for size in found))
    timed, near = ({size: pair[n] for size, pair in found.items()} for n in (0, 1))
    title = f"One user, {HITS} hits, p50 in ms, by the number of chunks; without encoding the question"
    yield Table("sizes", title, columns, rows(timed, 1000, 2))
    yield Table(
        "nearest",
        f"Of the {HITS} chunks nearest to the question, how many are found, in percent",
        columns,
        rows(near, 100, 1),
    )
    yield Table("versions-sizes", "Versions of the peers", ("system", "versions"), versions)


def dated(chunk: Chunk) -> str:
    """Return a chunk as Hindsight embeds it."""
    return f"{chunk.said} (happened in {chunk.at:%B %Y})"


def _write_vectors(folder: Path, people: Sequence[Person], asked: Mapping[str, Vectors]) -> None:
    """Write the vectors of questions and of those chunks that are stored by calls."""
    texts, vectors = [*asked], [*asked.values()]
    for one in people:
        for batch in one.batches if one.made.chunks <= BY_CALLS else range(1):
            for chunk, vector in zip(one.chunks(batch), one.made.vectors(batch), strict=False):
                texts += [chunk.said, dated(chunk)]
                vectors += [vector, vector]
    known.write(folder, texts, np.array(vectors))


def _of_size(store: MemoryStore, peers: Peers, one: Person) -> tuple[Seconds, dict[str, list[float]]]:
    """Return each system's seconds, and the share of the exact nearest that it finds."""
    ensure(store.url, [one.made])
    maintain_indexes(store._database, one.made.id)
    for title in list(peers.systems):
        with peers.leaving_out(title):
            _fill(peers, title, one)
    asked = [Question(one.made.name, text, "", frozenset()) for text in one.asked]
    near: dict[str, list[float]] = {}
    for question, exact in zip(asked, one.nearest, strict=True):
        for title, answer in peers.answers(question, HITS):
            near.setdefault(title, []).append(len(exact & set(answer["rows"])) / HITS)
    return in_turn(store, peers, asked * ROUNDS), near


def _fill(peers: Peers, title: str, one: Person) -> None:
    begun = perf_counter()
    name = " ".join(PEERS[title]).strip()
    if name in COPIED:
        peers.add_to(title, one.made.name, one.chunks(0))
        _copy(peers.systems[title].environment[known.DATABASE], BULK[name.split()[0]], one)
    elif one.made.chunks <= BY_CALLS:
        peers.add_to(title, one.made.name, [chunk for batch in one.batches for chunk in one.chunks(batch)])
    else:
        peers.systems.pop(title)
    print(f"{title}: {one.made.chunks:,} chunks in {perf_counter() - begun:.0f} s", file=sys.stderr, flush=True)


def _copy(url: str, statement: str, one: Person) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        register_vector(connection)
        connection.execute("SET maintenance_work_mem = '4GB'")
        connection.execute("CREATE TEMPORARY TABLE staged (row integer, said text, embedding vector)")
        with connection.cursor() as cursor, cursor.copy("COPY staged FROM STDIN (FORMAT BINARY)") as copy:
            copy.set_types(["int4", "text", "vector"])
            for batch in one.batches[1:]:
                for chunk, vector in zip(one.chunks(batch), one.made.vectors(batch), strict=False):
                    copy.write_row((int(chunk.message), chunk.said, vector))
        _inserted(connection, statement, one.made.name)
        connection.execute("VACUUM (ANALYZE)")


def _inserted(connection: psycopg.Connection[Any], statement: Any, user: str) -> None:
    indexes = "SELECT indexname, indexdef FROM pg_indexes WHERE indexdef LIKE '%USING hnsw%'"
    defined: list[tuple[Any, Any]] = connection.execute(indexes).fetchall()
    for name, _ in defined:
        connection.execute(f'DROP INDEX "{name}"')
    connection.execute(statement, {"user": user})
    for _, definition in defined:
        connection.execute(definition)


def in_turn(store: MemoryStore, peers: Peers, asked: Sequence[Question]) -> Seconds:
    """Return the seconds of each system, question by question, the systems in turn."""
    found: Seconds = {OURS: []}
    store.user(asked[0].user).recall(asked[0].text, limit=HITS)
    for question in asked:
        begun = perf_counter()
        store.user(question.user).recall(question.text, limit=HITS)
        found[OURS].append(perf_counter() - begun)
        for title, answer in peers.answers(question, HITS):
            found.setdefault(title, []).append(answer["seconds"])
    return found


def rows(found: Mapping[int, Mapping[str, Sequence[float]]], chunk: float, digits: int) -> list[list[Cell]]:
    """Return a row for each system, with its medians of each size."""
    systems = dict.fromkeys(name for of_size in found.values() for name in of_size)
    return [
        [name, *(round(chunk * median(one[name]), digits) if name in one else None for one in found.values())]
        for name in systems
    ]
