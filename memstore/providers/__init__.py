"""What is borrowed: the Protocols of token counters and embedders, and the one door that finds them.

A provider is named "kind:model". Its kind is an entry point of the group `memstore.counters` or `memstore.embedders`,
a function that takes the model's name and gives the provider; the built-in ones come through the same door.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.metadata import entry_points
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from memstore.errors import ProviderMissing

Vectors = NDArray[np.float32]


class TokenCounter(Protocol):
    """Counts tokens exactly, without a network."""

    @property
    def name(self) -> str:
        """The full name, kept with every stored count."""

    def count(self, text: str) -> int:
        """Give the number of tokens of a text; special tokens that it mentions are plain text."""

    def count_message(self, message: Mapping[str, Any]) -> int:
        """Give what one message adds to a chat, its overhead included."""

    def count_messages(self, messages: Sequence[Mapping[str, Any]]) -> int:
        """Give the number of tokens of the finished chat, overhead of messages and of the reply's start included."""


class Embedder(Protocol):
    """Turns texts into vectors of unit length."""

    @property
    def name(self) -> str:
        """The full name, kept with every stored vector: the same name must mean the same vectors."""

    @property
    def dimensions(self) -> int:
        """The number of components of a vector."""

    @property
    def max_tokens(self) -> int:
        """The model's window, in its own tokens without the special ones; what is beyond it is not seen."""

    def count(self, text: str) -> int:
        """Give the number of the model's own tokens of a text, without the special ones."""

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """Give the vectors of texts to be found: shape (texts, dimensions), float32, each of length 1."""

    def embed_query(self, text: str) -> Vectors:
        """Give the vector of a question: shape (dimensions,), float32, of length 1."""


def load_counter(name: str) -> TokenCounter:
    """Give the token counter of this name, such as "tiktoken:o200k_base"."""
    counter: TokenCounter = _load("memstore.counters", name)
    return counter


def load_embedder(name: str) -> Embedder | None:
    """Give the embedder of this name, such as "sentence-transformers:all-MiniLM-L6-v2"; None for "none"."""
    if name == "none":
        return None
    embedder: Embedder = _load("memstore.embedders", name)
    return embedder


def _load(group: str, name: str) -> Any:
    kind, _, model = name.partition(":")
    known = entry_points(group=group)
    if kind not in known.names:
        raise ProviderMissing(
            f"Nobody knows the provider {name!r}: {group} has {', '.join(sorted(known.names))}. "
            "Write it as kind:model, or install the package that brings it."
        )
    return known[kind].load()(model)
