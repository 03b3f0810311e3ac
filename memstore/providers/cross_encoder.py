"""Rerankers of sentence-transformers: a question and a text are read together, in this process, without a network."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from memstore.characters import sendable
from memstore.errors import ProviderError, ProviderMissing
from memstore.providers import Scores
from memstore.providers import local_models as models
from memstore.providers.lanes import BATCH, Lanes, by_length
from memstore.providers.local_models import local_model


def load(model: str) -> CrossEncoderReranker:
    """Give the reranker of a folder, or of a model in Hugging Face's cache on this machine, with its options.

    Nothing is downloaded. Raises ProviderMissing for what is not there, ConfigurationError for options that there are
    not, and ProviderError for what cannot be loaded, or has not one score for a pair of texts.
    """
    wanted = local_model(model)
    if not wanted.name:
        raise ProviderMissing("Write cross-encoder:FOLDER, or cross-encoder:NAME of a model that is on this machine.")
    models.load_library()
    # Log-odds, not what a sigmoid makes of them: of fifty texts it would leave a few near 1, and all others near 0.
    loaded = models.load(wanted, "CrossEncoder", activation_fn=importlib.import_module("torch").nn.Identity())
    if loaded.num_labels != 1:
        raise ProviderError(f"{model!r} gives {loaded.num_labels} scores for a pair of texts; a reranker gives one.")
    return CrossEncoderReranker(f"cross-encoder:{wanted}", loaded, alone=wanted.backend != "torch")


class CrossEncoderReranker:
    """A Reranker around a loaded `CrossEncoder`. Safe to share by threads.

    `alone` for a model that computes with threads of its own, and of which there are no copies.
    """

    def __init__(self, name: str, model: Any, *, alone: bool = False) -> None:
        self._name = name
        self._lanes = Lanes(model, alone=alone)

    def __repr__(self) -> str:
        return f"<CrossEncoderReranker {self.name}>"

    @property
    def name(self) -> str:
        """The full name, such as "cross-encoder:/models/ms-marco-MiniLM-L6-v2"."""
        return self._name

    def scores(self, query: str, texts: Sequence[str]) -> Scores:
        """Give the log-odds that each text answers the question: shape (texts,), float32. Of long texts the beginning.

        The same for a text whatever the number of threads; which others are asked about beside it moves the last bits.
        """
        scores = np.empty(len(texts), dtype=np.float32)

        def score(model: Any, places: Sequence[int]) -> None:
            pairs = [(sendable(query), sendable(texts[place])) for place in places]
            scores[places] = model.predict(pairs, batch_size=BATCH, show_progress_bar=False)

        self._lanes.each(score, by_length(texts))
        return scores
