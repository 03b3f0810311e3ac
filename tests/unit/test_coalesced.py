"""Many callers, one encoder: each gets its own vectors, and its own error."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import numpy as np
import pytest

from memstore.providers import Vectors
from memstore.providers.coalesced import LEADERS, Coalesced
from memstore.testing import HashingEmbedder, check_embedder

CALLERS = 12


class Held(HashingEmbedder):
    """An embedder whose first calls wait until they are let go; it knows how many texts each call had."""

    def __init__(self) -> None:
        super().__init__(64)
        self.go = Event()
        self.calls: list[int] = []

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        self.calls.append(len(texts))
        assert self.go.wait(30)
        if "bad" in texts:
            raise ValueError("bad")
        return super().embed_documents(texts)


def asked(embedder: Held, requests: Sequence[list[str]]) -> list[Vectors | BaseException]:
    """Ask from as many threads as there are requests, all before the first is answered."""
    together = Coalesced(embedder)
    with ThreadPoolExecutor(len(requests)) as pool:
        futures = [pool.submit(together.embed_documents, texts) for texts in requests]
        while sum(embedder.calls) + sum(len(one.texts) for one in together._waiting) < sum(map(len, requests)):
            pass
        embedder.go.set()
        return [future.exception() or future.result() for future in futures]


def test_it_keeps_the_promises_of_an_embedder() -> None:
    check_embedder(Coalesced(HashingEmbedder(64)))


def test_what_is_asked_at_once_goes_to_the_encoder_together() -> None:
    embedder = Held()
    requests = [[f"caller {n}, text {place}" for place in range(n % 4 + 1)] for n in range(CALLERS)]
    found = asked(embedder, requests)
    for texts, vectors in zip(requests, found, strict=True):
        np.testing.assert_array_equal(vectors, HashingEmbedder(64).embed_documents(texts))
    assert len(embedder.calls) <= LEADERS + 1, "those that could ask at once, and one for all others"


def test_an_error_is_its_own_callers_alone() -> None:
    requests = [["bad"] if n == 5 else [f"good {n}"] for n in range(CALLERS)]
    found = asked(Held(), requests)
    assert [type(one) for one in found if isinstance(one, BaseException)] == [ValueError]
    assert isinstance(found[5], ValueError)


def test_no_texts_are_no_question() -> None:
    embedder = Held()
    assert Coalesced(embedder).embed_documents([]).shape == (0, 64)
    assert embedder.calls == []


def test_nobody_waits_for_ever_when_all_are_wrong() -> None:
    found = asked(Held(), [["bad"]] * CALLERS)
    with pytest.raises(ValueError, match="bad"):
        raise next(one for one in found if isinstance(one, BaseException))
    assert len(found) == CALLERS


def test_a_vector_that_is_missing_is_its_own_callers_loss_alone() -> None:
    class Lossy(Held):
        def embed_documents(self, texts: Sequence[str]) -> Vectors:
            vectors = super().embed_documents(texts)
            return np.delete(vectors, [place for place, text in enumerate(texts) if text == "lost"], axis=0)

    requests = [["lost", "kept"] if n == 5 else [f"good {n}"] for n in range(CALLERS)]
    for texts, vectors in zip(requests, asked(Lossy(), requests), strict=True):
        whole = HashingEmbedder(64).embed_documents([text for text in texts if text != "lost"])
        np.testing.assert_array_equal(vectors, whole)
