"""Embedders behind a server: a provider (`openai`, `ollama`) writes an `EmbeddingEndpoint`, and the rest is here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from math import ceil
from typing import Protocol

import numpy as np

from memstore.errors import ProviderError
from memstore.providers import Vectors
from memstore.providers.connections import Retries
from memstore.settings import Settings
from memstore.text import replace_surrogates

BATCH = 32  # texts to a request


class EmbeddingEndpoint(Protocol):
    """One embedding model of one server; raises as a `ChatEndpoint` does."""

    @property
    def service(self) -> str:
        """The server, as errors call it."""

    @property
    def name(self) -> str:
        """The full name; the same one must mean the same vectors."""

    def embed(self, texts: Sequence[str], seconds: float) -> Sequence[Sequence[float]]:
        """Return a vector for each text."""


@dataclass
class ServedEmbedder:
    """An Embedder on a server. Vectors are brought to unit length; a text is preceded by the prefix that is set.

    Tokens are estimated from bytes: chunks are far smaller than any window. Safe to share by threads.
    """

    endpoint: EmbeddingEndpoint
    max_tokens: int = 8191
    timeout: float = 60.0
    query_prefix: str = ""
    document_prefix: str = ""
    backoff: float = 0.5
    _dimensions: int | None = field(default=None, repr=False)

    @classmethod
    def of(cls, endpoint: EmbeddingEndpoint, settings: Settings) -> ServedEmbedder:
        """Return the embedder of an endpoint, with the settings for embedders on servers."""
        return cls(
            endpoint,
            settings.embedding_max_tokens,
            settings.embedding_timeout_seconds,
            settings.embedding_query_prefix,
            settings.embedding_document_prefix,
        )

    @property
    def name(self) -> str:
        """The full name, kept with every stored vector: other prefixes make other vectors."""
        prefixes = "\0".join((self.query_prefix, self.document_prefix))
        marked = f"#{sha256(prefixes.encode()).hexdigest()[:8]}" if prefixes != "\0" else ""
        return f"{self.endpoint.name}{marked}"

    @property
    def dimensions(self) -> int:
        """The number of components of a vector. Asks the server the first time."""
        if self._dimensions is None:
            self._dimensions = len(self._embed(["dimensions"])[0])
        return self._dimensions

    def count(self, text: str) -> int:
        """Return about the number of tokens of a text: one for each three bytes, more than most have."""
        return ceil(len(text.encode("utf-8", "surrogatepass")) / 3)

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """Return the vectors of texts: shape (texts, dimensions), float32, each of length 1."""
        rows = [
            self._embed([self.document_prefix + text for text in texts[start : start + BATCH]])
            for start in range(0, len(texts), BATCH)
        ]
        return np.concatenate(rows) if rows else np.empty((0, self.dimensions), dtype=np.float32)

    def embed_query(self, text: str) -> Vectors:
        """Return the vector of a question: shape (dimensions,), float32, of length 1."""
        vector: Vectors = self._embed([self.query_prefix + text])[0]
        return vector

    def _embed(self, texts: Sequence[str]) -> Vectors:
        # An empty input is refused by most servers, and one beyond the window by some.
        sent = [_head(replace_surrogates(text).replace("\0", " "), 3 * self.max_tokens) or " " for text in texts]
        service = self.endpoint.service
        retries = Retries(service, self.timeout, self.backoff)
        answered = retries.run_in_time(lambda seconds: self.endpoint.embed(sent, seconds))
        try:
            vectors = np.asarray(answered, dtype=np.float32)
        except (TypeError, ValueError, OverflowError):
            vectors = np.empty((0, 0), dtype=np.float32)
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True) if vectors.ndim == 2 else np.zeros(1)
        if vectors.ndim != 2 or len(vectors) != len(texts) or not np.isfinite(lengths).all() or not lengths.all():
            raise ProviderError(f"{service} gave no vector for each of {len(texts)} texts: is {self.name} an embedder?")
        if self._dimensions not in (None, vectors.shape[1]):
            raise ProviderError(
                f"{service} gives vectors of {vectors.shape[1]} dimensions now, {self._dimensions} before."
            )
        return vectors / lengths


def _head(text: str, size: int) -> str:
    """Return the beginning of a text, of so many bytes."""
    return text if len(text) <= size // 4 else text.encode()[:size].decode("utf-8", "ignore")
