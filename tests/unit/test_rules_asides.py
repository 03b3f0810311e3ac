"""What is said beside a statement is no part of the fact, and no fact is glued together from two clauses."""

from __future__ import annotations

import time
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memstore.ingest.rules.asides import without_asides
from memstore.ingest.rules.drafts import Said
from memstore.ingest.rules.slotted import slotted

MONDAY = datetime(2026, 3, 2, 9, tzinfo=UTC)


def told(said: str) -> list[str]:
    return [one.draft.text for one in slotted(Said(said, "user", "Alice", MONDAY))]


@pytest.mark.parametrize(
    "said",
    [
        "I'm allergic to latex, by the way, if we do the balloon experiment.",
        "I’m allergic to latex if that matters.",
        "I'm allergic to latex, in case that's important for the lab.",
        "I'm allergic to latex – just so you know.",
        "I'm allergic, as I said, to latex.",
        "I'm allergic to latex, you know, so no gloves please.",
        "I'm allergic to latex, of course.",
        "I'm allergic to latex when we do experiments.",
        "I'm allergic to latex, since you ask.",
        "I'm allergic to latex in case you bring balloons, so please don't.",
        "If we blow up balloons, I'm allergic to latex.",
        "By the way, I'm allergic to latex, since we are talking about gloves.",
        "I'm allergic to latex, mind you.",
        "I'm allergic to latex (in case that matters).",
        "I'm allergic to latex, but if we use gloves, mine are made of vinyl.",
    ],
)
def test_an_allergy_is_told_without_what_is_said_beside_it(said):
    assert told(said) == ["Alice is allergic to latex."]


@pytest.mark.parametrize(
    ("said", "facts"),
    [
        ("I'm allergic to eggs, in case you're baking, and to milk.",
         ["Alice is allergic to eggs.", "Alice is allergic to milk."]),
        ("I'm allergic to kiwis, as I mentioned before, and hazelnuts.",
         ["Alice is allergic to kiwis.", "Alice is allergic to hazelnuts."]),
        ("I'm allergic to plums unless they are cooked.", ["Alice is allergic to plums unless they are cooked."]),
        ("I'm allergic to wool, especially socks.", ["Alice is allergic to wool, especially socks."]),
        ("I'm vegetarian, by the way, if you recommend recipes.", ["Alice is vegetarian."]),
        ("My son is allergic to milk, by the way, if we bake something.", ["Alice's son is allergic to milk."]),
        ("I work at Siemens, as I mentioned before, as an engineer.",
         ["Alice works at Siemens.", "Alice works as an engineer."]),
        ("I live in Bern and, as I said, work as a nurse.", ["Alice lives in Bern.", "Alice works as a nurse."]),
        ("I can't eat gluten, by the way, if we order pizza.", ["Alice can't eat gluten."]),
        ("I have a peanut allergy, in case we go out.", ["Alice has a peanut allergy."]),
        ("I'm allergic to pollen when the birches bloom.", ["Alice is allergic to pollen when the birches bloom."]),
        ("I live in Bern, if that helps.", ["Alice lives in Bern."]),
        ("If I'm allergic to nuts, what can I eat?", []),
        ("Ich bin allergisch gegen Nüsse, falls wir zusammen kochen.", ['Alice: "Ich bin allergisch gegen Nüsse."']),
        ("Je suis allergique aux noix, au fait, si on cuisine ensemble.", ['Alice: "Je suis allergique aux noix."']),
        ("Soy alérgica a las nueces, por cierto, por si cocinamos juntos.",
         ['Alice: "Soy alérgica a las nueces."']),
    ],
)  # fmt: skip
def test_what_belongs_to_a_statement_stays_with_it(said, facts):
    assert told(said) == facts


@pytest.mark.parametrize(
    ("said", "facts"),
    [
        ("My favourite subject is art, maths is not my thing.",
         ["Alice's favourite subject is art, maths is not their thing."]),
        ("My favourite colour is blue, red is ugly.", ["Alice's favourite colour is blue, red is ugly."]),
        ("I'm allergic to cats, dogs make me happy.", ["Alice is allergic to cats, dogs make Alice happy."]),
        ("I'm allergic to dust, every old house makes me sneeze.",
         ["Alice is allergic to dust, every old house makes Alice sneeze."]),
        ("My sister lives in Lyon, her flat is small.", ["Alice's sister lives in Lyon, her flat is small."]),
        ("My brother works as a cook, his hours are long.",
         ["Alice's brother works as a cook, his hours are long."]),
        ("My dog is called Rex, my cat Miso.",
         ["Alice's dog is called Rex, their cat Miso.", 'Alice: "My dog is called Rex."']),
        ("I like the sea, like we did in Rome.", ["Alice likes the sea, like they did in Rome."]),
    ],
)  # fmt: skip
def test_two_clauses_are_not_glued(said, facts):
    assert told(said) == facts


def test_a_list_of_favourites_is_one_fact():
    assert told("My favourite subjects are art and music.") == ["Alice's favourite subjects are art and music."]


@given(st.lists(st.sampled_from([*"if,. -–\n()", "by the way", "allergic to ", "I'm ", "we ", "in case "])))
def test_every_character_keeps_its_place(pieces):
    text = "".join(pieces)
    assert len(without_asides(text)) == len(text)


@pytest.mark.parametrize(
    "piece", [", by the way", "allergic to nuts, ", "I'm allergic if we go ", "\n\n\n  ", "   ", "I have ", "when you "]
)
def test_a_long_message_takes_time_in_proportion(piece):
    begin = time.perf_counter()
    without_asides(piece * (60_000 // len(piece)))
    assert time.perf_counter() - begin < 5


def test_a_condition_goes_from_before_a_statement_wherever_that_begins():
    assert without_asides("Hi. If we cook, I'm allergic to nuts.").split() == ["Hi.", "I'm", "allergic", "to", "nuts."]
