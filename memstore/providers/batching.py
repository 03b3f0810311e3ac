"""Texts in batches: of about one length, computed by threads that callers share, and those of many callers together."""

from __future__ import annotations

import os
import sys
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from threading import Lock, Semaphore
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from memstore.providers import Embedder, Vectors

B = TypeVar("B")
R = TypeVar("R")
T = TypeVar("T")

LEADERS = 2  # while one hands its vectors out, the other keeps the encoder busy
MAX_TEXTS = 1024  # at once: they are held in memory


def by_length(lengths: Sequence[int], size: int, area: int = sys.maxsize) -> list[list[int]]:
    """Return the indices of texts in batches, longest first: texts of one length need no padding.

    A batch has at most `size` texts, and fewer where these, padded, would be longer than `area` together.
    """
    order = sorted(range(len(lengths)), key=lambda index: -lengths[index])
    batches = []
    while order:
        fitting = max(1, min(size, area // max(1, lengths[order[0]])))
        batches.append(order[:fitting])
        order = order[fitting:]
    return batches


class BatchWorkers:
    """A thread pool that serves its callers in turn, a few batches at a time."""

    def __init__(self, threads: int) -> None:
        self._threads = threads
        self._pools: dict[int, ThreadPoolExecutor] = {}  # by process: a forked child has none of its parent's threads

    def run(self, work: Callable[[B], R], batches: Sequence[B]) -> list[R]:
        """Return `work(batch)` for each batch, in order. Raises the first error; what has not begun is cancelled."""
        process = os.getpid()
        pool = self._pools.get(process) or self._pools.setdefault(process, ThreadPoolExecutor(self._threads))
        results: list[R] = []
        queued: deque[Future[R]] = deque()
        try:
            for batch in batches:
                if len(queued) > self._threads:  # enough to keep every thread busy
                    results.append(queued.popleft().result())
                queued.append(pool.submit(work, batch))
            results += [future.result() for future in queued]
        finally:
            for future in queued:
                future.cancel()
        return results

    def fill(
        self,
        rows: NDArray[Any],
        work: Callable[[list[T]], NDArray[Any]],
        items: Sequence[T],
        lengths: Sequence[int],
        size: int,
        area: int = sys.maxsize,
    ) -> None:
        """Set a row for each item to what `work` gives for it, in batches as `by_length` makes them."""
        batches = by_length(lengths, size, area)
        results = self.run(lambda batch: work([items[index] for index in batch]), batches)
        for batch, result in zip(batches, results, strict=True):
            rows[batch] = result


@dataclass(slots=True)
class _Request:
    texts: list[str]
    taken: bool = False
    vectors: Future[Vectors] = field(default_factory=Future)


class BatchingEmbedder:
    """An Embedder in front of another: what several callers ask for at the same time goes to the encoder together.

    A worker derives several conversations at a time, many of them short, and each by itself would fill no batch. It has
    no threads: of those that wait, the next one asks for all of them.
    """

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self.name, self.dimensions, self.max_tokens = embedder.name, embedder.dimensions, embedder.max_tokens
        self._waiting: deque[_Request] = deque()
        self._lock, self._leaders = Lock(), Semaphore(LEADERS)

    def count(self, text: str) -> int:
        """Return the number of the model's own tokens of a text, without the special ones."""
        return self._embedder.count(text)

    def embed_query(self, text: str) -> Vectors:
        """Return the vector of a question: shape (dimensions,), float32, of length 1. It waits for nobody."""
        return self._embedder.embed_query(text)

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """Return the vectors of texts: shape (texts, dimensions), float32, each of length 1."""
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
            while self._waiting and sum(len(request.texts) for request in taken) < MAX_TEXTS:
                taken.append(self._waiting.popleft())
                taken[-1].taken = True
        if taken:
            self._answer(taken)

    def _answer(self, requests: Sequence[_Request]) -> None:
        ends = np.cumsum([len(request.texts) for request in requests])
        try:
            vectors = self._embedder.embed_documents([text for request in requests for text in request.texts])
            if len(requests) > 1 and len(vectors) != ends[-1]:
                raise ValueError("too few vectors, and nobody knows whose are missing")
        except BaseException as error:  # whatever it is, its own caller is told, and no other
            if len(requests) == 1:
                requests[0].vectors.set_exception(error)
                return
            for request in requests:
                self._answer([request])
            return
        for request, own in zip(requests, np.split(vectors, ends[:-1]), strict=True):
            request.vectors.set_result(own)
