"""Facts of a talk: who is meant by I and you, what a short answer answers, what is worth keeping."""

from __future__ import annotations

import time
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memstore.ingest.rules.extraction import OPERATING_POINT, FactDraft, Said, extract
from memstore.ingest.rules.worth import ranked

MONDAY = datetime(2023, 5, 8, 13, 56, tzinfo=UTC)


def said(text: str, speaker: str | None = "Alice", role: str = "user") -> Said:
    return Said(text, role, speaker, MONDAY)


def facts(text: str, *before: Said, worth: float = 0.0) -> list[FactDraft]:
    return extract(said(text), before, worth=worth)


def texts(text: str, *before: Said, worth: float = 0.0) -> list[str]:
    return [fact.text for fact in facts(text, *before, worth=worth)]


BOB = said("I went to the market.", "Bob")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("Your support means a lot to me.", "Bob's support means a lot to Alice."),
        ("You inspired me to start painting.", "Bob inspired Alice to start painting."),
        ("I believe you are a great cook.", "Alice believes Bob is a great cook."),
        ("I learned so much from you.", "Alice learned so much from Bob."),
        ("Painting is a fun way to relax.", "Alice: Painting is a fun way to relax."),
        ("I know what can I do about it.", "Alice knows what can Alice do about it."),
        ("Running can boost your mood.", "Alice: Running can boost your mood."),
        ("You never know what a kind word can do.", "Alice: You never know what a kind word can do."),
        ("I nearly cried at the concert.", "Alice nearly cried at the concert."),
        ("Boring things: I have a dentist appointment.", "Alice has a dentist appointment."),
        ("I'm Alice, 34, from Leeds.", "Alice is 34, from Leeds."),
        ("🦦 I have a deadline in the summer.", "Alice has a deadline in the summer."),
        ("Painting calms the nerves after work.", "Alice: Painting calms the nerves after work."),
        ("We painted the kitchen and it suits us.", "Alice and others painted the kitchen and it suits them."),
        ("Researching adoption agencies for months now.", "Alice is researching adoption agencies for months now."),
        ("Gonna try that new bakery in town.", "Alice is going to try that new bakery in town."),
        ("Been swamped with the new job lately.", "Alice has been swamped with the new job lately."),
        ("I'd been looking for a flat.", "Alice had been looking for a flat."),
        ("I'm really happy with my new flat.", "Alice is happy with their new flat."),
        ("I run and swim in the lake every day.", "Alice runs and swims in the lake every day."),
        ("I want to run and swim in the lake.", "Alice wants to run and swim in the lake."),
        ("I've got a new bike, Bob!", "Alice has got a new bike."),
    ],
)
def test_between_two_named_people_it_is_known_who_is_meant(words, told):
    assert texts(words, BOB) == [told]


def test_whom_you_means_is_not_guessed():
    three = [said("Hello.", "Bob"), said("Hello.", "Carol")]
    assert texts("I'm proud of you and your garden.", *three) == []
    assert texts("I'm proud of you and your garden.", said("Hello.", None, "assistant")) == []
    assert texts("I'm proud of you and your garden.") == []


def test_who_is_addressed_is_left_out_by_any_short_name():
    before = said("Hello.", "Margaret")
    assert texts("I joined a choir in Leeds, Marg!", before) == ["Alice joined a choir in Leeds."]
    assert texts("Margaret, I joined a choir in Leeds.", before) == ["Alice joined a choir in Leeds."]
    assert texts("I met Carol, Margot and Margaret.", before) == ["Alice met Carol, Margot and Margaret."]


def test_a_short_answer_is_joined_with_its_question():
    asked = said("Congrats! How long have you been married?", "Bob")
    assert texts("5 years already!", asked) == ["How long has Alice been married? 5 years."]
    assert texts("Yeah, twice!", said("Have you been to Rome?", "Bob")) == ["Has Alice been to Rome? Yes, twice."]
    assert texts("No!", said("Do you have any pets?", "Bob")) == ["Does Alice have any pets? No."]
    assert texts("Luna and Oliver!", said("What are their names?", "Bob")) == ["What are their names? Luna and Oliver."]


def test_an_answer_that_says_all_is_not_joined():
    asked = said("Do you have any pets?", "Bob")
    assert texts("Yes! I have two dogs.", asked) == ["Alice has two dogs."]
    assert texts("Yes, I have two dogs.", asked) == ["Alice has two dogs."]


def test_an_answer_needs_a_question_of_the_other():
    assert texts("5 years already!", said("How long have you been married?", "Alice"), BOB) == []
    assert texts("5 years already!", said("How long have you been married?", "Alice")) == []


def test_what_it_is_comes_along():
    assert texts("I wrote that song last year! It's special to me.", BOB) == [
        "Alice wrote that song last year (2022). It's special to Alice."
    ]


def test_a_fact_tells_where_it_was_said():
    text = "Hello!  I'm allergic to peanuts,\nand I fly to Lisbon on Friday, so what can I eat?"
    places = [text[fact.start : fact.stop] for fact in facts(text)]
    assert places == ["I'm allergic to peanuts", "I fly to Lisbon on Friday"]


@pytest.mark.parametrize(
    "words",
    [
        "What a nice photo!", "Thanks for your help!", "Congrats on the new job!", "Good luck with everything!",
        "Keep up the good work!", "Don't give up.", "Let's meet soon.", "Have a great day!", "Take care, Bob!",
        "What do you think of my new bike?", "Maybe we could go together.", "Sounds like a plan.",
        "Bob, check this out!",
        "Je suis allée à Rome et c'est beau.", "Wir waren gestern in Rom und es war so schön.", "我昨天去了罗马。",
    ],
)  # fmt: skip
def test_greetings_thanks_commands_and_other_languages_state_nothing(words):
    assert texts(words, BOB) == []


