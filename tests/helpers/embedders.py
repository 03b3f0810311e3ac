"""Embedders of one dimension whose spaces differ: vectors of two of them, compared, mean nothing, and it shows.

Each is the hashing embedder with its components in an order of its own and with signs of its own. Among themselves they
have the cosines of the hashing embedder, so whatever is recalled must be as it was; of two different ones the cosine of
a text with itself is about 0.
"""

import os
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from memstore.providers import Vectors
from memstore.testing import HashingEmbedder

SECONDS = "TURNED_SECONDS"  # the variable that says how long a call for documents takes


class TurnedEmbedder(HashingEmbedder):
    """`asked` are the texts of each call for documents, `questions` those that were asked."""

    def __init__(self, seed: int) -> None:
        super().__init__(256)
        chance = np.random.default_rng(seed)
        self.name = f"turned:{seed}"
        self._order = chance.permutation(self.dimensions)
        self._signs = chance.choice(np.array([-1, 1], dtype=np.float32), self.dimensions)
        self.asked: list[list[str]] = []
        self.questions: list[str] = []

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        self.asked.append(list(texts))
        time.sleep(float(os.environ.get(SECONDS, "0")))
        return self._turned(texts)

    def embed_query(self, text: str) -> Vectors:
        self.questions.append(text)
        vector: Vectors = self._turned([text])[0]
        return vector

    def straight(self, vector: Vectors) -> Vectors:
        """Give the vector of the hashing embedder for one of this."""
        found = np.empty_like(vector)
        found[self._order] = vector * self._signs
        return found

    def _turned(self, texts: Sequence[str]) -> Vectors:
        return np.ascontiguousarray(super().embed_documents(texts)[:, self._order] * self._signs)


def load(model: str) -> TurnedEmbedder:
    return TurnedEmbedder(int(model))


def install(folder: Path) -> str:
    """Make a folder that, on the path, brings the kind "turned"."""
    place = folder / "turned-1.dist-info"
    place.mkdir()
    (place / "METADATA").write_text("Metadata-Version: 2.1\nName: turned\nVersion: 1\n")
    (place / "entry_points.txt").write_text("[memstore.embedders]\nturned = tests.helpers.embedders:load\n")
    return str(folder)
