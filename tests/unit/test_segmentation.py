"""Where a conversation is cut into segments."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given, strategies as st

from memstore.derive.chunking import split_segments
from memstore.models import Message
from tests.unit.strategies import START, message

GAP = timedelta(hours=4)


def talk(steps: list[tuple[int, int]]) -> list[Message]:
    """Messages from (hours since the one before, tokens)."""
    found, hours = [], 0
    for seq, (pause, tokens) in enumerate(steps, 1):
        hours += pause
        found.append(message(seq, "user", f"line {seq}", tokens=tokens, occurred_at=START + timedelta(hours=hours)))
    return found


def cuts(messages: list[Message], tokens: int = 100) -> list[tuple[int, int]]:
    return [(one[0].seq, one[-1].seq) for one in split_segments(messages, GAP, tokens)]


@pytest.mark.parametrize(
    ("steps", "segments"),
    [
        ([(0, 1), (1, 1), (5, 1), (1, 1)], [(1, 2)]),
        ([(0, 1), (4, 1), (4, 1)], []),
        ([(0, 60), (0, 40), (0, 10), (0, 95), (0, 1)], [(1, 2), (3, 3)]),
        ([(0, 500)], [(1, 1)]),
        ([(0, 10), (0, 500)], [(1, 1), (2, 2)]),
        ([(0, 0)] * 250, [(1, 100), (101, 200)]),
    ],
    ids=["silence", "the last one waits", "bound", "one long message", "a long one after", "no text"],
)
def test_a_silence_or_the_bound_ends_a_segment(steps: list[tuple[int, int]], segments: list[tuple[int, int]]) -> None:
    assert cuts(talk(steps)) == segments


def cuts_by_page(messages: list[Message], page: int) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    for upto in range(page, len(messages) + page, page):
        found += cuts(messages[found[-1][1] if found else 0 : upto])
    return found


step = st.tuples(st.sampled_from([0, 1, 3, 5, 30]), st.integers(0, 120))


@given(st.lists(step, max_size=40), st.integers(1, 30))
def test_segments_do_not_depend_on_how_the_messages_arrive(steps: list[tuple[int, int]], page: int) -> None:
    messages = talk(steps)
    whole = cuts(messages)
    assert cuts_by_page(messages, page) == whole
    assert [begin for begin, _ in whole] == [1, *(end + 1 for _, end in whole[:-1])][: len(whole)]
    for begin, end in whole:
        assert begin == end or sum(max(1, one.tokens) for one in messages[begin - 1 : end]) <= 100


def worked(steps: list[tuple[str, int]]) -> list[Message]:
    """Messages from (role, tokens); "call" is an assistant's that calls a tool."""
    return [
        message(seq, "assistant", None, tool_calls=[{}], tokens=tokens)
        if role == "call"
        else message(seq, role, f"line {seq}", tokens=tokens)
        for seq, (role, tokens) in enumerate(steps, 1)
    ]


def test_results_of_tools_are_in_the_segment_of_their_call() -> None:
    said, after = [("user", 40), ("assistant", 40)], ("user", 30)
    assert cuts(worked([*said, ("call", 10), ("tool", 500), ("tool", 9), after])) == [(1, 2), (3, 5)]
    assert cuts(worked([("call", 110), ("tool", 9), after])) == [(1, 2)]
    assert cuts(worked([("call", 9)] + [("tool", 100)] * 20))[0] == (1, 9), "what never ends is cut somewhere"


part = st.tuples(st.sampled_from(["user", "call", "tool", "tool"]), st.integers(0, 120))


@given(st.lists(part, max_size=60), st.integers(1, 30))
def test_segments_of_calls_do_not_depend_on_how_the_messages_arrive(steps: list[tuple[str, int]], page: int) -> None:
    assert cuts_by_page(worked(steps), page) == cuts(worked(steps))
