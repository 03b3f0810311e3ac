"""What the derivers work with: the providers and the settings, handed down from `memory/`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache

import numpy as np

from memstore.derive.asked import Allowance
from memstore.errors import ProviderError
from memstore.providers import ChatModel, Embedder, EmbedderLoader, TokenCounter, Vectors, load_stored_embedder
from memstore.providers.batching import BatchingEmbedder
from memstore.settings import Settings


@dataclass(frozen=True, slots=True)
class Resources:
    """The providers and the settings of the derivers; `exactly` loads other embedders, for users whom they serve."""

    counter: TokenCounter
    embedder: Embedder | None
    settings: Settings
    summary_model: ChatModel | None = None
    facts_model: ChatModel | None = None
    allowance: Allowance = field(default_factory=Allowance)
    exactly: EmbedderLoader = load_stored_embedder

    def by(self, name: str, dimensions: int) -> Resources:
        """Give the same with this embedder, which may take seconds to load."""
        return replace(self, embedder=self.exactly(name, dimensions))

    def embed(self, texts: list[str]) -> list[Vectors | None]:
        """Give a vector for each text, or None for each where there is no embedder."""
        if self.embedder is None or not texts:  # all messages of a batch may be erased
            return [None] * len(texts)
        return list(embedded(self.embedder, texts))

    @property
    def unit_count(self) -> Callable[[str], int]:
        """What measures a unit: the embedder's own tokens, because what is beyond its window is not seen."""
        return self.counter.count if self.embedder is None else self.embedder.count

    @property
    def unit_limit(self) -> int:
        """The longest unit, in the tokens of `unit_count`."""
        window = self.embedder.max_tokens if self.embedder else self.settings.chunk_tokens
        return min(self.settings.chunk_tokens, window)


def embedded(embedder: Embedder, texts: Sequence[str]) -> Vectors:
    """Give the vectors; refuse what is not one for each text: stored, it would spoil every later recall unseen."""
    vectors = embedder.embed_documents(texts)
    found, wanted = np.shape(vectors), (len(texts), embedder.dimensions)
    if found != wanted or not np.isfinite(vectors).all():
        raise ProviderError(
            f"The embedder {embedder.name!r} gave vectors of the shape {found} for {wanted}, or numbers that are not "
            "finite. Nothing of them was stored: mend the embedder, then derive again."
        )
    return vectors


def coalesced(resources: Resources) -> Resources:
    """Give the same for many who derive at once: what they ask an embedder at the same time, it is asked together."""

    @cache
    def exactly(name: str, dimensions: int) -> Embedder:
        return BatchingEmbedder(resources.exactly(name, dimensions))

    own = resources.embedder
    return replace(resources, embedder=None if own is None else BatchingEmbedder(own), exactly=exactly)
