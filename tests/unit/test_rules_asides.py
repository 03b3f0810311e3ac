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
        "I'm allergic to latex, in case that's ever important.",
        "I'm allergic to latex, in case it matters some day.",
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
        ("Ich bin allergisch gegen Nüsse, falls das mal wichtig ist.", ['Alice: "Ich bin allergisch gegen Nüsse."']),
        ("Ich bin allergisch gegen Nüsse, falls das irgendwann eine Rolle spielt.",
         ['Alice: "Ich bin allergisch gegen Nüsse."']),
        ("My last name is Berger, by the way: Ann Berger.", ["Alice's last name is Berger: Ann Berger."]),
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


@pytest.mark.parametrize(
    ("said", "facts"),
    [
        ("I don't eat meat when we travel.", ["Alice doesn't eat meat when they travel."]),
        ("I'm vegetarian when we eat out.", ["Alice is vegetarian when they eat out."]),
        ("I'm vegan and eat fish when there is nothing else.",
         ["Alice is vegan and eat fish when there is nothing else."]),
        ("I'm allergic to nuts and I will move to Berlin if you come.", ["Alice is allergic to nuts."]),
        ("I'm allergic to apples only when you eat them raw.",
         ['Alice: "I\'m allergic to apples only when you eat them raw."']),
        ("I have asthma, especially when we run.", ["Alice has asthma, especially when they run."]),
        ("I can't eat nuts when on holiday.", ["Alice can't eat nuts when on holiday."]),
        ("When we're at my parents, I'm vegetarian.",
         ["When Alice and others are at their parents, Alice is vegetarian."]),
        ("I work late if it's important.", ["Alice works late if it's important."]),
        ("I take ibuprofen if it is needed.", ["Alice takes ibuprofen if it is needed."]),
        ("Always call me only if that matters.", ['Alice: "Always call me only if that matters."']),
    ],
)  # fmt: skip
def test_a_condition_that_is_meant_stays_with_its_statement(said, facts):
    assert told(said) == facts


@pytest.mark.parametrize(
    ("said", "facts"),
    [
        ("I'm allergic to nuts if we bake, my brother is allergic to milk.",
         ["Alice is allergic to nuts.", "Alice's brother is allergic to milk."]),
        ("I'm allergic to nuts (in case we cook) and eggs.",
         ["Alice is allergic to nuts.", "Alice is allergic to eggs."]),
        ("I'm allergic, as I said, to nuts and eggs.", ["Alice is allergic to nuts.", "Alice is allergic to eggs."]),
        ("I'm allergic to nuts if we all go together to that lovely little restaurant next to the old station that you"
         " told me about when you came here the last time in spring.", ["Alice is allergic to nuts."]),
        ("If we read aloud, I'm dyslexic.", ["Alice is dyslexic."]),
        ("If we run, I have asthma.", ["Alice has asthma."]),
        ("If you recommend a restaurant, I'm vegan.", ["Alice is vegan."]),
        ("I have a dog, as I said, a cat, and a bird.",
         ["Alice has a dog.", "Alice has a cat.", "Alice has a bird."]),
        ("My name is Ann, by the way, a nurse from Bern.", ["Alice's name is Ann, a nurse from Bern."]),
        ('Tom said "I am allergic to nuts if you cook with them" and left.', []),
        ("J’ai de l’asthme, au fait.", ['Alice: "J’ai de l’asthme."']),
    ],
)  # fmt: skip
def test_a_condition_takes_nothing_else_with_it(said, facts):
    assert told(said) == facts


@pytest.mark.parametrize(
    ("said", "facts"),
    [
        ("I live in Leeds and just adopted a dog.", ["Alice lives in Leeds.", "Alice just adopted a dog."]),
        ("I live in Leeds and actually have a dog.", ["Alice lives in Leeds.", "Alice has a dog."]),
        ("I work at Siemens and as a tutor.", ["Alice works at Siemens.", "Alice works as a tutor."]),
        ("I'm allergic to nuts and eggs which are raw.",
         ["Alice is allergic to nuts.", "Alice is allergic to eggs which are raw."]),
        ("I live in Bern, like my sister.", ["Alice lives in Bern, like their sister."]),
        ("I'm allergic to nuts, unfortunately.", ["Alice is allergic to nuts, unfortunately."]),
    ],
)  # fmt: skip
def test_what_two_clauses_say_is_told_apart(said, facts):
    assert told(said) == facts


def test_what_is_liked_beside_something_else_is_known_of_itself():
    found = slotted(Said("I live in Bern and like hiking.", "user", "Alice", MONDAY))
    assert [one.slot and one.slot.attribute for one in found] == ["residence", "likes/hiking"]


def test_a_list_of_favourites_is_one_fact():
    assert told("My favourite subjects are art and music.") == ["Alice's favourite subjects are art and music."]


@given(st.lists(st.sampled_from([*"if,. -–\n()’", "'", '"', "by the way", "allergic to ", "I'm ", "we ", "in case "])))
def test_every_character_keeps_its_place(pieces):
    text = "".join(pieces)
    assert all(left in (was, " ") for was, left in zip(text, without_asides(text), strict=True))


@pytest.mark.parametrize(
    "piece",
    [
        ", by the way", "allergic to nuts, ", "I'm allergic if we go ", "\n\n\n  ", "   ", "I have ", "when you ",
        "I'm vegan, ",
    ],
)  # fmt: skip
def test_a_long_message_takes_time_in_proportion(piece):
    begin = time.perf_counter()
    without_asides(piece * (60_000 // len(piece)))
    assert time.perf_counter() - begin < 5


def test_a_condition_goes_from_before_a_statement_wherever_that_begins():
    assert without_asides("Hi. If we cook, I'm allergic to nuts.").split() == ["Hi.", "I'm", "allergic", "to", "nuts."]
