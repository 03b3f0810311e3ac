"""Postings: packed and found again, and scored as the chunks themselves would be."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from memstore.search.recall import best_by_words
from memstore.search.signals import B, Corpus, idf, saturate
from memstore.store import postings
from memstore.store.postings import IndexedChunk, Matches, Postings, Run

TERMS = st.sampled_from([-(2**63), -5, -1, 0, 1, 7, 2**40, 2**63 - 1])
UNITS = st.lists(st.dictionaries(TERMS, st.integers(1, 32_767), max_size=6), max_size=12)


def run(chunks: list[dict[int, int]]) -> Run:
    return Run(7, [IndexedChunk(8 + 3 * n, sum(one.values()), [*one], [*one.values()]) for n, one in enumerate(chunks)])


@given(UNITS)
@settings(suppress_health_check=[HealthCheck.too_slow])  # of a busy machine
def test_what_is_packed_is_found_again(chunks: list[dict[int, int]]) -> None:
    rows = postings.pack(run(chunks))
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
        scores[rows] += idf(holding[term], corpus.chunks) * saturate(counts, own, corpus.mean_length, B)
        found[term] = Postings(rows, counts, own)
    numbers = best_by_words(Matches({term: holding[term] for term in terms}, found), corpus)
    assert sorted(numbers) == np.flatnonzero(scores).tolist()
    assert scores[numbers] == pytest.approx(np.sort(scores[scores > 0])[::-1])


def test_terms_that_say_little_are_not_read() -> None:
    """What nearly every chunk has neither chooses nor costs; of a question of such words alone the rarest is read."""
    assert postings._select_rarest({1: 900, 2: 5, 3: 40, 4: 0}, 100) == [4, 2, 3]
    assert postings._select_rarest({1: 900, 2: 800}, 100) == [2]
