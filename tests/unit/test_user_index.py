"""Arrays of chunks: who stands beside whom, what grows, what is kept."""

import itertools
from collections import Counter
from datetime import timedelta
from uuid import UUID

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from memstore.models import Role, Tier
from memstore.models.messages import SESSION_GAP
from memstore.search.recall import best_by_words
from memstore.search.signals import BM25_B, Corpus, idf, saturate
from memstore.store import postings
from memstore.store.index_cache import IndexCache
from memstore.store.postings import IndexedChunk, Matches, Postings
from memstore.store.user_index import UserIndex
from tests.unit.user_indexes import NOW, Given, arrays, keys

USER, OTHER, MODEL = UUID(int=1), UUID(int=2), UUID(int=3)


def beside(some: UserIndex, row: int) -> list[int]:
    """Give the numbers of the items around a row, in order."""
    return [chunk.item_id.int for chunk in some.chunks(some.neighbours[:, row][some.neighbours[:, row] < len(some)])]


def test_neighbours_are_of_the_same_role_and_session_in_the_order_of_the_conversation() -> None:
    later = NOW + SESSION_GAP + timedelta(hours=1)
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
            assert len(grown.neighbourhood_norm) == len(grown)
            grown.rows_with_term(3)
        grown = grown.extend(arrays(chunks[max(0, start - 2) : stop]))
    assert grown.digest == whole.digest
    assert keys(grown, range(50)) == keys(whole, range(50))
    assert (grown.neighbours == whole.neighbours).all()
    assert grown.neighbourhood_norm.tolist() == whole.neighbourhood_norm.tolist()
    for term in (3, 44, 1000, 2**63 - 1):
        for found, expected in zip(grown.rows_with_term(term), whole.rows_with_term(term), strict=True):
            assert found.tolist() == expected.tolist()


def test_what_was_made_anew_takes_the_place_of_what_was_there() -> None:
    draw = np.random.default_rng(7)
    vectors = draw.normal(size=(7, 4)).astype(np.float32)
    before, again = arrays([Given(n, {1: 1}, vectors[n]) for n in range(6)]), arrays([Given(3, {2: 1}, vectors[6])])
    assert len(before.neighbourhood_norm) == len(before.sorted_terms[0]) == 6
    again.records["digest"] += 1
    grown = before.extend(again)
    assert (grown.rows_with_term(1)[0].tolist(), grown.rows_with_term(2)[0].tolist()) == ([0, 1, 2, 3, 4], [5])
    fresh = UserIndex(grown.version, NOW, grown.records, grown.speakers, grown.terms, grown.frequencies, grown.vectors)
    assert grown.neighbourhood_norm.tolist() == fresh.neighbourhood_norm.tolist()


def test_the_cache_has_room_for_so_much_and_always_for_the_one_who_asks() -> None:
    one = arrays([Given(n) for n in range(5)])
    cache = IndexCache(150_000, 2 * one.nbytes)
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


# Postings: packed and found again, and scored as the chunks themselves would be


TERMS = st.sampled_from([-(2**63), -5, -1, 0, 1, 7, 2**40, 2**63 - 1])
UNITS = st.lists(st.dictionaries(TERMS, st.integers(1, 32_767), max_size=6), max_size=12)


def run(chunks: list[dict[int, int]]) -> list[IndexedChunk]:
    return [IndexedChunk(8 + 3 * n, sum(one.values()), [*one], [*one.values()]) for n, one in enumerate(chunks)]


@given(UNITS)
@settings(suppress_health_check=[HealthCheck.too_slow])  # of a busy machine
def test_what_is_packed_is_found_again(chunks: list[dict[int, int]]) -> None:
    rows = postings.pack(run(chunks), 7)
    expected: dict[int, dict[int, int]] = {}
    for n, one in enumerate(chunks):
        for term, count in one.items():
            expected.setdefault(term, {})[8 + 3 * n] = count
    found = {}
    for row in rows:
        chunks_of_term = np.frombuffer(row["chunks"], postings.POSTING)  # type: ignore[call-overload]
        assert row["holding"] == len(chunks_of_term)
        assert row["first"] == 8
        found[row["term"]] = dict(zip(chunks_of_term["number"].tolist(), chunks_of_term["count"].tolist(), strict=True))
    assert found == expected
    assert len(rows) == len(expected), "a row for each term"


@given(UNITS.filter(any), st.integers(1, 20))
def test_the_best_are_those_with_the_highest_bm25(chunks: list[dict[int, int]], more: int) -> None:
    lengths = [sum(one.values()) for one in chunks]
    corpus = Corpus(len(chunks) + more, sum(lengths) + 1)
    terms = [*dict.fromkeys(term for one in chunks for term in one)][:5]
    holding = Counter(term for one in chunks for term in one)
    scores = np.zeros(len(chunks))
    found = {}
    for term in terms:
        rows = np.array([n for n, one in enumerate(chunks) if term in one])
        counts = np.array([chunks[row][term] for row in rows], dtype=np.float64)
        own = np.array([lengths[row] for row in rows], dtype=np.float64)
        scores[rows] += idf(holding[term], corpus.chunks) * saturate(counts, own, corpus.mean_length, BM25_B)
        found[term] = Postings(rows, counts, own)
    numbers = best_by_words(Matches({term: holding[term] for term in terms}, found), corpus)
    assert sorted(numbers) == np.flatnonzero(scores).tolist()
    assert scores[numbers] == pytest.approx(np.sort(scores[scores > 0])[::-1])


def test_terms_that_say_little_are_not_read() -> None:
    """What nearly every chunk has neither chooses nor costs; of a question of such words alone the rarest is read."""
    assert postings._select_rarest({1: 900, 2: 5, 3: 40, 4: 0}, 100) == [4, 2, 3]
    assert postings._select_rarest({1: 900, 2: 800}, 100) == [2]
