"""One user's messages as the pieces that every system ranks: whole, or cut as memstore cuts long ones."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

import numpy as np
from evidence import Piece
from numpy.typing import NDArray

from memstore import Hit, MemoryStore
from memstore.derive.chunks import Chunker
from memstore.derive.dependencies import Dependencies
from memstore.providers import Embedder, Vectors


@dataclass(frozen=True)
class Chunk:
    """A message or a chunk of one; `said` is "Alice: …", what is embedded."""

    message: str
    role: str
    at: datetime
    said: str

    @cached_property
    def piece(self) -> Piece:
        """The chunk as it is packed."""
        return Piece.of(self.message, self.at, self.said)


@dataclass(frozen=True)
class Corpus:
    """A user's chunks in the order in which they were said, with their vectors, shape (chunks, dimensions)."""

    user: str
    chunks: list[Chunk]
    vectors: Vectors
    names: dict[str, str]  # of messages: external ids by memstore's own

    def pieces(self, rows: Iterable[int]) -> Iterator[Piece]:
        """Return the pieces of these rows, as they are asked for: a budget is full long before a ranking ends."""
        return (self.chunks[row].piece for row in rows)

    def of_hits(self, hits: Iterable[Hit]) -> list[Piece]:
        """Return the pieces that memstore found, which are messages or chunks of them."""
        return [Piece.of(self.names[str(hit.id)], hit.occurred_at, f"{hit.speaker}: {hit.text}") for hit in hits]

    @cached_property
    def by_user(self) -> NDArray[np.intp]:
        """The rows of user messages."""
        return np.array([row for row, chunk in enumerate(self.chunks) if chunk.role == "user"], dtype=np.intp)


def corpus(store: MemoryStore, user: str, embedder: Embedder) -> Corpus:
    """Cut and embed the messages of a user's one conversation, which has the user's name."""
    cutter = Chunker(Dependencies(store.counter, embedder, store.settings))
    found = store.user(user).conversation(user).messages()
    made = [
        Chunk(str(one.external_id), one.role, one.occurred_at, said) for one in found for _, said in cutter.chunks(one)
    ]
    vectors = embedder.embed_documents([chunk.said for chunk in made])
    return Corpus(user, made, vectors, {str(one.id): str(one.external_id) for one in found})
