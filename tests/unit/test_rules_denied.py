"""What somebody has not: who denies an allergy of one thing has not denied it of another, nor of somebody else."""

from __future__ import annotations

import pytest

from tests.by_rules import read, slots, told


@pytest.mark.parametrize(
    ("said", "facts"),
    [
        ("I'm not allergic to peanuts, only to almonds.", ["Alice is not allergic to peanuts, only to almonds."]),
        ("I'm not allergic to peanuts, just to almonds and cashews.",
         ["Alice is not allergic to peanuts, just to almonds and cashews."]),
        ("I'm not allergic to any nuts except peanuts and almonds.",
         ["Alice is not allergic to any nuts except peanuts and almonds."]),
        ("I'm allergic to nuts, except almonds and pecans.", ["Alice is allergic to nuts, except almonds and pecans."]),
        ("I can't eat peanuts, just almonds and cashews.", ["Alice can't eat peanuts, just almonds and cashews."]),
        ("My son is allergic to nuts, my daughter to bees.",
         ["Alice's son is allergic to nuts, their daughter to bees."]),
        ("My son is allergic to nuts, unlike me.", ["Alice's son is allergic to nuts, unlike Alice."]),
        ("Ich bin nicht allergisch gegen Nüsse, nur gegen Mandeln.",
         ['Alice: "Ich bin nicht allergisch gegen Nüsse, nur gegen Mandeln."']),
        ("Ich esse kein Fleisch, nur Fisch und Eier.", ['Alice: "Ich esse kein Fleisch, nur Fisch und Eier."']),
    ],
)  # fmt: skip
def test_what_follows_a_turn_is_not_parted_from_it(said, facts):
    assert told(said) == facts


def test_one_of_two_is_not_both():
    assert told("I'm vegan or vegetarian.") == ["Alice is vegan or vegetarian."]
    assert told("I'm allergic to nuts or fish.") == ["Alice is allergic to nuts or fish."]
    assert len(told("I'm not allergic to nuts or fish.")) == 2


def test_a_list_of_lines_is_read_like_sentences():
    facts = ["Alice is vegan.", "Alice lives in Rome."]
    for marks in (("1.", "2."), ("1)", "2)"), ("-", "-"), ("*", "*")):
        read_ = read(f"{marks[0]} I'm vegan\n{marks[1]} I live in Rome")
        assert [one.draft.text for one in read_] == facts, marks
        assert [one.draft.confidence for one in read_] == [0.9, 0.9], marks


def test_a_bracket_that_was_opened_before_is_no_part_of_what_is_said():
    assert told("(I'm vegan.) (I live in Rome.)") == ["Alice is vegan.", "Alice lives in Rome."]


def test_who_is_not_kidding_means_it():
    assert told("No kidding, I'm allergic to nuts.")[-1:] == ["Alice is allergic to nuts."]


def test_a_list_without_a_turn_is_still_parted():
    assert told("I'm not allergic to peanuts or shellfish.") == [
        "Alice is not allergic to peanuts.",
        "Alice is not allergic to shellfish.",
    ]


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("I'm no longer allergic to nuts but my son is.", [("Alice", "no"), ("Alice's son", "yes")]),
        ("My son is no longer allergic to nuts but I am.", [("Alice's son", "no"), ("Alice", "yes")]),
        ("I'm not allergic to nuts any more, but my son is.", [("Alice", "no"), ("Alice's son", "yes")]),
        ("I'm allergic to nuts, my son isn't.", [("Alice", "yes"), ("Alice's son", "no")]),
        ("I have no diabetes, but my son does.", [("Alice", "no")]),
        ("Ich bin nicht mehr allergisch gegen Nüsse, aber mein Sohn ist es.",
         [("Alice", "no"), ("Alice's Sohn", "yes")]),
    ],
)  # fmt: skip
def test_what_one_has_no_longer_another_has(said, expected):
    assert [(subject, value) for subject, _, value in slots(said)] == expected
    assert not any("is allergic to nuts any" in text or "son has no" in text for text in told(said))


