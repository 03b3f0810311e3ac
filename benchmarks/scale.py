#!/usr/bin/env python3
"""Recall as one user's memory grows: how long it takes beside the least it could take, and how much it finds.

    benchmarks/scale.py --units 1000 5000 50000 200000 500000 --store /big/disk --beside 200

The floor is to embed the question and run one bare statement, an exact kNN over the user's vectors. Rounds of the two
sides take turns on one machine: read the ratios. Users are made up (`scale_data.py`): vectors in clusters, words by
Zipf's law. `recall@20` compares what the leg of vectors finds with the exact 20 nearest. `--beside` adds so many users
with 5,000 units each. The embedder costs what the store's costs, and gives made-up vectors.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import psycopg
from pgvector.psycopg import register_vector
from scale_data import DIMENSIONS, MODEL, Made, load

import memstore
from memstore import ids
from memstore._sync.ingest.indexes import tend
from memstore._sync.retrieve.question import Asker
from memstore._sync.retrieve.recall import recall
from memstore._sync.store import items, vector_indexes
from memstore._sync.store.database import Database
from memstore.providers import Embedder, Vectors
from memstore.store.statements import statements

EACH = 5000  # units of each user beside
GOALS = {5000: 1.5, 50_000: 1.5, 500_000: 2.0}
COLUMNS = ("units", "recall ms", "floor ms", "ratio", "goal", "cold ms", "recall@20", "built s", "memory MB")
Figures = dict[str, Any]


class Disguised:
    """An embedder that takes the time of a real one (of None: no time) and gives the vectors of made-up questions."""

    name, dimensions, max_tokens = MODEL, DIMENSIONS, 10**6

    def __init__(self, real: Embedder | None, questions: dict[str, Vectors]) -> None:
        self._real, self._questions = real, questions

    def count(self, text: str) -> int:
        """Give the number of words."""
        return len(text.split())

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """Refuse: nothing is derived here."""
        raise NotImplementedError(texts)

    def embed_query(self, text: str) -> Vectors:
        """Give the vector of a question."""
        if self._real is not None:
            self._real.embed_query("Which dessert did I cook for my mother's birthday?")
        return self._questions[text]


def timed(work: Callable[[], object]) -> float:
    """Give the milliseconds that the work takes."""
    start = time.perf_counter()
    work()
    return 1000 * (time.perf_counter() - start)


def memory() -> float:
    """Give the megabytes that this process holds."""
    fields = Path("/proc/self/statm").read_text(encoding="ascii").split()
    return int(fields[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def ensure(url: str, users: Sequence[Made]) -> None:
    """Load those of the users who are not there."""
    with psycopg.connect(url) as connection:
        there = {name for (name,) in connection.execute("SELECT name FROM users")}
    if missing := [user for user in users if user.name not in there]:
        load(url, missing)


def measured(url: str, user: Made, real: Embedder | None, questions: int, rounds: int) -> Figures:
    """Give the figures of one user."""
    asked = dict(user.question(number) for number in range(questions))
    embedder, model = Disguised(real, asked), ids.model_id(MODEL, DIMENSIONS)
    with closing(Database(url, 2)) as database, psycopg.connect(url, autocommit=True) as connection:
        database.open()
        register_vector(connection)
        connection.prepare_threshold = None
        built = timed(partial(tend, database, user.id)) / 1000
        filters = items.Filters()

        def ours(question: str) -> object:
            return recall(Asker(database, user.id, embedder), question, filters=filters, limit=20, min_score=None)

        def floor(question: str) -> list[Any]:
            values = {"user_id": user.id, "model_id": model, "limit": 20, "query": embedder.embed_query(question)}
            return connection.execute(statements("items")["nearest"], values).fetchall()

        before = memory()
        first, *_ = asked
        embedder.embed_query(first)  # that its model is loaded is not of recall
        cold = timed(partial(ours, first))
        pairs = [(timed(partial(ours, one)), timed(partial(floor, one))) for _ in range(rounds) for one in asked]
        found = [_found(database, user, model, vector, floor(text)) for text, vector in asked.items()]
    return {
        "units": user.units,
        "recall ms": round(median(a for a, _ in pairs), 1),
        "floor ms": round(median(b for _, b in pairs), 1),
        "ratio": round(median(a for a, _ in pairs) / median(b for _, b in pairs), 2),
        "goal": GOALS.get(user.units),
        "cold ms": round(cold),
        "recall@20": round(float(np.mean(found)), 4),
        "built s": round(built, 1),
        "memory MB": round(memory() - before),
    }


def _found(database: Database, user: Made, model: Any, vector: Vectors, exact: list[Any]) -> float:
    """Give the share of the exact nearest that the leg of vectors finds; arrays and scans are exact themselves."""
    with database.scope(user.id) as scope:
        if user.units <= database.most_units or not vector_indexes.is_ready(scope, model):
            return 1.0
        keys = vector_indexes.nearest(scope, vector, model, 200)
    return len({tuple(key) for key in keys} & {tuple(row[:2]) for row in exact}) / len(exact)


def sizes(url: str) -> Figures:
    """Give the megabytes of what recall reads, all users together."""
    statement = """
        SELECT c.relname, pg_table_size(c.oid) / 2 ^ 20 FROM pg_class c
        WHERE c.relname IN ('item_text', 'item_vectors', 'term_postings')
        UNION ALL
        SELECT CASE WHEN c.relname LIKE 'hnsw%' THEN 'hnsw' ELSE c.relname END, sum(pg_relation_size(c.oid)) / 2 ^ 20
        FROM pg_class c JOIN pg_index i ON i.indexrelid = c.oid
        WHERE i.indrelid IN ('item_text'::regclass, 'item_vectors'::regclass, 'term_postings'::regclass) GROUP BY 1"""
    with psycopg.connect(url) as connection:
        return {name: round(megabytes) for name, megabytes in connection.execute(statement)}


def main() -> int:
    """Load, build, measure, print."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--units", type=int, nargs="+", default=[1000, 5000, 50_000], help="of a user, one for each")
    parser.add_argument("--beside", type=int, default=0, help=f"users with {EACH:,} units each beside them")
    parser.add_argument("--store", type=Path, help="a folder in which the store is kept for the next run")
    parser.add_argument("--questions", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--no-encoder", action="store_true", help="do not pay for embedding the question")
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    options = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(prefix="memstore-bench-") as folder,
        memstore.open(f"embedded:{options.store or Path(folder) / 'store'}") as store,
    ):
        users = [Made(f"scale-{units}", units, seed=units) for units in options.units]
        beside = [Made(f"beside-{n}", EACH, seed=n) for n in range(options.beside)]
        ensure(store.url, [*users, *beside])
        real = None if options.no_encoder else store.embedder
        print(" ".join(f"{name:>10}" for name in COLUMNS))
        rows = []
        for user in users:
            rows.append(measured(store.url, user, real, options.questions, options.rounds))
            print(" ".join(f"{'' if rows[-1][name] is None else rows[-1][name]!s:>10}" for name in COLUMNS), flush=True)
        megabytes = sizes(store.url)
        print(", ".join(f"{name} {size:,} MB" for name, size in sorted(megabytes.items())))
    if options.json:
        figures = {"beside": options.beside, "rows": rows, "megabytes": megabytes}
        options.json.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
