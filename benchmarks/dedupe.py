"""From which cosine two statements are one: precision and recall by threshold, on the pairs of tests/pairs.jsonl.

    python benchmarks/dedupe.py

A pair counts as merged if its cosine reaches the threshold and the details agree (numbers, names, "not"). A pair is
called contradictory as `reconcile` does it. Nothing is random; the encoder is all-MiniLM-L6-v2.
"""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID

import numpy as np

os.environ.setdefault("HF_HUB_OFFLINE", "1")

from memstore.ingest.facts.reconcile import Incoming, Known, reconcile
from memstore.ingest.facts.wording import content
from memstore.providers.sentence_transformers import load

PAIRS = Path(__file__).parent.parent / "tests" / "pairs.jsonl"
THRESHOLDS = (0.80, 0.85, 0.88, 0.90, 0.92, 0.94, 0.95, 0.96, 0.97, 0.98, 0.99)


def main() -> None:
    pairs = [json.loads(line) for line in PAIRS.read_text().splitlines()]
    encoder = load("")
    a, b = (np.asarray(encoder.embed_documents([pair[side] for pair in pairs])) for side in "ab")
    cosines = (a * b).sum(axis=1)
    same = np.array([pair["label"] == "same" for pair in pairs])
    agree = np.array([content(pair["a"]) == content(pair["b"]) for pair in pairs])
    languages = np.array([pair["language"] for pair in pairs])
    print(f"{len(pairs)} pairs, {same.sum()} the same; details agree in {agree.sum()}\n")
    for name, chosen in [("all", languages != ""), *((one, languages == one) for one in ("en", "de", "fr", "es"))]:
        print(f"| {name} | merged | precision | recall | precision without details |\n|---|---|---|---|---|")
        for threshold in THRESHOLDS:
            near = chosen & (cosines >= threshold)
            merged = near & agree
            right, bare = (merged & same).sum(), (near & same).sum()
            print(
                f"| {threshold:.2f} | {merged.sum()} | {right / max(1, merged.sum()):.2f}"
                f" | {right / max(1, (same & chosen).sum()):.2f} | {bare / max(1, near.sum()):.2f} |"
            )
        print()
    _conflicts(pairs, cosines)
    for pair, cosine, agrees in zip(pairs, cosines, agree, strict=True):
        if cosine >= 0.9 and agrees and pair["label"] != "same":
            print(f"wrongly near: {cosine:.3f} {pair['label']}: {pair['a']} / {pair['b']}")


def _conflicts(pairs: list[dict[str, str]], cosines: np.ndarray) -> None:
    """Print how many pairs of each label `reconcile` judges how, without their slots."""
    at, counts = datetime(2024, 5, 6, tzinfo=UTC), {}
    for pair, cosine in zip(pairs, cosines, strict=True):
        known = Known(UUID(int=1), pair["a"], "identity", "Alice", None, None, at, 0.9, "active", False, float(cosine))
        verdict = reconcile(Incoming(pair["b"], "identity", "Alice", None, at, 0.9, True), [known])
        counts[pair["label"], verdict.kind] = counts.get((pair["label"], verdict.kind), 0) + 1
    for (label, kind), count in sorted(counts.items()):
        print(f"{label:14} judged {kind:9} {count}")


if __name__ == "__main__":
    main()