@pytest.mark.parametrize(
    "said",
    [
        "It's not true that I'm no longer allergic to nuts.", "I don't think I'm not allergic to nuts.",
        "I doubt that I'm no longer allergic to nuts.", "I hope I'm no longer allergic to nuts.",
        "Once I'm no longer allergic to nuts, I'll eat satay.", "I pretended I'm not allergic to nuts.",
        "Provided I'm not allergic to nuts, satay is fine.", "I'm not severely allergic to nuts.",
        "I forgot that I'm not allergic to nuts.", "Ich hoffe, ich bin nicht allergisch gegen Nüsse.",
        "I didn't say that I'm vegan.", "I deny that I'm vegan.", "They think I live in Rome.", "I have a dog's life.",
        "| I'm vegan | I live in Rome |", "I'm either vegan or vegetarian.",
        "For the sake of argument I'm diabetic.", "Assume I'm diabetic.", "Angenommen, ich bin Diabetiker.",
    ],
)  # fmt: skip
def test_what_is_doubted_hoped_or_supposed_changes_nothing_that_is_known(said):
    assert slots(said) == []


@pytest.mark.parametrize(
    "said",
    [
        "I'm not only allergic to nuts but also to fish.", "I'm not just allergic to nuts.",
        "Ich bin nicht nur allergisch gegen Nüsse, sondern auch gegen Fisch.",
    ],
)  # fmt: skip
def test_not_only_denies_nothing(said):
    assert [value for _, _, value in slots(said)] == ["yes"]


@pytest.mark.parametrize(
    "said",
    [
        "Bob said: I'm not allergic to nuts.", "Bob wrote: I am no longer vegan, I live in Rome now.",
        "My brother told me: I'm allergic to nuts.", "She said 'I am not allergic to nuts' and left.",
        "‘I'm no longer allergic to nuts,’ he wrote.", "'I'm allergic to shellfish', he said.",
        "Bob sagte: Ich bin nicht allergisch gegen Nüsse.", "Bob schrieb: ich wohne in Rom.",
        "Angenommen, ich bin Diabetiker.", "Nehmen wir an, ich bin Diabetiker.", "Sagen wir, ich bin Diabetiker.",
        "Ich hoffe, ich bin nicht allergisch gegen Nüsse.", "Assume I'm diabetic.", "I'm vegan, just kidding.",
        "I'm vegan /s", "Kidding, I'm not allergic to nuts.",
    ],
)  # fmt: skip
def test_what_somebody_else_says_or_nobody_asserts_is_no_fact(said):
    assert read(said) == []


@pytest.mark.parametrize(
    ("said", "fact"),
    [
        ("I told him: I'm allergic to nuts.", "Alice is allergic to nuts."),
        ("Just so you know: I'm allergic to nuts.", "Alice is allergic to nuts."),
        ("I hope you're well, I'm allergic to nuts.", "Alice is allergic to nuts."),
        ("My parents' dog and my sisters' cat are old, I'm vegan.", "Alice is vegan."),
        ("Ich sage dir: ich bin allergisch gegen Nüsse.", 'Alice: "Ich bin allergisch gegen Nüsse."'),
        ("Ich hoffe, es geht dir gut, ich bin allergisch gegen Nüsse.", 'Alice: "Ich bin allergisch gegen Nüsse."'),
    ],
)  # fmt: skip
def test_what_is_asserted_beside_it_is_a_fact(said, fact):
    assert fact in told(said)


@pytest.mark.parametrize(
    "said",
    [
        "I hope you know I'm allergic to nuts.", "I doubt you know that I'm allergic to nuts.",
        "I don't think I told you that I'm allergic to nuts.", "I forgot to say I'm allergic to nuts.",
        "I'm allergic to nuts and don't know what to eat.", "I don't know if I told you, I'm allergic to nuts.",
    ],
)  # fmt: skip
def test_what_others_may_not_know_is_so_all_the_same(said):
    assert any("allergic to nuts" in text for text in told(said))


def test_a_medicine_that_somebody_cannot_take_stands_in_every_context():
    assert [one.draft.type for one in read("I can't take penicillin because of my kidneys.")] == ["constraint"]
    assert [one.draft.type for one in read("I can't take a joke from my brother.")] != ["constraint"]


def test_who_eats_meat_on_sundays_is_no_vegetarian():
    assert ("Alice", "diet", "vegetarian") not in slots("I don't eat meat except on Sundays.")
