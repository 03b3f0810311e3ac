"""Where a conversation is cut into segments."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given, strategies as st

from memstore.derive.chunking import split_segments
from memstore.models import Message
from tests.unit.strategies import START, message

GAP = timedelta(hours=4)
COOKING = ["We baked bread with rye flour.", "The dough of the bread was sticky.", "Rye bread needs a hot oven."]
SAILING = ["The boat left the harbour at noon.", "Its sail was torn by wind.", "Wind and waves rocked the boat."]


def talk(steps: list[tuple[int, int]], said: list[str] | None = None) -> list[Message]:
    """Messages from (hours since the one before, tokens)."""
    found, hours = [], 0
    for seq, (pause, tokens) in enumerate(steps, 1):
        hours += pause
        text = f"line {seq}" if said is None else said[(seq - 1) % len(said)]
        found.append(message(seq, "user", text, tokens=tokens, occurred_at=START + timedelta(hours=hours)))
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


@pytest.mark.parametrize("closed_by", ["silence", "bound"])
def test_a_shift_of_topic_ends_a_segment(closed_by: str) -> None:
    said = COOKING * 2 + SAILING * 2
    steps = [(0, 8)] * 12 + ([(9, 8)] if closed_by == "silence" else [(0, 8)])
    found = cuts(talk(steps, [*said, SAILING[0]]))
    assert found[0] == (1, 6)
    assert found[1:] == ([(7, 12)] if closed_by == "silence" else [])


def test_one_odd_message_ends_none_nor_does_a_shift_near_the_end() -> None:
    said = [*COOKING * 6, SAILING[0], *COOKING * 6]
    assert cuts(talk([(0, 2)] * 37 + [(9, 2)], [*said, COOKING[0]])) == [(1, 37)]
    assert cuts(talk([(0, 8)] * 12 + [(9, 8)], [*COOKING * 3, *SAILING, SAILING[0]])) == [(1, 12)]


def cuts_by_page(messages: list[Message], page: int) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    for upto in range(page, len(messages) + page, page):
        found += cuts(messages[found[-1][1] if found else 0 : upto])
    return found


step = st.tuples(st.sampled_from([0, 1, 3, 5, 30]), st.integers(0, 120))


@given(
    st.lists(step, max_size=40),
    st.lists(st.sampled_from(COOKING + SAILING), min_size=40, max_size=40),
    st.integers(1, 30),
)
def test_segments_do_not_depend_on_how_the_messages_arrive(
    steps: list[tuple[int, int]], said: list[str], page: int
) -> None:
    messages = talk(steps, said)
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
