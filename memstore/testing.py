"""An embedder without weights, for tests of programs that use memstore: "hashing:256" of the settings."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from hashlib import blake2b

import numpy as np

from memstore.errors import ProviderMissing
from memstore.language import WORD
from memstore.providers import Vectors


def load_embedder(model: str) -> HashingEmbedder:
    """Return the embedder "hashing:MODEL", where MODEL is the number of dimensions; 256 for ""."""
    if model and not (model.isdecimal() and int(model) > 0):
        raise ProviderMissing(f"Write hashing:256, with the number of dimensions for 256; {model!r} is none.")
    return HashingEmbedder(int(model or 256))


class HashingEmbedder:
    """An Embedder without weights: words and their trigrams, hashed into signed buckets.

    Texts that share words are near, those that share roots (walk, walking) less so; meaning counts for nothing. Vectors
    are the same on every machine and in every process. Text beyond the window of 256 words is not read.
    """

    max_tokens = 256

    def __init__(self, dimensions: int = 256) -> None:
        self.dimensions = dimensions
        self.name = f"hashing:{dimensions}"

    def __repr__(self) -> str:
        return f"<HashingEmbedder {self.name}>"

    def count(self, text: str) -> int:
        """Return the number of words."""
        return len(WORD.findall(text))

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """Return the vectors of texts: shape (texts, dimensions), float32, unit length."""
        vectors = np.zeros((len(texts), self.dimensions), dtype=np.float32)
        for vector, text in zip(vectors, texts, strict=True):
            for word in WORD.findall(text.casefold())[: self.max_tokens]:
                for number, weight in _features(word):
                    vector[(number >> 1) % self.dimensions] += weight if number & 1 else -weight
            length = np.linalg.norm(vector)
            if length == 0:  # a text without words, or one whose words cancel out
                vector[0] = 1
            else:
                vector /= length
        return vectors

    def embed_query(self, text: str) -> Vectors:
        """Return the vector of a question, that of the same document: shape (dimensions,), float32, unit length."""
        vector: Vectors = self.embed_documents([text])[0]
        return vector


@lru_cache(maxsize=4096)
def _features(word: str) -> tuple[tuple[int, float], ...]:
    marked = f"<{word}>"
    trigrams = {marked[i : i + 3] for i in range(len(marked) - 2)}
    # A word and all its trigrams weigh 1 each in squares: one shared word counts more than any shared ending.
    return ((_hash(f"w{word}"), 1.0), *((_hash(f"t{part}"), len(trigrams) ** -0.5) for part in sorted(trigrams)))


def _hash(text: str) -> int:
    return int.from_bytes(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big")
