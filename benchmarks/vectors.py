"""An embedder that keeps what it made in a file: encoding is what costs, and a second run encodes nothing.

The same embedder serves memstore and every system that it is compared with, so no system has better vectors.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from threading import Lock

import numpy as np

import memstore
from memstore.providers import MINILM, Embedder, Vectors, load_embedder
from memstore.settings import ONNX_MINILM

KEY = 16  # bytes of a text's digest


class Kept:
    """An Embedder over another one, which is loaded when a text is new. `save` writes what came since."""

    def __init__(self, file: Path, name: str = MINILM) -> None:
        self.file, self.name = file, name
        self._rows: dict[bytes, int] = {}
        self._blocks: list[Vectors] = []
        self._lock = Lock()
        self._saved = 0
        if file.is_file():
            with np.load(file) as kept:
                self._take((bytes(key) for key in kept["keys"]), kept["vectors"])
            self._saved = len(self._rows)

    @cached_property
    def real(self) -> Embedder:
        """The embedder that makes vectors."""
        found = load_embedder(ONNX_MINILM if self.name == MINILM else self.name)
        assert found is not None
        return found

    @property
    def dimensions(self) -> int:
        return self.real.dimensions

    @property
    def max_tokens(self) -> int:
        return self.real.max_tokens

    def count(self, text: str) -> int:
        return self.real.count(text)

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """Return the vectors of texts, shape (texts, dimensions), as the real embedder does."""
        return self._of([_key("document", text) for text in texts], texts, self.real.embed_documents)

    def embed_query(self, text: str) -> Vectors:
        """Return the vector of a question, shape (dimensions,)."""
        return self._of([_key("query", text)], [text], lambda new: self.real.embed_query(new[0])[None])[0]

    def know(self, text: str, vector: Vectors) -> None:
        """Take in the vector of a text to be found, made elsewhere."""
        if (key := _key("document", text)) not in self._rows:
            self._take([key], vector[None])

    def _of(self, keys: list[bytes], texts: Sequence[str], embed: object) -> Vectors:
        with self._lock:  # derivers ask at the same time
            new = {key: text for key, text in zip(keys, texts, strict=True) if key not in self._rows}
            if new:
                self._take(new, embed(list(new.values())))  # type: ignore[operator]
            every = self._every
            return every[[self._rows[key] for key in keys]]

    def _take(self, keys: Iterable[bytes], vectors: Vectors) -> None:
        for key in keys:
            self._rows[key] = len(self._rows)
        self._blocks.append(vectors)

    @property
    def _every(self) -> Vectors:
        if len(self._blocks) > 1:
            self._blocks = [np.concatenate(self._blocks)]
        return self._blocks[0] if self._blocks else np.empty((0, self.dimensions), dtype=np.float32)

    def save(self) -> None:
        """Write the file anew, if there is anything new; who is killed meanwhile leaves the old one."""
        if len(self._rows) == self._saved:
            return
        self.file.parent.mkdir(parents=True, exist_ok=True)
        keys = np.frombuffer(b"".join(self._rows), dtype=np.uint8).reshape(-1, KEY)
        new = self.file.with_suffix(f".{os.getpid()}.npz")
        np.savez(new, keys=keys, vectors=self._every)
        new.replace(self.file)
        self._saved = len(self._rows)


def _key(kind: str, text: str) -> bytes:
    return blake2b(f"{kind}\0{text}".encode("utf-8", "surrogatepass"), digest_size=KEY).digest()


def use(store: memstore.MemoryStore, embedder: Embedder) -> None:
    """Have a store embed with this one from now on."""
    store._runtime.embedder = embedder  # type: ignore[misc]
