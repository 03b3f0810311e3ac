"""LoCoMo: two named people over months; evidence recall of rankings, and through `context()`."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

import contexts
import data
from evidence import ADVERSARIAL, BY_DAY
from opened import opened
from rankings import OURS, Rankings
from report import Table

NAME = "locomo-dev"
BUDGETS = (500, 1000, 2000, 4000)
CONTEXTS = (2000, 4000, 6000, 8000)


def tables(options: argparse.Namespace) -> Iterator[Table]:
    """Import, derive, ask."""
    asked = data.questions(options.data, NAME)
    with opened(options, "locomo", data.file(options.data, NAME)) as (store, embedder):
        ranked = Rankings(store, embedder).measure(asked, BUDGETS)
        told = contexts.measure(store, asked, CONTEXTS)
    yield ranked.table(
        "recall", "LoCoMo, evidence recall in percent within so many tokens, all but adversarial questions"
    )
    yield ranked.table("recall-by-day", f"LoCoMo, {BY_DAY}", by_day=True)
    yield ranked.by_category("categories", "memstore by category", OURS)
    yield ranked.of_category("adversarial", "Adversarial questions, every system", ADVERSARIAL)
    yield told.table("contexts", "Evidence in `context()` of so many tokens, all but adversarial questions, in percent")
    yield told.by_category("context-categories", "Verbatim in `context()`, by category", contexts.VERBATIM)
