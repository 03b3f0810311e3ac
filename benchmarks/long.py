"""One conversation of 5.8 million tokens (a prefix of BEAM's 10M): taken in, derived, and asked, in one process.

The time of each step, the part of the encoder, and the memory are kept with the store; a run that is cut off goes on
where it was.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from time import perf_counter

import data
import numpy as np
import psycopg
from memory import Watched
from opened import settings
from pgvector.psycopg import register_vector
from rankings import Rankings
from report import Cell, Table
from vectors import Kept, use

import memstore
from memstore import MemoryStore, ids
from memstore._sync.derive.pipeline import DeriveScope, derive
from memstore.derive.chunks import Chunker
from memstore.derive.dependencies import Dependencies
from memstore.providers import Embedder, Vectors, load_embedder

NAME = "beam-10M-dev"
BUDGETS = (1000, 2000, 4000, 8000)
ROUNDS = 5


class Timed:
    """An embedder that adds up the seconds that it works."""

    def __init__(self, real: Embedder) -> None:
        self.real = real
        self.name, self.dimensions, self.max_tokens = real.name, real.dimensions, real.max_tokens
        self.count, self.embed_query = real.count, real.embed_query
        self.texts, self.seconds = 0, 0.0

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        begun = perf_counter()
        vectors = self.real.embed_documents(texts)
        self.seconds, self.texts = self.seconds + perf_counter() - begun, self.texts + len(texts)
        return vectors


def tables(options: argparse.Namespace) -> Iterator[Table]:
    """Take in and derive what the store has not yet, then ask."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # ends the step that is at work, not the run
    history, asked = data.file(options.data, NAME), data.questions(options.data, NAME)
    with tempfile.TemporaryDirectory(prefix="memstore-bench-") as folder:
        place = (options.store or Path(folder)).resolve() / "beam-10M"
        with memstore.open(f"embedded:{place}", settings=settings(options)) as store, Watched(place) as watched:
            made = _filled(
                store, history, DeriveScope(ids.user_id(asked[0].user), derivers=options.derivers), _steps(place)
            )
            yield Table(
                "ingest-10M", "A conversation of 5.8 million tokens, in and derived", COLUMNS, [*made, whole(made)]
            )
            recalls = _asked(store, asked)
            yield _size(store, _peaks(watched, place), recalls)
            embedder = Kept(options.cache / "vectors-beam-10M.npz")
            _read_vectors(store, asked[0].user, embedder)
            use(store, embedder)
            ranked = Rankings(store, embedder).measure(asked, BUDGETS)
            embedder.save()
    yield ranked.table("recall-10M", "Evidence recall in percent within so many tokens")


COLUMNS = ("step", "seconds", "of which in the encoder", "texts encoded", "times the encoding of the chunks")


def _steps(place: Path) -> Path:
    return place.with_name(f"{place.name}-steps.json")


def _filled(store: MemoryStore, history: Path, part: DeriveScope, kept: Path) -> list[list[Cell]]:
    """Return a row for each step; of what was there already, the row that was kept then."""
    rows: list[list[Cell]] = json.loads(kept.read_text()) if kept.is_file() else []
    real = load_embedder(store.settings.embedder)
    assert real is not None
    steps = [partial(_imported, store, history)]
    steps += [partial(_derived, store, replace(part, derivers=(name,)), real) for name in part.derivers]
    for step in steps:
        if row := step():
            rows.append(row)
            print(f"\n{row}", file=sys.stderr, flush=True)
            kept.write_text(json.dumps(rows))
    return rows


def whole(rows: Sequence[list[Cell]]) -> list[Cell]:
    """Return the row of all steps, and how many times the encoding of the chunks it took."""
    seconds, encoding, texts = (sum(float(row[place] or 0) for row in rows) for place in (1, 2, 3))
    chunks = next((float(row[2] or 0) for row in rows if str(row[0]).startswith("chunks")), 0.0)
    return [
        "all of it",
        round(seconds, 1),
        round(encoding, 1),
        int(texts),
        round(seconds / chunks, 2) if chunks else None,
    ]


def _imported(store: MemoryStore, history: Path) -> list[Cell] | None:
    begun = perf_counter()
    added = store.import_file(history).new
    return [f"{added:,} messages added", round(perf_counter() - begun, 1), None, None, None] if added else None


def _derived(store: MemoryStore, part: DeriveScope, real: Embedder) -> list[Cell] | None:
    """Derive what is pending; give its row, of a run that is broken off too: what it made stays made."""
    timed, done = Timed(real), 0

    def told(deriver: str, so_far: int, total: int) -> None:
        nonlocal done
        done = so_far
        print(f"\r{deriver}: {done:,} of {total:,} ", end="", file=sys.stderr, flush=True)

    use(store, timed)
    begun = perf_counter()
    try:
        report = derive(store._database, Dependencies(store.counter, timed, store.settings), part, progress=told)
        assert not report.failed, report.failed
    except KeyboardInterrupt:
        print("\nbroken off: the rest is left for the next run", file=sys.stderr, flush=True)
    seconds = perf_counter() - begun
    if not done:
        return None
    name = f"{part.derivers[0]}, {done:,} messages"
    return [name, round(seconds, 1), round(timed.seconds, 1), timed.texts, None]


def _asked(store: MemoryStore, questions: Sequence[data.Question]) -> list[float]:
    """Return the seconds of each recall, the first of all first; contexts are made too, as their memory counts."""
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
    """Take the vectors of a user's messages from the store: for the baselines, too, nothing is encoded twice.

    But for messages that were cut otherwise when the store was made, by a recipe of before.
    """
    cutter = Chunker(Dependencies(store.counter, embedder, store.settings))
    with psycopg.connect(store.url, prepare_threshold=None) as connection:
        register_vector(connection)
        rows = connection.execute(
            "SELECT item_id, chunk_index, embedding FROM item_vectors WHERE user_id = %s", [ids.user_id(user)]
        )
        vectors = {(item, chunk): np.asarray(vector.to_numpy(), dtype=np.float32) for item, chunk, vector in rows}
    made = Counter(item for item, _ in vectors)
    for message in store.user(user).conversation(user).messages():
        now = cutter.chunks(message)
        if len(now) == made[message.id]:
            for chunk, said in now:
                embedder.know(said, vectors[chunk.item_id, chunk.chunk_index])


def _peaks(watched: Watched, place: Path) -> list[float]:
    """Return the most memory that all processes and this one had, in GB, of any run on the store so far."""
    kept = place.with_name(f"{place.name}-peaks.json")
    before = json.loads(kept.read_text()) if kept.is_file() else [0.0, 0.0]
    peaks = [max(pair) for pair in zip(before, (watched.peak, watched.own), strict=True)]
    kept.write_text(json.dumps(peaks))
    return peaks


def _size(store: MemoryStore, peaks: Sequence[float], recalls: Sequence[float]) -> Table:
    stats, later = store.stats(), sorted(recalls[1:])
    rows: list[list[Cell]] = [
        *([name, stats[name]] for name in ("messages", "chunks", "summaries", "facts")),
        ["peak of all processes but Postgres' shared buffers, GB", round(peaks[0], 2)],
        ["of which this process, GB", round(peaks[1], 2)],
        ["first recall, ms", round(1000 * recalls[0], 1)],
        ["recall, p50, ms", round(1000 * later[len(later) // 2], 1)],
        ["recall, the slowest, ms", round(1000 * later[-1], 1)],
    ]
    return Table("size-10M", "The same conversation, asked", ("", "figure"), rows)
