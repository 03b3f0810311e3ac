"""The parts of packing: the window that moves in steps, what is said already, what is left."""

from __future__ import annotations

from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from memstore.assemble.compose import Material, compose
from memstore.assemble.cut import cut_closely
from memstore.assemble.fill import fullest
from memstore.assemble.leftover import uncovered_first
from memstore.assemble.offers import Offering
from memstore.assemble.pack import Packing
from memstore.assemble.said import Said
from memstore.assemble.turns import turns
from memstore.assemble.window import MOST, window
from memstore.models import Hit, Section, Tier
from memstore.testing import WordCounter
from tests.unit.strategies import START, UUID, message

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


def hit(number: int, text: str) -> Hit:
    return Hit(Tier.MESSAGES, UUID(int=number), text, 1.0 / number, {}, (), START, UUID(int=2), number, speaker="Ann")


def test_what_the_question_asks_and_nobody_said_yet_comes_first() -> None:
    told = ["We sailed to Corfu.", "The boat was blue.", "Corfu again!", "Our ferry had two boats.", "A plain day."]
    pieces = Offering(WordCounter()).hits([hit(n, text) for n, text in enumerate(told, 1)])
    packing = Packing()
    packing.add(pieces[0])
    ordered = uncovered_first(packing, pieces, "Which boats and which ferry took us to Corfu?")
    assert [piece.text for piece in ordered] == [told[place] for place in (3, 0, 1, 2, 4)]
    assert uncovered_first(packing, pieces, "And Corfu?") == pieces


def test_what_stands_beside_a_hit_comes_before_what_is_merely_newer() -> None:
    said = [message(n, "user", f"line {n} tells of {n * n} things and of {n * 7}") for n in range(1, 60)]
    found, _ = turns(said)
    far = Hit(Tier.MESSAGES, said[9].id, said[9].text or "", 1.0, {}, (), START, UUID(int=2), 10, speaker="Ann")
    given = Material(
        question={"role": "user", "content": "?"},
        turns=found[::-1],
        hits=[far],
        sections=[Section("recent", maximum=0.3)],
    )
    lines = [one.id for one in compose(given, 300, WordCounter()).receipt.included if one.section == "hits"]
    assert lines[:3] == [said[9].id, said[10].id, said[8].id]
    assert lines[3:], "the newest after them"


def test_a_beginning_ends_with_a_sentence_or_else_with_a_word() -> None:
    text = "Ann sails. She has a boat that is old and blue, and she likes it."
    assert cut_closely(text, 6, WordCounter()) == "Ann sails. She has a […]"
    assert cut_closely(text, 3, WordCounter()) == "Ann sails. […]"
    assert cut_closely("日本語", 0, WordCounter()) is None
