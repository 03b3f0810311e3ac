"""Any model of sentence-transformers as an embedder, on the CPU or a GPU, without a network."""

from __future__ import annotations

import importlib
import threading
from collections.abc import Callable, Sequence
from functools import partial
from math import isfinite
from typing import Any

import numpy as np

from memstore.errors import ProviderMissing
from memstore.providers import Vectors, local_models
from memstore.providers.batches import Workers
from memstore.text import replace_surrogates

BATCH = 32  # texts
ENDLESS = 1_000_000  # tokens: the window of a model that has none, such as a static one


def load(model: str) -> SentenceTransformerEmbedder:
    """Return the embedder of a folder, or of a model in Hugging Face's cache on this machine.

    "all-MiniLM-L6-v2" is the model that memstore has, here computed by torch, on a GPU where there is one. Importing
    torch takes seconds. Nothing is downloaded: raises ProviderMissing for a model that is not on this machine and for
    the missing extra, ProviderError for a model that cannot be loaded.
    """
    if not model:
        raise ProviderMissing("Name the model: sentence-transformers:FOLDER, or sentence-transformers:NAME.")
    return SentenceTransformerEmbedder(
        f"sentence-transformers:{model}", local_models.load(model, "SentenceTransformer")
    )


class SentenceTransformerEmbedder:
    """An Embedder around a loaded `SentenceTransformer`. Safe to share by threads, which take turns batch by batch."""

    def __init__(self, name: str, model: Any) -> None:
        self.name = name
        self.dimensions = int(model.get_embedding_dimension())
        self.max_tokens = _window(model)
        self._model = model
        self._turns = Workers(1)  # torch computes with threads of its own, and a tokenizer is for one thread at a time
        self._counter = _counter(model.tokenizer)

    def __repr__(self) -> str:
        return f"<SentenceTransformerEmbedder {self.name}>"

    def count(self, text: str) -> int:
        """Return the number of the model's own tokens, without the special ones and without the window's limit."""
        return self._counter(text)

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """Return the vectors of texts: shape (texts, dimensions), float32, unit length."""
        texts = [replace_surrogates(text) for text in texts]
        vectors = np.empty((len(texts), self.dimensions), dtype=np.float32)
        encode = partial(_encoded, self._model.encode_document)
        self._turns.fill(vectors, encode, texts, [len(text) for text in texts], BATCH)
        return vectors

    def embed_query(self, text: str) -> Vectors:
        """Return the vector of a question: shape (dimensions,), float32, unit length."""
        [found] = self._turns.run(lambda query: _encoded(self._model.encode_query, [query]), [replace_surrogates(text)])
        return np.ascontiguousarray(found[0])


def _encoded(encode: Callable[..., Any], texts: list[str]) -> Vectors:
    made = encode(texts, batch_size=BATCH, normalize_embeddings=True, convert_to_numpy=True, show_progress_bar=False)
    vectors = np.asarray(made, dtype=np.float32)
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    # What a static model knows no token of is far from everything, and no division by 0.
    vectors[lengths[:, 0] == 0, 0] = 1
    rough = np.abs(lengths[:, 0] - 1) > 1e-5  # normalized in 16 bits
    vectors[rough] /= np.linalg.norm(vectors[rough], axis=1, keepdims=True)
    return vectors


def _window(model: Any) -> int:
    """Return the tokens that a model sees, but for the special ones."""
    window = model.max_seq_length or getattr(model.tokenizer, "model_max_length", ENDLESS)
    if not isfinite(window) or window > ENDLESS:
        return ENDLESS
    return int(window) - int(model.tokenizer.num_special_tokens_to_add())


def _counter(tokenizer: Any) -> Callable[[str], int]:
    tokenizers = importlib.import_module("tokenizers")
    fast = tokenizer if isinstance(tokenizer, tokenizers.Tokenizer) else getattr(tokenizer, "backend_tokenizer", None)
    if fast is not None:
        # A copy: encoding switches truncation on in the original, and a text of 300 tokens would count 256.
        own = tokenizers.Tokenizer.from_str(fast.to_str())
        own.no_truncation()
        own.no_padding()
        return lambda text: len(own.encode(replace_surrogates(text), add_special_tokens=False))
    turn = threading.Lock()

    def count_slowly(text: str) -> int:
        with turn:
            return len(
                tokenizer.encode(replace_surrogates(text), add_special_tokens=False, truncation=False, verbose=False)
            )

    return count_slowly
