"""Recall as one user's memory grows: how long it takes compared with the least it could take, and how much it finds.

The floor is to embed the question and run one bare statement, an exact kNN over the user's vectors. Rounds of the two
sides take turns on one machine: read the ratios. Users are made up (`scale_data.py`): vectors in clusters, words by
Zipf's law. `recall@20` compares what the leg of vectors finds with the exact 20 nearest. `--beside` adds so many users
with 5,000 chunks each. The embedder costs what the store's costs, and gives made-up vectors.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import psycopg
from pgvector.psycopg import register_vector
from report import Table
from scale_data import DIMENSIONS, MODEL, Made, load

import memstore
from memstore import ids
from memstore._sync.derive.maintenance import maintain_indexes
from memstore._sync.search.recall import recall
from memstore._sync.store import chunks, vector_indexes
from memstore._sync.store.database import Database
from memstore.providers import Embedder, Vectors
from memstore.store.sql import statements

UNITS, QUESTIONS, ROUNDS = (1_000, 5_000, 50_000, 200_000, 500_000, 1_000_000), 20, 3
EACH = 5000  # chunks of each user beside
GOALS = {5000: 1.5, 50_000: 1.5, 500_000: 2.0}
COLUMNS = (
    "chunks",
    "recall ms",
    "floor ms",
    "ratio",
    "goal",
    "first recall ms",
    "recall@20 %",
    "held MB",
)
Figures = dict[str, Any]


def tables(options: argparse.Namespace) -> Iterator[Table]:
    """Load what the store has not, build what is missing, measure."""
    with TemporaryDirectory(prefix="memstore-bench-") as folder:
        place = (options.store or Path(folder)).resolve() / "scale"
        with memstore.open(f"embedded:{place}") as store:
            ensure(store.url, [Made(f"beside-{number}", EACH, seed=number) for number in range(options.beside)])
            rows = []
            for chunks in options.chunks or UNITS:
                user = Made(f"scale-{chunks}", chunks, seed=chunks)
                ensure(store.url, [user])
                rows.append(measured(store.url, user, store.embedder))
                print(rows[-1], file=sys.stderr, flush=True)
            megabytes = sizes(store.url)
    title = "recall(limit=20) of one user against embedding the question and one bare exact statement"
    yield Table(
        "recall", title, COLUMNS, [[f"{row['chunks']:,}", *(row[name] for name in COLUMNS[1:])] for row in rows]
    )
    held = [[name, megabytes[name]] for name in sorted(megabytes)]
    yield Table("megabytes", "What recall reads, of all these users together", ("table or index", "MB"), held)


class Disguised:
    """An embedder that takes the time of a real one (of None: no time) and gives the vectors of made-up questions."""

    name, dimensions, max_tokens = MODEL, DIMENSIONS, 10**6

    def __init__(self, real: Embedder | None, questions: dict[str, Vectors]) -> None:
        self._real, self._questions = real, questions

    def count(self, text: str) -> int:
        """Return the number of words."""
        return len(text.split())

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """Refuse: nothing is derived here."""
        raise NotImplementedError(texts)

    def embed_query(self, text: str) -> Vectors:
        """Return the vector of a question."""
        if self._real is not None:
            self._real.embed_query("Which dessert did I cook for my mother's birthday?")
        return self._questions[text]


def timed(work: Callable[[], object]) -> float:
    """Return the milliseconds that the work takes."""
    start = time.perf_counter()
    work()
    return 1000 * (time.perf_counter() - start)


def ensure(url: str, users: Sequence[Made]) -> None:
    """Load those of the users who are not there."""
    with psycopg.connect(url) as connection:
        there = {name for (name,) in connection.execute("SELECT name FROM users")}
    if missing := [user for user in users if user.name not in there]:
        load(url, missing)


def measured(url: str, user: Made, real: Embedder | None) -> Figures:
    """Return the figures of one user."""
    asked = dict(user.question(number) for number in range(QUESTIONS))
    embedder, model = Disguised(real, asked), ids.model_id(MODEL, DIMENSIONS)
    with closing(Database(url, 2)) as database, psycopg.connect(url, autocommit=True) as connection:
        database.open()
        register_vector(connection)
        connection.prepare_threshold = None
        maintain_indexes(database, user.id)
        filters = chunks.Filters()

        def ours(question: str) -> object:
            return recall(database, user.id, embedder, question, filters=filters, limit=20, min_score=None)

        def floor(question: str) -> list[Any]:
            values = {"user_id": user.id, "model_id": model, "limit": 20, "query": embedder.embed_query(question)}
            return connection.execute(statements("chunks")["nearest"], values).fetchall()

        first, *_ = asked
        embedder.embed_query(first)  # that its model is loaded is not of recall
        cold = timed(partial(ours, first))
        pairs = [(timed(partial(ours, one)), timed(partial(floor, one))) for _ in range(ROUNDS) for one in asked]
        found = [_found(database, user, model, vector, floor(text)) for text, vector in asked.items()]
        arrays = database.cache.get(user.id, model)
    return {
        "chunks": user.chunks,
        "recall ms": round(median(a for a, _ in pairs), 2),
        "floor ms": round(median(b for _, b in pairs), 2),
        "ratio": round(median(a for a, _ in pairs) / median(b for _, b in pairs), 2),
        "goal": GOALS.get(user.chunks),
        "first recall ms": round(cold),
        "recall@20 %": round(100 * float(np.mean(found)), 1),
        "held MB": None if arrays is None else round(arrays.nbytes / 2**20),
    }


def _found(database: Database, user: Made, model: Any, vector: Vectors, exact: list[Any]) -> float:
    """Return the share of the exact nearest that the leg of vectors finds; arrays and scans are exact themselves."""
    with database.user_transaction(user.id) as tx:
        if user.chunks <= database.max_chunks or not vector_indexes.is_ready(tx, model):
            return 1.0
        keys = vector_indexes.nearest(tx, vector, model, 200)
    return len({tuple(key) for key in keys} & {tuple(row[:2]) for row in exact}) / len(exact)


def sizes(url: str) -> Figures:
    """Return the megabytes of what recall reads, all users together."""
    statement = """
        SELECT c.relname, pg_table_size(c.oid) / 2 ^ 20 FROM pg_class c
        WHERE c.relname IN ('item_text', 'item_vectors', 'term_postings')
        UNION ALL
        SELECT CASE WHEN c.relname LIKE 'hnsw%' THEN 'hnsw' ELSE c.relname END, sum(pg_relation_size(c.oid)) / 2 ^ 20
        FROM pg_class c JOIN pg_index i ON i.indexrelid = c.oid
        WHERE i.indrelid IN ('item_text'::regclass, 'item_vectors'::regclass, 'term_postings'::regclass) GROUP BY 1"""
    with psycopg.connect(url) as connection:
        return {name: round(megabytes) for name, megabytes in connection.execute(statement)}
