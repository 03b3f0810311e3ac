"""Texts in batches of about one length, computed by threads that callers share."""

from __future__ import annotations

import os
import sys
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

from numpy.typing import NDArray

R = TypeVar("R")
T = TypeVar("T")


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
        # By process: a forked child has none of its parent's threads.
        self._pools: dict[int, ThreadPoolExecutor] = {}

    def run(self, work: Callable[[T], R], batches: Sequence[T]) -> list[R]:
        """Return `work(batch)` for each batch, in order; raise the first error, and cancel what has not begun."""
        process = os.getpid()
        pool = self._pools.get(process) or self._pools.setdefault(process, ThreadPoolExecutor(self._threads))
        results: list[R] = []
        queued: deque[Future[R]] = deque()
        try:
            for batch in batches:
                # Enough to keep every thread busy.
                if len(queued) > self._threads:
                    results.append(queued.popleft().result())
                queued.append(pool.submit(work, batch))
            results += [future.result() for future in queued]
        finally:
            for future in queued:
                future.cancel()
        return results

    def fill(
        self, rows: NDArray[Any], work: Callable[[list[T]], NDArray[Any]], items: Sequence[T], batches: list[list[int]]
    ) -> None:
        """Set a row for each item to what `work` gives for it."""
        results = self.run(lambda batch: work([items[index] for index in batch]), batches)
        for batch, result in zip(batches, results, strict=True):
            rows[batch] = result
