"""The parts of packing: the window that moves in steps, what is said already, the exact fill."""

from __future__ import annotations

from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from memstore.assemble.fill import fullest
from memstore.assemble.said import Said
from memstore.assemble.window import MOST, window
from tests.unit.strategies import UUID

sizes = st.lists(st.integers(1, 60), max_size=9)


@given(sizes, st.integers(0, 300))
def test_the_fill_is_the_fullest_there_is(pieces: list[int], room: int) -> None:
    chosen = fullest(pieces, room)
    best = max(
        (sum(some) for count in range(len(pieces) + 1) for some in combinations(pieces, count) if sum(some) <= room),
        default=0,
    )
    assert sum(pieces[place] for place in chosen) == best
    assert chosen == sorted(set(chosen))


@given(st.lists(st.integers(1, 90), min_size=1, max_size=60), st.integers(0, 900))
def test_a_window_fits_and_is_not_much_shorter_than_it_may_be(tokens: list[int], room: int) -> None:
    starts = list(range(len(tokens), 0, -1))
    count, most = window(starts, tokens, room), window(starts, tokens, room, steps=False)
    assert sum(tokens[:count]) <= room
    assert sum(tokens[:count]) >= sum(tokens[:most]) - MOST * room
    assert (count == len(tokens)) == (sum(tokens) <= room)


def test_a_window_begins_at_the_same_message_for_many_turns() -> None:
    begins = []
    for newest in range(200, 400, 2):
        starts = list(range(newest, 0, -1))
        count = window(starts, [35 + start % 7 for start in starts], 6000)
        begins.append(starts[count - 1])
    assert begins == sorted(begins)
    assert len(set(begins)) <= 100 / 3


def test_what_is_repeated_quoted_or_taken_over_is_said_already() -> None:
    said = Said()
    said.add("We fly to Lisbon on Friday, at nine. The hotel is booked for three nights.")
    assert said.says("we fly to lisbon on friday at nine")
    assert said.says("The hotel is booked, for three nights!")
    assert not said.says("We fly to Porto on Friday, at nine in the evening")
    assert not said.says("We fly to")  # too short to tell
    said.add("Ann is allergic to peanuts", [UUID(int=1)])
    assert said.says("I'm allergic to peanuts.", UUID(int=1))
    assert not said.says("I'm allergic to peanuts.", UUID(int=2))
    assert not said.says("I'm allergic to peanuts, and my flight leaves on Friday.", UUID(int=1))
