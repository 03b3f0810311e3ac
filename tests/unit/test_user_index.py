"""Arrays of chunks: who stands beside whom, what grows, what is kept."""

from __future__ import annotations

import itertools
from datetime import timedelta
from uuid import UUID

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from memstore.models import Role, Tier
from memstore.store.user_index import KERNEL, NEIGHBOURS, SESSION_GAP_HOURS, IndexCache, UserIndex
from tests.unit.user_indexes import NOW, Given, arrays, keys

USER, OTHER, MODEL = UUID(int=1), UUID(int=2), UUID(int=3)


def beside(some: UserIndex, row: int) -> list[int]:
    """Give the numbers of the items around a row, in order."""
    return [chunk.item_id.int for chunk in some.chunks(some.neighbours[:, row][some.neighbours[:, row] < len(some)])]


def test_neighbours_are_of_the_same_role_and_session_in_the_order_of_the_conversation() -> None:
    later = NOW + timedelta(hours=SESSION_GAP_HOURS + 1)
    said = [Given(n, role=Role.ASSISTANT if n % 2 else Role.USER) for n in range(10)]
    said += [Given(n, at=later) for n in (10, 11)]
    said += [Given(20, seq=3, conversation=UUID(int=5)), Given(21, tier=Tier.FACTS, role=None, seq=-1)]
    some = arrays(said[::-1])
    found = {chunk.item_id.int: beside(some, row) for row, chunk in enumerate(some.chunks(np.arange(len(some))))}
    assert found[4] == [0, 2, 4, 6, 8]
    assert found[0] == [0, 2, 4]
    assert found[9] == [5, 7, 9]
    assert found[10] == [10, 11], "after a long silence another session begins"
    assert found[20] == [20], "another conversation"
    assert found[21] == [21], "facts are said by nobody"


def test_the_mean_direction_of_a_neighbourhood_needs_no_vectors_at_the_question() -> None:
    draw = np.random.default_rng(3)
    vectors = draw.normal(size=(12, 8))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    some = arrays([Given(n, vector=None if n == 7 else vectors[n].tolist()) for n in range(12)])
    query = draw.normal(size=8)
    own = vectors @ query
    own[7] = 0
    found = (some.neighbour_kernel * np.append(own, 0)[some.neighbours]).sum(axis=0)
    for n in range(12):
        weighed = [
            weight * vectors[n + step]
            for weight, step in zip(KERNEL, range(-NEIGHBOURS, NEIGHBOURS + 1), strict=True)
            if 0 <= n + step < 12 and n + step != 7
        ]
        mean = np.sum(weighed, axis=0)
        assert found[n] == pytest.approx(mean @ query / np.linalg.norm(mean), abs=1e-6)


@given(st.lists(st.integers(0, 50), min_size=1, max_size=4), st.booleans())
@settings(deadline=None, max_examples=30)
def test_arrays_that_grew_are_those_that_came_at_once(cuts: list[int], asked: bool) -> None:
    draw = np.random.default_rng(6)
    vectors = draw.normal(size=(50, 8)).astype(np.float32)
    chunks = [
        Given(n, {n % 9: 1 + n % 3, 20 + n: 1}, None if n % 11 == 5 else vectors[n], at=NOW + timedelta(hours=n))
        for n in range(50)
    ]
    whole = arrays(chunks)
    borders = [0, *sorted(cuts), 50]
    grown = arrays([])
    for start, stop in itertools.pairwise(borders):
        if asked:
            assert len(grown.context_norm) == len(grown)
            grown.rows_with_term(3)
        grown = grown.extend(arrays(chunks[max(0, start - 2) : stop]))
    assert grown.digest == whole.digest
    assert keys(grown, range(50)) == keys(whole, range(50))
    assert (grown.neighbours == whole.neighbours).all()
    assert grown.context_norm.tolist() == whole.context_norm.tolist()
    for term in (3, 44, 1000, 2**63 - 1):
        for found, expected in zip(grown.rows_with_term(term), whole.rows_with_term(term), strict=True):
            assert found.tolist() == expected.tolist()


def test_the_cache_has_room_for_so_much_and_always_for_the_one_who_asks() -> None:
    one = arrays([Given(n) for n in range(5)])
    cache = IndexCache(most_bytes=2 * one.nbytes)
    for user in (USER, OTHER):
        cache.put(user, MODEL, one)
    assert cache.get(USER, MODEL) is one
    assert cache.get(USER, OTHER) is None
    cache.put(UUID(int=9), MODEL, one)
    assert cache.get(OTHER, MODEL) is None, "asked least recently"
    assert cache.get(USER, MODEL) is one
    for _ in range(3):
        cache.put(USER, MODEL, one)
    assert cache.get(UUID(int=9), MODEL) is one, "put again, it takes no more room"
    cache.forget(USER)
    cache.put(OTHER, MODEL, one)
    assert cache.get(UUID(int=9), MODEL) is one, "what was forgotten takes none"
    large = arrays([Given(n) for n in range(500)])
    cache.put(OTHER, MODEL, large)
    assert cache.get(OTHER, MODEL) is large
    assert cache.get(USER, MODEL) is None
