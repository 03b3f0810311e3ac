from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memstore.derive.summaries.selection import choose, keeps

TALK = [
    "Hey, good to see you!",
    "We decided to take the ferry to Ischia on Friday.",
    "Oh, really?",
    "Yes, the ferry to Ischia leaves on Friday.",
    "My sister is allergic to peanuts.",
    "Thanks, take care!",
]


def picked(sentences: list[str], limit: int, bonus: list[float] | None = None) -> list[int]:
    return choose(sentences, [len(s.split()) for s in sentences], limit, bonus)


def test_what_matters_is_chosen_once() -> None:
    assert picked(TALK, 17) == [1, 4]


def test_the_bonus_decides_between_equals() -> None:
    assert picked(TALK[1:2] * 3, 10, [0.1, 0.3, 0.2]) == [1]


def test_equals_go_by_their_order() -> None:
    assert picked(["Ada waits.", "Bob waits."], 2, [0, 0]) == [0]
    assert picked(["Bob waits.", "Ada waits."], 2, [0, 0]) == [0]


def test_what_adds_nothing_is_left_out() -> None:
    assert picked(TALK[4:5] * 4, 100) == [0]


@given(
    st.lists(st.sampled_from(TALK) | st.text(max_size=20), max_size=12),
    st.lists(st.integers(0, 9), min_size=12, max_size=12),
    st.integers(0, 30),
)
def test_the_limit_holds(sentences: list[str], costs: list[int], limit: int) -> None:
    costs = costs[: len(sentences)]
    chosen = choose(sentences, costs, limit)
    assert chosen == sorted(set(chosen)) == choose(sentences, costs, limit)
    assert sum(costs[i] for i in chosen) <= limit
    if min(costs, default=99) <= limit:
        assert chosen


def test_places_do_not_matter() -> None:
    for limit in range(5, 30):
        assert {TALK[i] for i in picked(TALK, limit)} == {TALK[::-1][i] for i in picked(TALK[::-1], limit)}


def test_nothing_gives_nothing() -> None:
    assert choose([], [], 10) == []
    assert picked(TALK, 1) == []


@pytest.mark.parametrize("wrong", ["costs", "bonus"])
def test_unequal_lengths_are_refused(wrong: str) -> None:
    with pytest.raises(ValueError, match="equally many"):
        choose(TALK, [1] * (5 if wrong == "costs" else 6), 9, [] if wrong == "bonus" else None)


@pytest.mark.parametrize(
    ("better", "worse"),
    [
        ("I moved there in 2019.", "It is a place like others there."),
        ("She met Bob in Lisbon.", "She met someone in town."),
        ("We decided to sell the house.", "They like the look of it."),
        ("It is a place like others there.", "Is it a place like others there?"),
        ("It is a place like others there.", "Thanks for telling me about that place."),
        ("It is a place like others there.", "It is nice."),
        ("Wir haben beschlossen, das Haus zu verkaufen.", "Hallo, schön von dir zu hören."),
        ("我们决定卖掉房子。", "我们要卖掉房子吗？"),
    ],
)
def test_keeps(better: str, worse: str) -> None:
    assert 1 >= keeps(better) > keeps(worse) >= -1
