"""The dependencies of derivers: providers and settings."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol
from uuid import UUID

from memstore.derive.llm import CallMeter, LLMSession
from memstore.errors import MemstoreError, ModelUnavailable, ProviderMissing
from memstore.providers import (
    ChatModel,
    Embedder,
    EmbedderLoader,
    TokenCounter,
    Vectors,
    check_vectors,
    embed_texts,
    load_stored_embedder,
)
from memstore.settings import Settings
from memstore.store.rows import EmbeddingModel

logger = logging.getLogger("memstore")


class DeriverTraits(Protocol):
    """How a deriver makes its rows: in batches of which size, with a chat model or without, by which recipe."""

    @property
    def batch_size(self) -> int:
        """How many messages are computed at once."""

    @property
    def uses_llm(self) -> bool:
        """Whether a chat model is asked. If so, one conversation is derived at a time: paid answers are saved soon."""

    @property
    def recipe(self) -> str:
        """Name and version. Rows of another recipe may be rebuilt. May raise `ModelUnavailable`."""


@dataclass(frozen=True, slots=True)
class DerivedBatch:
    """What a deriver made of a batch that ends with the message `to_seq`.

    `llm_session` has its calls of a chat model, if any; `recipe` is None if it is the deriver's. At `closes_at` the
    deriver has to run again even if no message comes. The embedder refused the messages of `without_vector`.
    """

    to_seq: int
    llm_session: LLMSession | None = field(default=None, kw_only=True)
    recipe: str | None = field(default=None, kw_only=True)
    closes_at: datetime | None = field(default=None, kw_only=True)
    without_vector: tuple[UUID, ...] = field(default=(), kw_only=True)


@dataclass(frozen=True, slots=True)
class Dependencies:
    """Providers and settings; `load_by_name` loads the embedder of an active model that the settings do not name."""

    counter: TokenCounter
    embedder: Embedder | None
    settings: Settings
    summary_model: ChatModel | None = None
    facts_model: ChatModel | None = None
    meter: CallMeter = field(default_factory=CallMeter)
    load_by_name: EmbedderLoader = load_stored_embedder

    @property
    def model(self) -> EmbeddingModel | None:
        return None if self.embedder is None else EmbeddingModel.of(self.embedder)

    def start_session(self, model: ChatModel, deriver: str) -> LLMSession:
        return LLMSession(model, self.meter, deriver, self.settings.price_of(deriver))

    def embed(self, texts: list[str]) -> list[Vectors | None]:
        """Return a vector for each text, or None if there is no embedder or it refuses the text.

        Raises `ModelUnavailable` for an error that may pass.
        """
        # There is no text if all messages of a batch were erased.
        if self.embedder is None or not texts:
            return [None] * len(texts)
        try:
            return _embed_accepted(self.embedder, texts)
        except MemstoreError:
            raise
        except Exception as error:  # an application's embedder raises what it likes
            if _is_passing(error):
                raise ModelUnavailable(
                    f"The embedder {self.embedder.name!r} does not answer now ({type(error).__name__}: {error}). What "
                    "is pending waits: derive again once it does."
                ) from error
            raise

    @property
    def count_chunk_tokens(self) -> Callable[[str], int]:
        return self.counter.count if self.embedder is None else self.embedder.count

    @property
    def max_chunk_tokens(self) -> int:
        window = self.embedder.max_tokens if self.embedder else self.settings.chunk_tokens
        return min(self.settings.chunk_tokens, window)


def _embed_accepted(embedder: Embedder, texts: Sequence[str], *, is_retry: bool = False) -> list[Vectors | None]:
    """Return a vector for each text, None for a refused one. Raises the error of an embedder that refuses all."""
    try:
        vectors = embedder.embed_documents(texts)
    except (ModelUnavailable, ProviderMissing):
        raise
    except Exception as error:  # an application's embedder raises what it likes
        failure = error
    else:
        return list(check_vectors(embedder, vectors, (len(texts), embedder.dimensions)))
    if len(texts) > 1:
        half = len(texts) // 2
        return [*_embed_accepted(embedder, texts[:half]), *_embed_accepted(embedder, texts[half:])]
    if not is_retry:
        embed_texts(embedder, ["a text that no embedder refuses"])
        return _embed_accepted(embedder, texts, is_retry=True)
    if _is_passing(failure):
        raise failure
    logger.warning(
        "%s refuses a text of %d characters (%s), which is found by its words alone",
        embedder.name,
        len(texts[0]),
        type(failure).__name__,
    )
    return [None]


def _is_passing(error: BaseException | None) -> bool:
    """Return whether an error or its cause comes from the machine or the network, and not from a text."""
    return error is not None and (
        isinstance(error, OSError | MemoryError) or _is_passing(error.__cause__ or error.__context__)
    )
