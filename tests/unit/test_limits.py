"""How often a caller of the server may ask, by a clock of the test's own."""

from __future__ import annotations

import pytest

from memstore.server.http import limits
from memstore.server.http.limits import Buckets


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_ten_seconds_worth_at_once_and_then_as_they_come() -> None:
    clock = Clock()
    buckets = Buckets(2.0, clock)
    assert [buckets.take("alice") for _ in range(20)] == [0.0] * 20
    assert buckets.take("alice") == pytest.approx(0.5)
    clock.now = 0.4
    assert buckets.take("alice") == pytest.approx(0.1)
    clock.now = 1.0
    assert [buckets.take("alice") for _ in range(2)] == [0.0, 0.0]
    assert buckets.take("alice") > 0
    clock.now = 1000.0
    assert [buckets.take("alice") for _ in range(20)] == [0.0] * 20
    assert buckets.take("alice") > 0


def test_who_only_asks_how_long_to_wait_takes_nothing() -> None:
    clock = Clock()
    buckets = Buckets(0.1, clock)
    assert [buckets.wait("alice"), buckets.wait("alice"), buckets.take("alice")] == [0.0, 0.0, 0.0]
    assert buckets.wait("alice") == buckets.take("alice") == pytest.approx(10)


def test_callers_do_not_take_from_each_other() -> None:
    buckets = Buckets(0.01, Clock())
    assert (buckets.take("alice"), buckets.take("bob")) == (0.0, 0.0)
    assert buckets.take("alice") == buckets.take("bob") == pytest.approx(100)


def test_no_rate_is_no_limit() -> None:
    buckets = Buckets(0.0, Clock())
    assert {buckets.take("alice") for _ in range(1000)} == {0.0}


def test_full_buckets_are_forgotten_and_empty_ones_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MOST_KEPT", 50)
    clock = Clock()
    buckets = Buckets(0.1, clock)
    for number in range(50):
        assert buckets.take(f"{number}") == 0.0
    clock.now = 9.0
    assert buckets.take("late") == 0.0
    clock.now = 11.0
    assert buckets.take("one more") == 0.0
    assert set(buckets._left) == {"late", "one more"}
    assert buckets.take("late") > 0
