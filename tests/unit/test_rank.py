"""Ranking is arithmetic: known values, order, ties."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memstore.models import Key, Matches, Tier, Unit
from memstore.retrieve.rank import (
    WEIGHTS,
    Candidate,
    best_of_each,
    bm25,
    named_speaker,
    ranked,
    recency,
    role_prior,
)

NOW = datetime(2024, 6, 1, tzinfo=UTC)


def unit(
    number: int, *, chunk: int = 0, days: float = 0, role: str | None = "user", tier: Tier = Tier.MESSAGES
) -> Unit:
    when = NOW - timedelta(days=days)
    return Unit(UUID(int=number), chunk, tier, UUID(int=1), number, role, "Alice", 0, 9, when)


def key(number: int) -> Key:
    return Key(UUID(int=number), 0)


def test_bm25_agrees_with_its_formula_by_hand() -> None:
    # Two terms; the first is in both units, the second in one. Ten units in all, mean length 5.
    matches = Matches(10, 5.0, [(key(1), 4, [1, 2]), (key(2), 8, [3, 0])])
    common, rare = math.log(1 + 8.5 / 2.5), math.log(1 + 9.5 / 1.5)

    def part(weight: float, count: int, length: int) -> float:
        return weight * count * 2.2 / (count + 1.2 * (0.6 + 0.4 * length / 5))

    one = part(common, 1, 4) + part(rare, 2, 4)
    other = part(common, 3, 8)
    assert bm25(matches) == {key(1): 1.0, key(2): pytest.approx(other / one)}


def test_bm25_of_nothing_is_nothing() -> None:
    assert bm25(Matches(0, 0.0)) == {}
    assert bm25(Matches(5, 3.0, [])) == {}


def test_a_rare_term_weighs_more_than_a_common_one() -> None:
    rows = [(key(n), 5, [1, 0]) for n in range(1, 9)] + [(key(9), 5, [0, 1])]
    scores = bm25(Matches(20, 5.0, rows))
    assert scores[key(9)] == 1.0 > scores[key(1)]


@given(st.lists(st.tuples(st.integers(1, 40), st.integers(0, 9), st.integers(0, 9)), max_size=20), st.integers(0, 99))
def test_bm25_is_between_0_and_1_and_the_best_has_1(rows: list[tuple[int, int, int]], units: int) -> None:
    matches = Matches(units, 5.0, [(key(n), length, [a, b]) for n, (length, a, b) in enumerate(rows)])
    scores = bm25(matches)
    assert all(0 <= score <= 1 for score in scores.values())
    if scores:
        assert max(scores.values()) == 1.0


def test_the_score_is_the_sum_of_its_parts() -> None:
    candidate = Candidate(unit(1), dict.fromkeys(WEIGHTS, 1.0))
    assert candidate.score == pytest.approx(sum(WEIGHTS.values()))
    assert set(candidate.parts) == set(WEIGHTS)


@pytest.mark.parametrize(
    ("query", "speaker"),
    [
        ("What did Alice say?", "Alice"),
        ("what did ALICE and nobody else say?", "Alice"),
        ("What did Alice tell Bob?", None),
        ("What did Malice say?", None),
        ("What does the user say?", None),
        ("", None),
    ],
)
def test_a_speaker_counts_when_only_one_is_named(query: str, speaker: str | None) -> None:
    assert named_speaker(query, {"Alice", "Bob", "user"}) == speaker


def test_priors() -> None:
    assert role_prior(unit(1)) == 1
    assert role_prior(unit(1, role="assistant")) == 0
    assert role_prior(unit(1, role=None, tier=Tier.FACTS)) == 1
    assert recency(unit(1), NOW) == 1
    assert recency(unit(1, days=90), NOW) == pytest.approx(0.5)
    assert recency(unit(1, days=-5), NOW) == 1


def test_equal_scores_have_one_order_whatever_order_they_came_in() -> None:
    candidates = [Candidate(unit(n, days=n % 3)) for n in range(12)]
    found = list(ranked(candidates).of(*Tier))
    assert found == list(ranked(candidates[::-1]).of(*Tier))
    assert found[0].unit.occurred_at == NOW


def test_an_item_is_given_once_by_its_best_unit() -> None:
    candidates = [Candidate(unit(1, chunk=2)), Candidate(unit(2)), Candidate(unit(1, chunk=0))]
    assert [one.unit.key for one in best_of_each(candidates)] == [(UUID(int=1), 2), (UUID(int=2), 0)]
