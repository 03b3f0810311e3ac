"""Rerankers of sentence-transformers: a question and a text are read together, in this process, without a network."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from memstore.errors import ProviderError, ProviderMissing
from memstore.providers import Scores
from memstore.providers.batching import BatchWorkers, by_length
from memstore.providers.sentence_transformers import BATCH, load_model
from memstore.text import replace_surrogates


def load(model: str) -> CrossEncoderReranker:
    """Return the reranker of a folder, or of a model in Hugging Face's cache on this machine; downloads nothing."""
    if not model:
        raise ProviderMissing("Write cross-encoder:FOLDER, or cross-encoder:NAME of a model that is on this machine.")
    loaded = load_model(model, "CrossEncoder")
    if loaded.num_labels != 1:
        raise ProviderError(f"{model!r} gives {loaded.num_labels} scores for a pair of texts; a reranker gives one.")
    return CrossEncoderReranker(f"cross-encoder:{model}", loaded)


class CrossEncoderReranker:
    """A Reranker around a loaded `CrossEncoder`. Safe to share by threads, which take turns batch by batch."""

    def __init__(self, name: str, model: Any) -> None:
        self.name = name
        self._model = model
        self._worker = BatchWorkers(1)

    def __repr__(self) -> str:
        return f"<CrossEncoderReranker {self.name}>"

    def scores(self, query: str, texts: Sequence[str]) -> Scores:
        """Return the log-odds that each text answers the question. Of long texts the beginning is read."""
        scores = np.empty(len(texts), dtype=np.float32)
        pairs = [(replace_surrogates(query), replace_surrogates(text)) for text in texts]
        self._worker.fill(scores, self._score, pairs, by_length(list(map(len, texts)), BATCH))
        return scores

    def _score(self, pairs: list[tuple[str, str]]) -> Scores:
        # Log-odds, not what a sigmoid makes of them: of fifty texts it would leave a few near 1, all others near 0.
        scores: Scores = self._model.predict(pairs, batch_size=BATCH, activation_fn=_unchanged, show_progress_bar=False)
        return scores


def _unchanged(scores: Any) -> Any:
    return scores
