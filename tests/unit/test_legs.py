"""The legs over arrays find what the pure functions and brute force find."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from heapq import nlargest
from uuid import UUID

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memstore.models import Key, Matches, Role, Tier
from memstore.retrieve import legs
from memstore.retrieve.rank import bm25
from memstore.store.arrays import EPOCH, RECORD, ROLES, TIERS, ArrayCache, Arrays

NOW = datetime(2024, 6, 1, tzinfo=UTC)
USER, OTHER, MODEL = UUID(int=1), UUID(int=2), UUID(int=3)
Terms = dict[int, int]


def arrays(units: Sequence[Terms], vectors: Sequence[Sequence[float] | None] = (), first: int = 0) -> Arrays:
    """Give arrays of units with these terms and vectors, two chunks to an item; the later, the lesser the name."""
    records = np.zeros(len(units), RECORD)
    vectors = [*vectors, *[None] * (len(units) - len(vectors))]
    for n, (terms, vector) in enumerate(zip(units, vectors, strict=True)):
        number = 10_000 - first - n
        records["item"][n] = np.void(UUID(int=number // 2).bytes)
        records["chunk"][n] = number % 2
        records["seq"][n] = n
        records["length"][n] = sum(terms.values())
        records["at"][n] = (NOW - EPOCH - timedelta(days=n % 7)) // timedelta(microseconds=1)
        records["digest"][n] = number * 2_654_435_761
        records["tier"][n], records["role"][n] = TIERS.index(Tier.MESSAGES) + 1, ROLES.index(Role.USER) + 1
        records["terms"][n], records["embedded"][n] = len(terms), vector is not None
    given = [vector for vector in vectors if vector is not None]
    return Arrays(
        "1",
        NOW,
        records,
        ["Alice"] * len(units),
        np.array([term for terms in units for term in sorted(terms)], dtype=np.int64),
        np.array([terms[term] for terms in units for term in sorted(terms)], dtype=np.int64),
        (np.array(given, dtype=np.float32),) if given else (),
    )


def keys(some: Arrays, rows: Sequence[int] | np.ndarray) -> list[Key]:
    return [unit.key for unit in some.units(np.array(rows, dtype=np.intp))]


@given(
    st.lists(st.dictionaries(st.integers(0, 9), st.integers(1, 4), max_size=6), max_size=30),
    st.lists(st.integers(0, 12), unique=True, max_size=6),
    st.integers(0, 60),
    st.integers(1, 40),
)
@settings(deadline=None)
def test_the_lexical_leg_is_bm25(units: list[Terms], asked: list[int], more: int, depth: int) -> None:
    some = arrays(units)
    named = dict(zip(keys(some, range(len(units))), units, strict=True))
    rows = [
        (key, sum(terms.values()), [terms.get(term, 0) for term in asked])
        for key, terms in named.items()
        if terms.keys() & set(asked)
    ]
    expected = bm25(Matches(more, 7.5, rows))
    scores = legs.lexical(some, asked, more, 7.5)
    found = dict(zip(keys(some, range(len(units))), scores.tolist(), strict=True))
    assert {key: score for key, score in found.items() if score} == pytest.approx(expected, abs=1e-12)
    best = nlargest(depth, expected, key=lambda key: (expected[key], key))
    assert keys(some, legs.highest(some, scores, depth)) == best


def test_the_nearest_are_exact_and_equal_ones_have_one_order() -> None:
    draw = np.random.default_rng(5)
    given = draw.normal(size=(300, 16))
    given[40:60] = given[40]  # the same words, said twenty times
    given = (given / np.linalg.norm(given, axis=1, keepdims=True)).astype(np.float32)
    vectors = [None if n % 11 == 0 else vector for n, vector in enumerate(given)]
    some = arrays([{}] * 300, vectors)
    names = keys(some, range(300))
    for query in (given[40], given[7], draw.normal(size=16)):
        asked = (query / np.linalg.norm(query)).astype(np.float32)
        exact = given.astype(float) @ asked.astype(float)
        exact /= np.linalg.norm(given.astype(float), axis=1) * np.linalg.norm(asked.astype(float))
        cosine = {names[n]: round(exact[n], 10) for n in range(300) if vectors[n] is not None}
        for count in (1, 10, 25, 500):
            found = legs.nearest(some, asked, count)
            assert keys(some, found) == sorted(cosine, key=lambda key: (-cosine[key], key))[:count]
            scores = legs.cosines(some, asked, np.arange(300))
            assert scores[found].tolist() == pytest.approx([cosine[key] for key in keys(some, found)], abs=1e-9)
            assert not scores[[n for n in range(300) if vectors[n] is None]].any()


def test_what_was_said_last_comes_by_time_then_number() -> None:
    some = arrays([{}] * 40)
    ordered = sorted(some.units(np.arange(40)), key=lambda unit: (-unit.occurred_at.timestamp(), -(unit.seq or 0)))
    for count in (1, 6, 20, 100):
        assert keys(some, legs.latest(some, count)) == [unit.key for unit in ordered[:count]]


def test_an_item_is_found_with_all_its_chunks() -> None:
    some = arrays([{}] * 9)
    whole = UUID(int=9_998 // 2)
    row = some.find(whole)
    assert row is not None
    assert keys(some, [row]) == [Key(whole, 0)]
    assert set(keys(some, some.whole_items(np.array([row])))) == {Key(whole, 0), Key(whole, 1)}
    assert some.find(UUID(int=77)) is None
    assert some.find(UUID(int=2**127)) is None


def test_arrays_grow_by_what_is_new() -> None:
    draw = np.random.default_rng(6)
    vectors = draw.normal(size=(50, 8)).astype(np.float32)
    units = [{n % 9: 1 + n % 3, 20 + n: 1} for n in range(50)]
    whole = arrays(units, vectors)
    grown = arrays(units[:20], vectors[:20])
    for start, stop in ((15, 21), (21, 22), (10, 50)):
        grown = grown.followed_by(arrays(units[start:stop], vectors[start:stop], first=start))
    assert grown.digest == whole.digest
    assert sorted(keys(grown, range(50))) == sorted(keys(whole, range(50)))
    assert keys(grown, grown.order) == keys(whole, whole.order)
    assert len(grown.vectors) < 3
    for n in (3, 25):
        assert keys(grown, legs.nearest(grown, vectors[n], 5)) == keys(whole, legs.nearest(whole, vectors[n], 5))
        scores = [legs.lexical(one, [n % 9, 20 + n], 50, 3.0) for one in (grown, whole)]
        assert [score.max() for score in scores] == [1, 1]
        assert keys(grown, legs.highest(grown, scores[0], 9)) == keys(whole, legs.highest(whole, scores[1], 9))


def test_the_cache_has_room_for_so_much_and_always_for_the_one_who_asks() -> None:
    one = arrays([{}] * 5)
    cache = ArrayCache(most_bytes=2 * one.nbytes)
    for user in (USER, OTHER):
        cache.put(user, MODEL, one)
    assert cache.get(USER, MODEL) is one
    assert cache.get(USER, OTHER) is None
    cache.put(UUID(int=9), MODEL, one)
    assert cache.get(OTHER, MODEL) is None, "asked least recently"
    assert cache.get(USER, MODEL) is one
    large = arrays([{}] * 500)
    cache.put(OTHER, MODEL, large)
    assert cache.get(OTHER, MODEL) is large
    assert cache.get(USER, MODEL) is None
