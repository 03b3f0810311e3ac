"""The embedder of another process of this machine, over a local socket: "resident:sentence-transformers:…".

Vectors are those of the embedder itself, bit for bit, and so is the name that is kept with them. Where the other
process ends, another is started; where none can be had, the embedder is loaded here.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Sequence
from functools import cached_property
from weakref import finalize

import numpy as np

from memstore import residence
from memstore.errors import ProviderError
from memstore.local_socket import Message, Unanswered
from memstore.providers import Embedder, Vectors, load_embedder
from memstore.providers.sentence_transformers import counting
from memstore.settings import load as load_settings

SECONDS_TO_LOAD = 300.0
SECONDS_TO_ANSWER = 600.0  # hundreds of long texts on a busy machine, behind those of others

logger = logging.getLogger("memstore")


def load(model: str) -> Embedder:
    """Give the embedder of this full name in a process that stays, started where there is none.

    Where `resident_minutes` is 0, or no such process can be had, it is loaded here: it may take seconds and raise what
    its own kind raises.
    """
    minutes = load_settings({}).resident_minutes
    if residence.is_worth_it(model, minutes):
        try:
            return ResidentEmbedder(model, minutes)
        except Unanswered as error:
            logger.info("no resident encoder: %s", error)
    return _own(model)


def _own(model: str) -> Embedder:
    found = load_embedder(model)
    if found is None:
        raise ProviderError('"none" is no embedder that could stay: name one, as resident:kind:model.')
    return found


class ResidentEmbedder:
    """An Embedder in another process. Safe to share by threads, which take turns, and by forked children."""

    def __init__(self, embedder: str, minutes: float) -> None:
        """Reach it; raises `Unanswered` where none can be had, or it cannot load its model."""
        self._asked = embedder
        self._minutes = minutes
        self._turn = threading.Lock()
        self._here: Embedder | None = None
        self._connect()
        self._model = self._greeted()

    def __repr__(self) -> str:
        return f"<ResidentEmbedder {self.name}>"

    @property
    def name(self) -> str:
        """The name of the embedder itself."""
        return str(self._model["name"])

    @property
    def dimensions(self) -> int:
        """The number of components of a vector."""
        return int(self._model["dimensions"])

    @property
    def max_tokens(self) -> int:
        """The model's window in its own tokens, without the special ones."""
        return int(self._model["max_tokens"])

    def count(self, text: str) -> int:
        """Give the number of the model's own tokens, without the special ones and without the window's limit."""
        return self._count(text)

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """Give the vectors of texts: shape (texts, dimensions), float32, unit length; (0, dimensions) for none."""
        if not texts:
            return np.empty((0, self.dimensions), dtype=np.float32)
        answer = self._ask({"ask": "embed", "texts": list(texts)})
        return self._loaded().embed_documents(texts) if answer is None else self._vectors(answer[1], len(texts))

    def embed_query(self, text: str) -> Vectors:
        """Give the vector of a question: shape (dimensions,), float32, unit length."""
        answer = self._ask({"ask": "embed", "query": text})
        return self._loaded().embed_query(text) if answer is None else self._vectors(answer[1], 1).reshape(-1)

    @cached_property
    def _count(self) -> Callable[[str], int]:
        """What counts here, by the model's own tokenizer: a message is counted several times when it is cut."""
        answer = self._ask({"ask": "tokenizer"})
        tokenizer = None if answer is None else answer[0]["tokenizer"]
        return self._count_there if tokenizer is None else counting(str(tokenizer))

    def _count_there(self, text: str) -> int:
        answer = self._ask({"ask": "count", "text": text})
        return self._loaded().count(text) if answer is None else int(answer[0]["count"])

    def _vectors(self, data: bytes, count: int) -> Vectors:
        return np.frombuffer(data, dtype="<f4").astype(np.float32).reshape(count, self.dimensions)

    def _connect(self) -> None:
        self._line, self._process = residence.reached(self._asked, self._minutes), os.getpid()
        self._hang_up = finalize(self, self._line.close)

    def _greeted(self) -> Message:
        """Give what the model is that answers; it must be the same one as long as this object lives."""
        found, _ = self._line.ask({"ask": "model", "embedder": self._asked}, seconds=SECONDS_TO_LOAD)
        if "error" in found:
            raise Unanswered(str(found["error"]))
        return {key: found[key] for key in ("name", "dimensions", "max_tokens", "digest")}

    def _ask(self, message: Message) -> tuple[Message, bytes] | None:
        """Ask, of another process where this one has ended; None where the embedder must be loaded here."""
        with self._turn:
            for last in (False, True):
                try:
                    if self._here is not None:
                        return None
                    if self._process != os.getpid():
                        raise Unanswered("this is a forked child")
                    answer = self._line.ask(message | {"model": self._model}, seconds=SECONDS_TO_ANSWER)
                    if "error" in answer[0]:
                        raise ProviderError(str(answer[0]["error"]))
                    return answer
                except Unanswered as error:
                    if last or not self._reached_again():
                        logger.info("the resident encoder has ended: %s", error)
            return None

    def _reached_again(self) -> bool:
        try:
            self._hang_up()
            self._connect()
            return self._greeted() == self._model
        except Unanswered:
            return False

    def _loaded(self) -> Embedder:
        """Give the embedder loaded here, now that nobody else has it; another model is refused."""
        with self._turn:
            self._here = self._here or _own(self._asked)
        if (self._here.name, self._here.dimensions) != (self.name, self.dimensions):
            raise ProviderError(f"{self._asked} is another model than before: {self._here.name}.")
        return self._here
