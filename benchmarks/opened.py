"""The store that a benchmark works on: filled and derived where it is not yet, with its vectors."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter

from vectors import Kept, use

import memstore
from memstore import MemoryStore
from memstore._sync.derive.pipeline import DeriveScope, derive
from memstore.derive.dependencies import Dependencies

EVERY = ("chunks", "summaries", "facts")


def settings(options: argparse.Namespace) -> dict[str, object]:
    """Return the settings of every store that is asked: the models in addition to the embedder, and no receipts.

    A receipt that is kept would make the next question slower.
    """
    return {"receipt_retention_days": 0, "reranker": options.reranker}


@contextmanager
def opened(
    options: argparse.Namespace, name: str, history: Path, derivers: tuple[str, ...] = EVERY
) -> Iterator[tuple[MemoryStore, Kept]]:
    """Return a store that holds a file of history, and its embedder. A file that is in it already is not read again.

    `--store` names the folder for stores, `--cache` the one for vectors; each has one for every `name`.
    """
    embedder = Kept(options.cache / f"vectors-{name}.npz")
    with tempfile.TemporaryDirectory(prefix="memstore-bench-") as folder:
        place = (options.store or Path(folder)).resolve() / name
        with memstore.open(f"embedded:{place}", settings=settings(options)) as store:
            use(store, embedder)
            begun = perf_counter()
            store.import_file(history)
            resources = Dependencies(store.counter, embedder, store.settings)
            report = derive(store._database, resources, DeriveScope(derivers=derivers), progress=_told)
            assert not report.failed, report.failed
            embedder.save()
            print(f"\nin the store after {perf_counter() - begun:,.0f} s: {store.stats()}", file=sys.stderr, flush=True)
            try:
                yield store, embedder
            finally:
                embedder.save()


def _told(deriver: str, done: int, total: int) -> None:
    print(f"\r{deriver}: {done:,} of {total:,} ", end="", file=sys.stderr, flush=True)
