"""Free sentences of ordinary talk: what nobody would miss is a fact, and no sentence is garbled."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial

import pytest

from tests import by_rules

AT = datetime(2026, 9, 2, 12, tzinfo=UTC)  # a Wednesday
read, told, slots = (partial(one, at=AT) for one in (by_rules.read, by_rules.told, by_rules.slots))


@pytest.mark.parametrize(
    ("said", "type"),
    [
        ("Leo can't have gluten, he's coeliac.", "constraint"),
        ("My daughter can't eat eggs.", "constraint"),
        ("My nephew Leo is coeliac.", "constraint"),
        ("My sister is vegan.", "constraint"),
        ("I use a wheelchair.", "constraint"),
        ("Marta isn't allergic to nuts.", "constraint"),
        ("Sabine verträgt keine Nüsse.", "constraint"),
        ("Ich vertrage keine Laktose.", "constraint"),
        ("Meine Tochter verträgt keine Milch.", "constraint"),
        ("Ich sitze im Rollstuhl.", "constraint"),
        ("Kein Fisch für mich.", "constraint"),
        ("I always want an aisle seat.", "preference"),
        ("I only fly with Lufthansa.", "preference"),
        ("Ich fliege nur mit Lufthansa.", "preference"),
        ("Bitte immer per E-Mail bestätigen.", "procedure"),
        ("Please always confirm by e-mail.", "procedure"),
        ("my new email is x@y.z", "identity"),
        ("Bruno ist leider im Oktober gestorben.", "event"),
    ],
)
def test_what_matters_to_whoever_books_or_cooks_is_a_sure_fact_of_its_type(said: str, type: str) -> None:
    (fact,) = read(said)
    assert fact.draft.type == type
    assert fact.draft.confidence >= 0.85


@pytest.mark.parametrize("said", ["Kein Problem für mich.", "Bitte einmal bestätigen.", "I want a table by Friday."])
def test_what_is_said_of_the_moment_is_none(said: str) -> None:
    assert told(said) == []


@pytest.mark.parametrize(
    "said",
    [
        "Wir fahren im Mai nach Rom.", "Sabine liegt im Krankenhaus.", "Im Sommer fahren wir nach Rom.",
        "Wir sind im Oktober in Rom.", "paul bleibt im training", "Paul bleibt im Sommer in Bonn.",
        "im Januar nach Rom", "im krankenhaus liegt sabine", "Das Buch liegt im Auto.", "Ich wohne im Norden.",
        "Wir treffen uns im Park, im Süden der Stadt.",
    ],
)  # fmt: skip
def test_the_german_im_is_no_pronoun(said: str) -> None:
    assert not any("Alice is" in one or "Alice's" in one for one in told(said))


@pytest.mark.parametrize(
    ("said", "fact"),
    [
        ("im vegan", "Alice is vegan."),
        ("yeah im allergic to nuts", "Alice is allergic to nuts."),
        ("So im 34 years old now", "Alice is 34 years old now."),
        ("I live in Leeds and im a nurse", "Alice lives in Leeds and Alice is a nurse."),
    ],
)
def test_the_hasty_im_is_one(said: str, fact: str) -> None:
    assert fact in told(said)


@pytest.mark.parametrize(
    "said",
    [
        "Ich wohne in Kassel, wir kommen mit dem Auto.", "Ich wohne in Kassel, meine Frau fährt mit dem Zug.",
        "Ich arbeite bei Siemens und wir leben mit zwei Katzen.",
        "Ich wohne in Kassel, man kommt mit dem Auto hin.",
    ],
)  # fmt: skip
def test_a_part_with_a_subject_of_its_own_gets_no_other(said: str) -> None:
    assert slots(said)
    assert not any(f"{verb} {other}" in one for one in told(said) for verb in ("wohne", "arbeite") for other in (
        "wir", "meine", "man"))  # fmt: skip


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ("Dinner is booked for the five of us.", "the five of us"),
        ("I booked a table for the five of us.", "the five of us"),
        ("She'll tell us on Friday.", "She'll tell us on Friday"),
        ("It was just the two of us on our own in Porto last year.", "on our own"),
    ],
)
def test_who_we_are_stays_as_it_was_said_where_no_rewriting_is_good(said: str, words: str) -> None:
    (fact,) = told(said)
    assert fact.startswith("Alice: ")
    assert words in fact


@pytest.mark.parametrize(
    "said",
    [
        "How long do I boil an egg so that it's soft?", "How many eggs do I need, because I'm alone?",
        "Which kind of flour do I take so it rises?", "When do I start, because I have no time?",
    ],
)  # fmt: skip
def test_a_question_that_says_why_it_is_asked_states_nothing_of_what_it_asks(said: str) -> None:
    assert not any(word in one for one in told(said) for word in ("egg", "flour", "start"))


@pytest.mark.parametrize("said", ["When I was young I lived in Bonn.", "What I do at work is testing."])
def test_a_sentence_that_begins_like_a_question_is_still_told(said: str) -> None:
    assert len(told(said)) == 1


@pytest.mark.parametrize("said", ["Hi, I'm Marta Kowalski.", "Ich bin Marta Kowalski.", "I'm Marta Kowalski!"])
def test_a_first_and_a_last_name_are_a_name(said: str) -> None:
    assert slots(said) == [("Alice", "name", "marta kowalski")]


@pytest.mark.parametrize(
    "said",
    [
        "I'm South African.", "I'm Roman Catholic.",
        "I'm Marta Kowalski's sister.", "I'm Marta.", "I'm Senior Engineer.",
        "I'm so happy",
        "Ich bin Deutsche Meisterin.",
        "I'm Team Lead.", "Ich bin Mitte Vierzig.", "Ich bin Bayern Fan.", "If I'm Marta Kowalski, who are you?",
    ],
)  # fmt: skip
def test_nothing_else_is(said: str) -> None:
    assert not any(attribute == "name" for _, attribute, _ in slots(said))


def test_who_cannot_have_guests_has_no_diet() -> None:
    assert [one.draft.type for one in read("My daughter can't have friends over.")] != ["constraint"]


def test_what_is_done_for_a_while_ends() -> None:
    (fact,) = read("I'm taking it easy until Thursday.")
    assert fact.draft.valid_to == datetime(2026, 9, 4, tzinfo=UTC)


@pytest.mark.parametrize(
    ("said", "day"),
    [
        ("My flight is confirmed for 9 October.", "9 October 2026"),
        ("We split up in August.", "August 2026"),
        ("Meine Schwester Sabine arbeitet bis zum 8. Oktober in Kassel.", "8. Oktober 2026"),
    ],
)
def test_a_date_without_a_year_is_the_one_that_is_meant(said: str, day: str) -> None:
    assert any(f"({day})" in one for one in told(said))
