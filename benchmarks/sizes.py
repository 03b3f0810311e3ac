"""Recall as one user's memory grows from a thousand units to a million: `scale.py`, as one of the parts of `run.py`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from report import Table
from scale import COLUMNS, Made, ensure, measured, sizes

import memstore

UNITS, QUESTIONS, ROUNDS = (1_000, 5_000, 50_000, 200_000, 500_000, 1_000_000), 20, 3


def tables(options: argparse.Namespace) -> Iterator[Table]:
    """Load what the store has not, build what is missing, measure."""
    with TemporaryDirectory(prefix="memstore-bench-") as folder:
        place = (options.store or Path(folder)).resolve() / "scale"
        with memstore.open(f"embedded:{place}") as store:
            users = [Made(f"scale-{units}", units, seed=units) for units in options.units or UNITS]
            rows = []
            for user in users:
                ensure(store.url, [user])
                rows.append(measured(store.url, user, store.embedder, QUESTIONS, ROUNDS))
                print(rows[-1], file=sys.stderr, flush=True)
            megabytes = sizes(store.url)
    title = "recall(limit=20) of one user against embedding the question and one bare exact statement"
    yield Table("recall", title, COLUMNS, [[f"{row['units']:,}", *(row[name] for name in COLUMNS[1:])] for row in rows])
    held = [[name, megabytes[name]] for name in sorted(megabytes)]
    yield Table("megabytes", "What recall reads, of all these users together", ("table or index", "MB"), held)
