"""Vectors of known texts, for environments that have no encoder: every system gets the same ones, at no cost.

`VECTORS` names a file of `texts.json` and `vectors.npy`, made by whoever runs the peers. Looking one up costs no time
worth telling, so that what is timed is the system's own work, on all sides.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

VECTORS, DATABASE, FOLDER = "MEMSTORE_BENCHMARK_VECTORS", "MEMSTORE_BENCHMARK_DATABASE", "MEMSTORE_BENCHMARK_FOLDER"


def write(folder: Path, texts: Sequence[str], vectors: Any) -> None:
    """Write texts and their vectors, shape (texts, dimensions)."""
    (folder / "texts.json").write_text(json.dumps(list(texts)), encoding="utf-8")
    np.save(folder / "vectors.npy", vectors)


class Known:
    """Vectors by text, as lists, which is what peers take."""

    def __init__(self) -> None:
        folder = Path(os.environ[VECTORS])
        texts = json.loads((folder / "texts.json").read_text(encoding="utf-8"))
        self.rows = {text.strip(): row for row, text in enumerate(texts)}  # some peers strip what they are given
        self.vectors = np.load(folder / "vectors.npy")
        self.dimensions = int(self.vectors.shape[1])

    def one(self, text: str) -> list[float]:
        found: list[float] = self.vectors[self.rows[text.strip()]].tolist()
        return found

    def many(self, texts: Sequence[str]) -> list[list[float]]:
        return [self.one(text) for text in texts]
