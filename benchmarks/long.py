"""One conversation of 5.8 million tokens (a prefix of BEAM's 10M): taken in, derived, and asked, in one process.

Throughput is measured against the bare encoder: the seconds that were spent inside it while the units of recall were
made are what the encoder alone would have taken, on the same machine in the same minute. Nothing is looked up.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from time import perf_counter

import data
import numpy as np
import psycopg
from memory import Watched
from pgvector.psycopg import register_vector
from rankings import Rankings
from report import Cell, Table
from vectors import Kept, use

import memstore
from memstore import MemoryStore, ids
from memstore._sync.ingest.derive import Part, derive
from memstore.ingest.embed import units
from memstore.ingest.resources import Resources
from memstore.providers import Embedder, Vectors, load_embedder

NAME = "beam-10M-dev"
BUDGETS = (1000, 2000, 4000, 8000)
DERIVERS = ("embed", "summarize", "facts")
ROUNDS = 5


class Timed:
    """An embedder that adds up the seconds that it works, and the texts that it was given."""

    def __init__(self, real: Embedder) -> None:
        self.real = real
        self.name, self.dimensions, self.max_tokens = real.name, real.dimensions, real.max_tokens
        self.count, self.embed_query = real.count, real.embed_query
        self.seconds, self.texts = 0.0, 0

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        begun = perf_counter()
        vectors = self.real.embed_documents(texts)
        self.seconds, self.texts = self.seconds + perf_counter() - begun, self.texts + len(texts)
        return vectors


def tables(options: argparse.Namespace) -> Iterator[Table]:
    """Take in and derive what the store has not yet, then ask."""
    history, asked = data.file(options.data, NAME), data.questions(options.data, NAME)
    with tempfile.TemporaryDirectory(prefix="memstore-bench-") as folder:
        place = (options.store or Path(folder)).resolve() / "beam-10M"
        with memstore.open(f"embedded:{place}", settings={"receipts_days": 0}) as store, Watched(place) as watched:
            made = _filled(store, history, asked[0].user)
            yield Table("ingest-10M", "A conversation of 5.8 million tokens, in and derived", COLUMNS, made)
            yield _size(store, watched, _asked(store, asked))
            embedder = Kept(options.cache / "vectors-beam-10M.npz")
            _read_vectors(store, asked[0].user, embedder)
            use(store, embedder)
            ranked = Rankings(store, embedder).measure(asked, BUDGETS)
            embedder.save()
    yield ranked.table("recall-10M", "Evidence recall in percent within so many tokens")


COLUMNS = ("step", "seconds", "of which in the encoder", "texts encoded", "share of the bare encoder's throughput")


def _filled(store: MemoryStore, history: Path, user: str) -> list[list[Cell]]:
    """Give a row for each step; of what was there already the seconds of looking are left."""
    begun = perf_counter()
    store.import_file(history)
    rows: list[list[Cell]] = [["messages added", round(perf_counter() - begun, 1), None, None, None]]
    real = load_embedder(store.settings.embedder)
    assert real is not None
    for name in DERIVERS:
        timed = Timed(real)
        use(store, timed)
        begun = perf_counter()
        resources = Resources(store.counter, timed, store.settings)
        report = derive(store._database, resources, Part(ids.user_id(user), derivers=(name,)), progress=_told)
        assert not report.failed, report.failed
        seconds = perf_counter() - begun
        rows.append(_row(name, seconds, timed))
        print(f"\n{rows[-1]}", file=sys.stderr, flush=True)
    return rows


def _row(name: str, seconds: float, timed: Timed) -> list[Cell]:
    share = round(timed.seconds / seconds, 2) if timed.texts else None
    return [name, round(seconds, 1), round(timed.seconds, 1), timed.texts, share]


def _asked(store: MemoryStore, questions: Sequence[data.Question]) -> list[float]:
    """Give the seconds of each recall, the first of all first; contexts are made too, as their memory counts."""
    found = []
    for n in range(ROUNDS):
        for question in questions:
            scope = store.user(question.user)
            begun = perf_counter()
            scope.recall(question.text)
            found.append(perf_counter() - begun)
            if n == 0:
                scope.conversation(question.user).context(question.text, budget=4000)
    return found


def _read_vectors(store: MemoryStore, user: str, embedder: Kept) -> None:
    """Take the vectors of a user's messages from the store: for the baselines, too, nothing is encoded twice."""
    resources = Resources(store.counter, embedder, store.settings)
    with psycopg.connect(store.url, prepare_threshold=None) as connection:
        register_vector(connection)
        rows = connection.execute(
            "SELECT item_id, chunk, embedding FROM item_vectors WHERE user_id = %s", [ids.user_id(user)]
        )
        vectors = {(item, chunk): np.asarray(vector, dtype=np.float32) for item, chunk, vector in rows}
    for message in store.user(user).conversation(user).messages():
        for unit, said in units(message, resources):
            embedder.know(said, vectors[unit.item_id, unit.chunk])


def _size(store: MemoryStore, watched: Watched, recalls: Sequence[float]) -> Table:
    stats, later = store.stats(), sorted(recalls[1:])
    rows: list[list[Cell]] = [
        *([name, stats[name]] for name in ("messages", "units", "summaries", "facts")),
        ["peak of all processes but Postgres' shared buffers, GB", round(watched.peak, 2)],
        ["of which this process, GB", round(watched.own, 2)],
        ["first recall, ms", round(1000 * recalls[0], 1)],
        ["recall, p50, ms", round(1000 * later[len(later) // 2], 1)],
        ["recall, the slowest, ms", round(1000 * later[-1], 1)],
    ]
    return Table("size-10M", "The same conversation, asked", ("", "figure"), rows)


def _told(deriver: str, done: int, total: int) -> None:
    print(f"\r{deriver}: {done:,} of {total:,} ", end="", file=sys.stderr, flush=True)
