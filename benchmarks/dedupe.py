#!/usr/bin/env python3
"""From which cosine two statements are one: precision and recall by threshold, on the pairs of tests/pairs.jsonl.

    benchmarks/dedupe.py [--json FILE]

A pair counts as merged if its cosine reaches the threshold and the details agree (numbers, names, "not"). A pair is
called contradictory as `reconcile` does it. Nothing is random; the encoder is all-MiniLM-L6-v2.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID

import numpy as np
from numpy.typing import NDArray
from report import Cell, Table, reported

os.environ.setdefault("HF_HUB_OFFLINE", "1")

from memstore.derive.facts.reconcile import NEAR, Incoming, Known, reconcile
from memstore.derive.facts.wording import content
from memstore.providers.minilm import load

PAIRS = Path(__file__).parent.parent / "tests" / "pairs.jsonl"
LANGUAGES = ("en", "de", "fr", "es")
THRESHOLDS = (0.80, 0.85, 0.88, 0.90, 0.92, 0.94, 0.95, 0.96, 0.97, 0.98, 0.99)


def tables(pairs: Sequence[dict[str, str]]) -> Iterator[Table]:
    """Give the curve of all pairs, each language at the chosen cosine, and what `reconcile` makes of the labels."""
    encoder = load("")
    a, b = (np.asarray(encoder.embed_documents([pair[side] for pair in pairs])) for side in "ab")
    cosines = (a * b).sum(axis=1)
    same = np.array([pair["label"] == "same" for pair in pairs])
    agree = np.array([content(pair["a"]) == content(pair["b"]) for pair in pairs])
    languages = np.array([pair["language"] for pair in pairs])

    def row(name: str, chosen: NDArray[np.bool_], threshold: float) -> list[Cell]:
        near = chosen & (cosines >= threshold)
        merged = near & agree
        right, bare = (merged & same).sum(), (near & same).sum()
        shares = right / max(1, merged.sum()), right / max(1, (same & chosen).sum()), bare / max(1, near.sum())
        return [name, int(merged.sum()), *(round(100 * float(share), 1) for share in shares)]

    columns = ("merged", "precision", "recall", "precision without details")
    every = np.ones(len(pairs), dtype=np.bool_)
    title = f"{len(pairs)} pairs, {same.sum()} the same, in percent; details agree in {agree.sum()}"
    yield Table("cosines", title, ("cosine", *columns), [row(f"{one:.2f}", every, one) for one in THRESHOLDS])
    by_language = [row(one, languages == one, NEAR) for one in LANGUAGES]
    yield Table("languages", f"By language, at {NEAR}", ("language", *columns), by_language)
    counts = judged(pairs, cosines)
    kinds = sorted({kind for _, kind in counts})
    labels = sorted({label for label, _ in counts})
    yield Table(
        "judged",
        "What `reconcile` makes of pairs, without their slots",
        ("label", *kinds),
        [[label, *(counts[label, kind] for kind in kinds)] for label in labels],
    )


def judged(pairs: Sequence[dict[str, str]], cosines: NDArray[np.float32]) -> Counter[tuple[str, str]]:
    """Give how many pairs of each label `reconcile` judges how, without their slots."""
    at, counts = datetime(2024, 5, 6, tzinfo=UTC), Counter[tuple[str, str]]()
    for pair, cosine in zip(pairs, cosines, strict=True):
        known = Known(UUID(int=1), pair["a"], "identity", "Alice", None, None, at, 0.9, "active", False, float(cosine))
        verdict = reconcile(Incoming(pair["b"], "identity", "Alice", None, at, 0.9, True), [known])
        counts[pair["label"], verdict.kind] += 1
    return counts


def main() -> int:
    """Compare the pairs; print the tables, write them."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--json", type=Path, help="write the figures")
    options = parser.parse_args()
    reported(tables([json.loads(line) for line in PAIRS.read_text(encoding="utf-8").splitlines()]), options.json)
    return 0


if __name__ == "__main__":
    sys.exit(main())
