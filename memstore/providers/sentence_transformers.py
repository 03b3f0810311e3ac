"""Any model of sentence-transformers as an embedder or a reranker, on the CPU or a GPU, without a network."""

from __future__ import annotations

import importlib
import re
import threading
from collections.abc import Callable, Sequence
from functools import partial
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np

from memstore.errors import ProviderError, ProviderMissing
from memstore.plugins import require_extra
from memstore.providers import MINILM, Scores, Vectors
from memstore.providers.batching import BatchWorkers, by_length
from memstore.text import replace_surrogates

BATCH = 32
# The window, too, of a model that has none, such as a static one.
MAX_WINDOW_TOKENS = 1_000_000

# Loading sets a switch of the whole process and puts it back: no network.
_LOADING = threading.Lock()


def load(model: str) -> SentenceTransformerEmbedder:
    """Return the embedder of a folder, or of a model in Hugging Face's cache on this machine; downloads nothing.

    "all-MiniLM-L6-v2" is the model that memstore has, here computed by torch, which takes seconds to import.
    """
    if not model:
        raise ProviderMissing("Name the model: sentence-transformers:FOLDER, or sentence-transformers:NAME.")
    return SentenceTransformerEmbedder(f"sentence-transformers:{model}", load_model(model, "SentenceTransformer"))


class SentenceTransformerEmbedder:
    """An Embedder around a loaded `SentenceTransformer`. Safe to share by threads, which take turns batch by batch."""

    def __init__(self, name: str, model: Any) -> None:
        self.name = name
        self.dimensions = int(model.get_embedding_dimension())
        self.max_tokens = MAX_WINDOW_TOKENS
        window = model.max_seq_length or getattr(model.tokenizer, "model_max_length", MAX_WINDOW_TOKENS)
        if isfinite(window) and window <= MAX_WINDOW_TOKENS:
            self.max_tokens = int(window) - int(model.tokenizer.num_special_tokens_to_add())
        self._model = model
        # torch computes with threads of its own, and a tokenizer is for one thread at a time
        self._worker = BatchWorkers(1)
        tokenizers = importlib.import_module("tokenizers")
        is_fast = isinstance(model.tokenizer, tokenizers.Tokenizer)
        tokenizer = model.tokenizer if is_fast else model.tokenizer.backend_tokenizer
        # A copy: encoding switches truncation on in the original, and a text of 300 tokens would count 256.
        self._tokenizer = tokenizers.Tokenizer.from_str(tokenizer.to_str())
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()

    def __repr__(self) -> str:
        return f"<SentenceTransformerEmbedder {self.name}>"

    def count(self, text: str) -> int:
        """Return the number of the model's own tokens, without the special ones and without the window's limit."""
        return len(self._tokenizer.encode(replace_surrogates(text), add_special_tokens=False))

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """Return the vectors of texts: shape (texts, dimensions), float32, unit length."""
        texts = [replace_surrogates(text) for text in texts]
        vectors = np.empty((len(texts), self.dimensions), dtype=np.float32)
        encode = partial(_encode, self._model.encode_document)
        self._worker.fill(vectors, encode, texts, by_length(list(map(len, texts)), BATCH))
        return vectors

    def embed_query(self, text: str) -> Vectors:
        """Return the vector of a question: shape (dimensions,), float32, unit length."""
        [vectors] = self._worker.run(partial(_encode, self._model.encode_query), [[replace_surrogates(text)]])
        return np.ascontiguousarray(vectors[0])


def _encode(encode: Callable[..., Any], texts: list[str]) -> Vectors:
    encoded = encode(texts, batch_size=BATCH, normalize_embeddings=True, convert_to_numpy=True, show_progress_bar=False)
    vectors = np.asarray(encoded, dtype=np.float32)
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    # A text without any token of a static model is far from everything, and no division by 0.
    vectors[lengths[:, 0] == 0, 0] = 1
    # Normalized in 16 bits.
    rough = np.abs(lengths[:, 0] - 1) > 1e-5
    vectors[rough] /= np.linalg.norm(vectors[rough], axis=1, keepdims=True)
    return vectors


def load_model(name: str, kind: str) -> Any:
    """Return a model as the library's class `kind`, such as "SentenceTransformer", from a folder or by its name."""
    place = _place(name)
    with require_extra("sentence-transformers", "sentence_transformers", "torch", "transformers"):
        make = getattr(importlib.import_module("sentence_transformers"), kind)
    # With local_files_only too, huggingface_hub asks its server for a list of agents, to name one in its user agent.
    constants = vars(importlib.import_module("huggingface_hub.constants"))
    with _LOADING:
        before = constants["HF_HUB_OFFLINE"]
        constants["HF_HUB_OFFLINE"] = True
        try:
            return make(place, local_files_only=True)
        except OSError as error:
            raise ProviderMissing(
                f"The model {name!r} is not on this machine, or not whole, and memstore downloads nothing. Give "
                f"the folder that holds it, or fetch it once: `hf download {name}`."
            ) from error
        except Exception as error:
            # Whatever torch, transformers and the model's own code may raise.
            raise ProviderError(f"The model {name!r} cannot be loaded: {error}") from error
        finally:
            constants["HF_HUB_OFFLINE"] = before


def _place(name: str) -> str:
    if f"sentence-transformers:{name}" == MINILM:
        return str(Path(__file__).with_name(name))
    folder = Path(name).expanduser()
    if folder.is_dir():
        return str(folder)
    if not re.fullmatch(r"[\w-][\w.-]*(/[\w-][\w.-]*)?", name):
        raise ProviderMissing(f"There is no folder {name!r}, and it is not the name of a model.")
    return name


def load_reranker(model: str) -> CrossEncoderReranker:
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
        options = {"batch_size": BATCH, "activation_fn": lambda scores: scores, "show_progress_bar": False}
        scores: Scores = self._model.predict(pairs, **options)
        return scores
