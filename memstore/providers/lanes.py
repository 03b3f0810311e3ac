"""A model of sentence-transformers computing for several threads at once, and bits that do not depend on how many."""

from __future__ import annotations

import copy
import importlib
import os
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeVar
from weakref import WeakSet

B = TypeVar("B")
BATCH = 32  # texts; on CPUs, larger batches only pad more


class Lanes:
    """Copies of a model that share its weights, each for one thread. A tokenizer is for one ("Already borrowed").

    Each batch is computed by one thread, several at a time, so that the number of threads changes no bit. Two such
    lanes embed at least as many texts a second as one model with two threads, and 2.2 times as many where others keep
    the two cores busy, for 0.4 of the CPU: threads that share each product wait for each other thousands of times a
    text. Where the library computes with threads of its own (ONNX, OpenVINO) or elsewhere (a GPU), the model itself is
    the only lane, and who asks takes turns.
    """

    def __init__(self, model: Any, *, alone: bool = False) -> None:
        torch = importlib.import_module("torch")
        alone = alone or getattr(model.device, "type", "cpu") != "cpu"
        self.count = 1 if alone else int(torch.get_num_threads())
        self.model = model
        self.copies: list[Any] = [model] if alone else []
        self._alone = alone
        self._begin()
        _EVERY.add(self)

    def _begin(self) -> None:
        """Lend nothing yet, and have no threads: in a forked child too, where those of its parent are not."""
        self._making = threading.Lock()
        self._threads: ThreadPoolExecutor | None = None
        self._free = _Lender(self.copies)
        self._asked = self._free if self._alone else _Lender([self.model])

    def each(self, work: Callable[[Any, B], object], batches: Sequence[B]) -> None:
        """Do `work(model, batch)` for each batch; an error of one is raised here, and what has not begun is left.

        Callers come by turns: no more batches of one are queued than keep all lanes busy.
        """

        def done(batch: B) -> None:
            with self._lent(self._copied()) as model:
                work(model, batch)

        pool = self._pool()
        queued: deque[Future[None]] = deque()
        try:
            for batch in batches:
                if len(queued) > self.count:
                    queued.popleft().result()
                queued.append(pool.submit(done, batch))
            while queued:
                queued.popleft().result()
        finally:
            for one in queued:
                one.cancel()

    @contextmanager
    def asking(self) -> Iterator[Any]:
        """Lend the model for a question, which waits for no batch where there are copies.

        By one thread: with two a question takes as long on a quiet machine, and fifteen times as long on a busy one.
        """
        with self._lent(self._asked) as model:
            yield model

    def _pool(self) -> ThreadPoolExecutor:
        """Give threads that are kept.

        New ones for each call would each take another of glibc's arenas, which keep what a batch needed: after 4,096
        texts of 800 characters a process had 1.2 GB in place of 0.7, on two cores.
        """
        with self._making:
            if self._threads is None:
                self._threads = ThreadPoolExecutor(self.count, "memstore-embed")
            return self._threads

    def _copied(self) -> _Lender:
        with self._making:
            if not self.copies:
                weights = {id(one): one for one in (*self.model.parameters(), *self.model.buffers())}
                self.copies = [copy.deepcopy(self.model, dict(weights)) for _ in range(self.count)]
                for one in self.copies:
                    self._free.take_back(one)
        return self._free

    @contextmanager
    def _lent(self, models: _Lender) -> Iterator[Any]:
        model = models.lend()
        try:
            with _one_thread:
                yield model
        finally:
            models.take_back(model)


class _Lender:
    """Lends models, each to one at a time, by the order in which they were asked for.

    A queue gives one back to whoever is awake, which is who had it: a question would wait for all batches of another.
    """

    def __init__(self, models: Sequence[Any]) -> None:
        self._free = deque(models)
        self._waiting: deque[Future[Any]] = deque()
        self._lock = threading.Lock()

    def lend(self) -> Any:
        with self._lock:
            if self._free:
                return self._free.popleft()
            turn: Future[Any] = Future()
            self._waiting.append(turn)
        try:
            return turn.result()
        except BaseException:  # interrupted
            with self._lock:
                waits = turn in self._waiting
                if waits:
                    self._waiting.remove(turn)
            if not waits:
                self.take_back(turn.result())
            raise

    def take_back(self, model: Any) -> None:
        with self._lock:
            if self._waiting:
                self._waiting.popleft().set_result(model)
            else:
                self._free.append(model)


class _OneThread:
    """Within it, torch computes in the thread that has entered it, and in no others; any number may be in it."""

    def __init__(self) -> None:
        self._before = 1
        self.begin()

    def begin(self) -> None:
        """Have nobody inside, as in a forked child, where the threads are not that were."""
        self._lock = threading.Lock()
        self._inside = 0

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
_EVERY: WeakSet[Lanes] = WeakSet()


def _begin_in_child() -> None:
    """Forget what other threads of the parent had when it forked."""
    _one_thread.begin()
    for lanes in list(_EVERY):
        lanes._begin()


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_begin_in_child)


def by_length(texts: Sequence[str]) -> list[list[int]]:
    """Give the places of texts in batches of texts of about one length, which pad least."""
    order = sorted(range(len(texts)), key=lambda place: -len(texts[place]))
    return [order[start : start + BATCH] for start in range(0, len(order), BATCH)]
