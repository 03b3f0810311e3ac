"""BEAM: a user and an assistant over 100 thousand to a million tokens; the same configuration as everywhere."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import contexts
import data
import long
from evidence import BY_DAY
from opened import opened
from rankings import OURS, Rankings
from report import Table

BUDGETS = (1000, 2000, 4000)
DERIVERS = ("chunks",)  # recall among messages looks at nothing else, and summaries would encode all of it again
# The conversations of each size, by number; all where none are given. Larger ones are many of a kind.
SIZES: dict[str, tuple[int, ...]] = {"100K": (), "500K": (1, 3, 5, 7), "1M": (3, 31), "10M": ()}


def tables(options: argparse.Namespace) -> Iterator[Table]:
    """Measure each size; rows that a store has already are not made again."""
    for size in options.sizes:
        yield from long.tables(options) if size == "10M" else _of_size(options, size)


def _of_size(options: argparse.Namespace, size: str) -> Iterator[Table]:
    name = f"beam-{size}-dev"
    numbers = SIZES[size]
    asked = [
        one for one in data.questions(options.data, name) if not numbers or int(one.user.rpartition("-")[2]) in numbers
    ]
    with TemporaryDirectory() as folder:
        history = data.part(options.data, name, frozenset(one.user for one in asked), Path(folder))
        with opened(options, f"beam-{size}", history, DERIVERS) as (store, embedder):
            ranked = Rankings(store, embedder).measure(asked, BUDGETS)
            in_contexts = contexts.measure(store, asked, BUDGETS)
    of = f"conversation{'s' if len({one.user for one in asked}) > 1 else ''} of {size} tokens"
    yield ranked.table(f"recall-{size}", f"BEAM, {of}: evidence recall in percent within so many tokens")
    yield ranked.table(f"recall-by-day-{size}", f"BEAM, {of}: {BY_DAY}", by_day=True)
    yield ranked.by_category(f"categories-{size}", f"BEAM, {of}: memstore by category", OURS)
    title = f"BEAM, {of}: messages of which a chunk is in the context of so many tokens, by category"
    yield in_contexts.by_category(f"contexts-{size}", title, contexts.QUOTED)