@pytest.mark.parametrize(
    "words",
    [
        "I'm trying to fix a bug in my parser.", "I want to make sure it handles empty lists.",
        "I'm not sure how to sort them.", "I'd like you to rewrite the second paragraph.", "I need help with my essay.",
        "I'm looking for a good name for it.", "The function returns a list of numbers.", "Can you shorten my text?",
        "I'm having trouble with the integration tests.", "How can I improve my site?", "I need the code by lines.",
    ],
)  # fmt: skip
def test_a_task_for_an_assistant_is_no_fact(words):
    assert texts(words, said("How can I help you?", None, "assistant")) == []


def test_what_a_user_tells_an_assistant_beside_the_task_is():
    before = said("How can I help you?", None, "assistant")
    assert texts("I'm a nurse from Leeds, and I need help with my essay.", before) == ["Alice is a nurse from Leeds."]
    assert texts("I've booked a room at the library on 3 June, can you write an invitation?", before) == [
        "Alice has booked a room at the library on 3 June (3 June 2023)."
    ]


@pytest.mark.parametrize(
    ("words", "subject"),
    [
        ("My son is allergic to cats.", "Alice's son"),
        ("We're all allergic to nuts.", "Alice"),
        ("Anna has a severe nut allergy.", "Anna"),
        ("I have a nut allergy.", "Alice"),
        ("I'm lactose intolerant.", "Alice"),
        ("I'm on a low-salt diet.", "Alice"),
        ("Mia ist allergisch gegen Nüsse.", "Mia"),
        ("Ich habe eine Nussallergie.", "Alice"),
        ("Mein Sohn ist allergisch gegen Katzen.", "Alice"),
        ("Ich bin Vegetarierin.", "Alice"),
    ],
)
def test_whoever_has_an_allergy_it_is_a_constraint_at_any_worth(words, subject):
    (fact,) = facts(words, worth=1.0)
    assert (fact.type, fact.kind, fact.subject) == ("constraint", "semantic", subject)


def test_a_single_word_of_code_is_a_name():
    assert texts("I measured it with `pytest-cov`, and that helped.", BOB) == [
        "Alice measured it with pytest-cov, and that helped."
    ]
    assert texts("`I measured it with pytest.`", BOB) == []
    text = "Use `x`. I tried `pytest-cov` in Leeds."
    (fact,) = facts(text, BOB)
    assert text[fact.start : fact.stop] == "I tried `pytest-cov` in Leeds."


def test_the_kind_follows_the_type():
    found = facts("I went to Rome in June. I love tea. Always answer in metric units. Ich wohne in Köln.")
    assert [(fact.kind, fact.language) for fact in found] == [
        ("episodic", "en"), ("semantic", "en"), ("procedural", "en"), ("semantic", "de"),
    ]  # fmt: skip


def test_german_clauses_stand_for_themselves():
    assert texts("Hallo, ich bin Lehrerin: ich wohne in Köln, meine Schwester heißt Eva.") == [
        'Alice: "Ich bin Lehrerin."', 'Alice: "Ich wohne in Köln."', 'Alice: "Meine Schwester heißt Eva."',
    ]  # fmt: skip


def test_what_is_worth_more_is_given_at_a_higher_point():
    text = "Wow! I joined a pottery class in Leeds last week. It was so much fun. They are nice there."
    counts = [len(facts(text, BOB, worth=worth)) for worth in (0.0, OPERATING_POINT, 0.99)]
    assert counts == sorted(counts, reverse=True) and counts[0] > counts[1] == 1 > counts[2]
    assert "pottery" in facts(text, BOB, worth=OPERATING_POINT)[0].text


def test_what_a_message_says_second_counts_half():
    assert ranked([0.2, 0.8, 0.4]) == [0.05, 0.8, 0.2]
    assert ranked([1.0, 0.8, 1.0]) == [1.0, 0.2, 1.0]
    assert ranked([]) == []


PIECES = st.sampled_from(
    ["I ", "we ", "you ", "my ", "am ", "have ", "love ", "and ", "Bob, ", "yes, ", "? ", ". ", ", ", "allergic ",
     "ſ", "İ", "yesterday ", "in June ", "31 June ", '"', "ich bin ", "It's ", "last week ", "300 years ago ",
     "\n", "so ", "😀"]
)  # fmt: skip


@given(st.one_of(st.text(max_size=200), st.lists(PIECES, max_size=40).map("".join)), st.text(max_size=60))
def test_no_talk_raises_and_every_fact_is_in_the_message(text, asked):
    before = [said(asked + " How long have you?", "Bob")]
    found = extract(said(text), before, worth=0.0)
    assert found == extract(said(text), before, worth=0.0)
    for fact in found:
        assert 0 <= fact.start < fact.stop <= len(text)
        assert fact.text and 0 < fact.confidence < 1


@pytest.mark.parametrize(
    "piece",
    [
        "I am happy. ",
        "you know ",
        "and I & I ",
        "when I was. ",
        "my friend and ",
        "I'm allergic to nuts, and I ",
        "yes, ",
    ],
)
def test_a_megabyte_in_one_line_takes_seconds(piece):
    begin = time.process_time()
    facts(piece * (1_000_000 // len(piece)), BOB)
    # An honest run takes a fifth of a second; a pattern that backtracks takes minutes.
    assert time.process_time() - begin < 20
