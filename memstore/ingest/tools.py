"""What the derivers work with: the providers and the settings, handed down from `memory.py`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from memstore.providers import Embedder, TokenCounter, Vectors
from memstore.settings import Settings


@dataclass(frozen=True, slots=True)
class Tools:
    """The providers and the settings of the derivers."""

    counter: TokenCounter
    embedder: Embedder | None
    settings: Settings

    def embed(self, texts: list[str]) -> list[Vectors | None]:
        """Give a vector for each text, or None for each where there is no embedder."""
        return [None] * len(texts) if self.embedder is None else list(self.embedder.embed_documents(texts))

    @property
    def unit_count(self) -> Callable[[str], int]:
        """What measures a unit: the embedder's own tokens, because what is beyond its window is not seen."""
        return self.counter.count if self.embedder is None else self.embedder.count

    @property
    def unit_limit(self) -> int:
        """The longest unit, in the tokens of `unit_count`."""
        window = self.embedder.max_tokens if self.embedder else self.settings.unit_tokens
        return min(self.settings.unit_tokens, window)
