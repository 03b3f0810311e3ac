from __future__ import annotations

import gc

import pytest

from memstore.providers import tiktoken
from memstore.providers.tiktoken import CountCache


class Counting:
    def __init__(self) -> None:
        self.asked: list[str] = []

    def __call__(self, text: str) -> int:
        self.asked.append(text)
        return len(text)


def test_what_was_counted_is_not_counted_again() -> None:
    encoder = Counting()
    count = CountCache(encoder)
    texts = ["", "user", "a \ud800 b", "word " * 1000]
    assert [count(text) for text in texts * 3] == [len(text) for text in texts] * 3
    assert encoder.asked == texts


def test_only_so_many_are_kept_and_what_is_used_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tiktoken, "MAX_COUNTS", 5)
    encoder = Counting()
    count = CountCache(encoder)
    for number in range(40):
        count("used on every turn")
        count(f"number {number}")
    assert encoder.asked.count("used on every turn") == 1
    assert len(count._counts) + len(count._older) <= 10
    count("number 0")
    assert encoder.asked.count("number 0") == 2


def test_no_words_stay_and_digests_are_of_no_use_elsewhere() -> None:
    words = "I'm allergic to peanuts and live in Porto."
    counters = [CountCache(len), CountCache(len)]
    kept = []
    for count in counters:
        count(words)
        kept.append(set(count._counts))
        referents = gc.get_referents(count, count.__dict__, count._counts)
        assert all(words not in str(one) for one in referents)
    assert {len(digest) for digest in kept[0]} == {16}
    assert not kept[0] & kept[1]
