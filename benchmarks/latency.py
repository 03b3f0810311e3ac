"""The speed of recall: against embedding the question and one bare exact statement for its nearest neighbours.

One user has all chunks, which are short natural messages; their vectors are made without a model, as what they mean is
not measured, and the questions are encoded by the real one on both sides. The two sides take turns.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from datetime import timedelta
from functools import partial
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import psycopg
from pgvector.psycopg import register_vector
from report import Cell, Table
from speed import QUESTIONS, START, Filling, texts, timed

import memstore
from memstore import MemoryStore, UserScope, ids
from memstore._sync.derive.pipeline import DeriveScope, derive
from memstore.derive.dependencies import Dependencies
from memstore.store.sql import statements

UNITS, ROUNDS, HITS, BATCH = (5_000, 50_000), 15, 20, 2_000
GOAL = 1.5  # times the floor, at the median


def tables(options: argparse.Namespace) -> Iterator[Table]:
    """Measure each number of chunks."""
    rows: list[list[Cell]] = []
    with TemporaryDirectory(prefix="memstore-bench-") as folder:
        place = (options.store or Path(folder)).resolve() / "speed"
        with memstore.open(f"embedded:{place}") as store, psycopg.connect(store.url, autocommit=True) as connection:
            register_vector(connection)
            for chunks in options.chunks or UNITS:
                scope = filled(store, chunks)
                rows += compared(store, connection, scope, chunks)
                print(rows[-2:], file=sys.stderr, flush=True)
    columns = ("one user's chunks", "recall, ms", "floor, ms", "ratio", f"goal at p50: {GOAL}")
    yield Table("recall", f"recall(limit={HITS}) and its floor, embedding the question on both sides", columns, rows)


def filled(store: MemoryStore, chunks: int) -> UserScope:
    """Return a user with so many chunks, one a message; of a kept store, who is there."""
    name = f"chunks-{chunks}"
    scope = store.user(name)
    talk = scope.conversation("life")
    if talk.info() is None:
        for start in range(0, chunks, BATCH):
            given = texts(chunks, 3)[start : start + BATCH]
            talk.add_many(
                [
                    {
                        "role": "user" if n % 2 == 0 else "assistant",
                        "content": text,
                        "occurred_at": START + timedelta(hours=n),
                    }
                    for n, text in enumerate(given, start)
                ]
            )
        assert store.embedder is not None
        resources = Dependencies(store.counter, Filling(store.embedder), store.settings)
        derive(store._database, resources, DeriveScope(ids.user_id(name), derivers=("chunks",)))
    return scope


def compared(store: MemoryStore, connection: Any, scope: UserScope, chunks: int) -> list[list[Cell]]:
    """Take turns with the floor; give the rows of median and 99th percentile."""
    embedder = store.embedder
    assert embedder is not None
    nearest = statements("chunks")["nearest"]
    model = ids.model_id(embedder.name, embedder.dimensions)
    values = {"user_id": ids.user_id(f"chunks-{chunks}"), "model_id": model, "limit": HITS}

    def floor(question: str) -> None:
        connection.execute(nearest, values | {"query": embedder.embed_query(question)}).fetchall()

    for question in QUESTIONS:
        scope.recall(question, limit=HITS)
        floor(question)
    pairs = [
        (timed(partial(scope.recall, question, limit=HITS)), timed(partial(floor, question)))
        for _ in range(ROUNDS)
        for question in QUESTIONS
    ]
    return [_row(f"{chunks:,}, {name}", pairs, place) for name, place in (("p50", 0.5), ("p99", 0.99))]


def _row(name: str, pairs: Sequence[tuple[float, float]], place: float) -> list[Cell]:
    ours, theirs = (sorted(column)[int(place * len(pairs))] for column in zip(*pairs, strict=True))
    ratio = median(a / b for a, b in pairs) if place == 0.5 else ours / theirs
    judged = None if place != 0.5 else "reached" if ratio <= GOAL else "MISSED"
    return [name, round(1000 * ours, 1), round(1000 * theirs, 1), round(ratio, 2), judged]
