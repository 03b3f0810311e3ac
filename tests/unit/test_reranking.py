"""How a reranker's scores join ours: pure."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import pairwise
from uuid import UUID

import pytest
from hypothesis import given, strategies as st

from memstore.models import Hit, Tier
from memstore.search.recall import PART, READ, rerank
from tests.helpers.fakes import ScriptedReranker

SAID = datetime(2026, 5, 1, tzinfo=UTC)


def hits(*scores: float) -> list[Hit]:
    """Give hits with these scores, whose texts are their numbers."""
    return [
        Hit(Tier.MESSAGES, UUID(int=number + 1), str(number), score, {"semantic": score}, (), SAID)
        for number, score in enumerate(scores)
    ]


def by_numbers(*scores: float) -> ScriptedReranker:
    return ScriptedReranker(lambda _, text: scores[int(text)])


def order(found: list[Hit]) -> list[str]:
    return [hit.text for hit in found]


def test_both_count_the_same_whatever_the_scale() -> None:
    ours = hits(0.9, 0.8, 0.7, 0.5)
    for scale in (1.0, 1000.0, 1e-3):
        found = rerank(by_numbers(*(scale * one for one in (0.0, 0.5, 2.0, 1.0))), "?", ours)
        assert order(found) == ["2", "0", "1", "3"]
        assert [hit.parts[PART] for hit in found] == [0.4, 0.0, 0.1, 0.2]
        assert all(hit.score == pytest.approx(sum(hit.parts.values())) for hit in found)


def test_equal_scores_of_it_leave_our_order_and_equal_scores_of_ours_leave_it_its_own() -> None:
    assert order(rerank(by_numbers(7, 7, 7), "?", hits(0.9, 0.8, 0.7))) == ["0", "1", "2"]
    assert order(rerank(by_numbers(1, 3, 2), "?", hits(0.5, 0.5, 0.5))) == ["1", "2", "0"]


@given(st.lists(st.floats(0, 3), min_size=1, max_size=READ + 20), st.randoms(use_true_random=False))
def test_nothing_is_lost_and_what_was_not_read_stays_behind_as_it_was(scores: list[float], random: object) -> None:
    ours = hits(*sorted((round(one, 6) for one in scores), reverse=True))
    found = rerank(by_numbers(*(random.uniform(-9, 9) for _ in ours)), "?", ours)  # type: ignore[attr-defined]
    assert sorted(order(found)) == sorted(order(ours))
    assert found[READ:] == ours[READ:]
    assert all(before.score >= after.score for before, after in pairwise(found))
