"""The default embedder: all-MiniLM-L6-v2 by ONNX Runtime, without torch and without a network.

`minilm.onnx` is the graph alone (`tools/minilm_graph.py` makes it); it names places in `model.safetensors`, which ONNX
Runtime maps into memory. Its word embeddings are kept in half precision (`tools/fetch_model.py`): no value of a vector
is further than 0.00004 from that of the published model.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import cast

import numpy as np
from tokenizers import Tokenizer

from memstore.errors import ProviderError, ProviderMissing
from memstore.providers import MINILM, Vectors
from memstore.providers.batching import BatchWorkers, by_length
from memstore.text import replace_surrogates

# Its releases report to their maker as soon as they are imported; this is the switch that they name for it.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
import onnxruntime

FOLDER = Path(__file__).with_name("all-MiniLM-L6-v2")
WEIGHTS_FILE = FOLDER / "model.safetensors"
WEIGHTS_BYTES = 67_427_480
DIMENSIONS = 384
# [CLS] and [SEP] included.
WINDOW_TOKENS = 256
# Larger batches are slower on CPUs, and take more memory.
MAX_BATCH_TEXTS = 8


def load(model: str) -> MiniLM:
    """Return the embedder; `model` is "" or "all-MiniLM-L6-v2"."""
    if model not in ("", FOLDER.name):
        raise ProviderMissing(f"onnx has {FOLDER.name} alone. Name the model as sentence-transformers:{model} instead.")
    try:
        size = WEIGHTS_FILE.stat().st_size
    except OSError as error:
        raise ProviderError(f"{error}: install memstore again.") from error
    # The graph names places in it.
    if size != WEIGHTS_BYTES:
        raise ProviderError(f"{WEIGHTS_FILE} has {size:,} bytes, not {WEIGHTS_BYTES:,}: install memstore again.")
    return MiniLM()


class MiniLM:
    """An Embedder. Safe to share by threads, and to use in forked children.

    A session has no threads of its own: questions are computed by a pool of `threads`, batches by another one. So
    nothing spins, a question waits for questions alone, and the number of threads changes no bit of a vector.
    """

    name = MINILM
    dimensions = DIMENSIONS
    max_tokens = WINDOW_TOKENS - 2

    def __init__(self, threads: int | None = None) -> None:
        threads = threads or default_threads()
        self._workers, self._questions = BatchWorkers(threads), BatchWorkers(threads)
        self._tokenizer = load_tokenizer()
        self._sessions = GraphSessions(Path(__file__).with_name("minilm.onnx"))
        self._sessions.get()

    def __repr__(self) -> str:
        return f"<MiniLM {self.name}>"

    def count(self, text: str) -> int:
        """Return the number of the model's tokens, without [CLS] and [SEP] and without the window's limit."""
        return len(self._tokenizer.encode(replace_surrogates(text), add_special_tokens=False))

    def knows(self, text: str) -> bool:
        """Return whether half of a text's letters are in words of the vocabulary, or in parts of two letters and more.

        Other scripts than Latin are read letter by letter, or not at all.
        """
        encoding = self._tokenizer.encode(replace_surrogates(text), add_special_tokens=False)
        parts = zip(encoding.tokens, encoding.offsets, strict=True)
        letters = sum(stop - start for token, (start, stop) in parts if token != "[UNK]" and stop - start > 1)  # nosec B105
        return 2 * letters >= sum(map(str.isalnum, text))

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """Return the vectors of texts: shape (texts, 384), float32, unit length."""
        tokens = [self._tokens(text) for text in texts]
        vectors = np.empty((len(texts), DIMENSIONS), dtype=np.float32)
        batches = by_length(list(map(len, tokens)), MAX_BATCH_TEXTS, area=1024)
        self._workers.fill(vectors, self._embed, tokens, batches)
        return vectors

    def embed_query(self, text: str) -> Vectors:
        """Return the vector of a question: shape (384,), float32, unit length."""
        [[vector]] = self._questions.run(self._embed, [[self._tokens(text)]])
        return cast(Vectors, vector)

    def _tokens(self, text: str) -> list[int]:
        ids: list[int] = self._tokenizer.encode(replace_surrogates(text)).ids
        return ids if len(ids) <= WINDOW_TOKENS else [*ids[: WINDOW_TOKENS - 1], ids[-1]]

    def _embed(self, tokens: Sequence[Sequence[int]]) -> Vectors:
        ids = np.zeros((len(tokens), max(map(len, tokens))), dtype=np.int64)
        mask = np.zeros_like(ids)
        for row, text in enumerate(tokens):
            ids[row, : len(text)] = text
            mask[row, : len(text)] = 1
        vectors: Vectors = self._sessions.get().run(None, {"ids": ids, "mask": mask})[0]
        return vectors


def default_threads() -> int:
    """Return how many threads compute: one for each processor, up to 8.

    Each takes up to 40 MB, and a container may have fewer processors than it sees.
    """
    processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(8, processors)


def load_tokenizer() -> Tokenizer:
    """Return the model's tokenizer, which neither cuts nor pads."""
    tokenizer = Tokenizer.from_file(str(FOLDER / "tokenizer.json"))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


class GraphSessions:
    """The sessions of a graph, one for each process: a forked child's copy of its parent's may be in use."""

    def __init__(self, graph: Path) -> None:
        self._graph = graph
        self._sessions: dict[int, onnxruntime.InferenceSession] = {}

    def get(self) -> onnxruntime.InferenceSession:
        """Return the session of this process."""
        process = os.getpid()
        if process in self._sessions:
            return self._sessions[process]
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        # ONNX Runtime refuses links that lead elsewhere.
        folder = WEIGHTS_FILE.resolve().parent
        options.add_session_config_entry("session.model_external_initializers_file_folder_path", str(folder))
        session = onnxruntime.InferenceSession(self._graph.read_bytes(), options, providers=["CPUExecutionProvider"])
        return self._sessions.setdefault(process, session)
