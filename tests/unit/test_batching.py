"""Batches: computed by threads, in order and by turns, in forked children too; and many callers of one encoder."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

from memstore.providers.batching import BatchWorkers, by_length


def test_texts_of_one_length_are_together() -> None:
    assert by_length([3, 9, 1, 9, 5], 2) == [[1, 3], [4, 0], [2]]
    assert by_length([], 2) == []
    assert by_length([3, 9, 1, 9, 5, 0], 4, area=10) == [[1], [3], [4, 0], [2, 5]]


def test_who_has_few_batches_does_not_wait_for_all_of_somebody_elses() -> None:
    workers, begun, go, done = BatchWorkers(1), threading.Event(), threading.Event(), list[str]()

    def work(whose: str) -> None:
        begun.set()
        go.wait(20)
        done.append(whose)

    with ThreadPoolExecutor(2) as pool:
        many = pool.submit(workers.run, work, ["many"] * 50)
        assert begun.wait(20)
        few = pool.submit(workers.run, work, ["few"])
        time.sleep(0.2)  # it is in line
        go.set()
        few.result()
        many.result()
    assert done.index("few") <= 3
