"""An embedder for many callers at once: what they ask for at the same time goes to the encoder together.

A worker derives several conversations at a time, many of them short. Each by itself would fill no batch.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from threading import Lock, Semaphore

import numpy as np

from memstore.providers import Embedder, Vectors

LEADERS = 2  # while one hands its vectors out, the other keeps the encoder busy
MOST_TEXTS = 1024  # at once: they are held in memory


@dataclass(slots=True)
class _Request:
    texts: list[str]
    taken: bool = False
    vectors: Future[Vectors] = field(default_factory=Future)


class Coalesced:
    """An Embedder in front of another. It has no threads: of those that wait, the next one asks for all of them."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._waiting: deque[_Request] = deque()
        self._lock, self._leaders = Lock(), Semaphore(LEADERS)

    @property
    def name(self) -> str:
        """The full name of the embedder behind."""
        return self._embedder.name

    @property
    def dimensions(self) -> int:
        """The number of components of a vector."""
        return self._embedder.dimensions

    @property
    def max_tokens(self) -> int:
        """The model's window, in its own tokens without the special ones."""
        return self._embedder.max_tokens

    def count(self, text: str) -> int:
        """Give the number of the model's own tokens of a text, without the special ones."""
        return self._embedder.count(text)

    def embed_query(self, text: str) -> Vectors:
        """Give the vector of a question: shape (dimensions,), float32, of length 1. It waits for nobody."""
        return self._embedder.embed_query(text)

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """Give the vectors of texts: shape (texts, dimensions), float32, each of length 1."""
        if not texts:
            return np.empty((0, self.dimensions), dtype=np.float32)
        request = _Request(list(texts))
        with self._lock:
            self._waiting.append(request)
        while not request.taken:
            with self._leaders:
                self._lead()
        return request.vectors.result()

    def _lead(self) -> None:
        """Ask for the texts of everybody who waits."""
        taken: list[_Request] = []
        with self._lock:
            while self._waiting and sum(len(one.texts) for one in taken) < MOST_TEXTS:
                taken.append(self._waiting.popleft())
                taken[-1].taken = True
        if taken:
            self._answer(taken)

    def _answer(self, requests: Sequence[_Request]) -> None:
        try:
            vectors = self._embedder.embed_documents([text for one in requests for text in one.texts])
        except BaseException as error:  # whatever it is, its own caller is told, and no other
            if len(requests) == 1:
                requests[0].vectors.set_exception(error)
                return
            self._each(requests)
            return
        ends = np.cumsum([len(one.texts) for one in requests])
        if (
            len(requests) > 1 and len(vectors) != ends[-1]
        ):  # whose are missing nobody knows: each is to see it for itself
            self._each(requests)
            return
        for one, own in zip(requests, np.split(vectors, ends[:-1]), strict=True):
            one.vectors.set_result(own)

    def _each(self, requests: Sequence[_Request]) -> None:
        for one in requests:
            self._answer([one])
