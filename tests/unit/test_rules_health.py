"""What people may not eat, what they take, how they are: a true allergy stays, what is over ends, nothing is lost."""

from __future__ import annotations

import pytest

from tests.unit.test_changing_minds import incoming_facts
from tests.unit.test_rules_changes import standing

PEANUTS = "Alice is allergic to peanuts."
NUTS = 'Alice: "Ich bin allergisch gegen Nüsse."'


@pytest.mark.parametrize(
    ("said", "holds"),
    [
        (("I'm allergic to peanuts.", "I'm not allergic to peanuts, am I?"), PEANUTS),
        (("I'm allergic to peanuts.", "I'm not allergic to peanuts, right?"), PEANUTS),
        (("I'm allergic to peanuts.", "I'm no longer allergic to peanuts, or am I?"), PEANUTS),
        (("Ich bin allergisch gegen Nüsse.", "Ich bin nicht allergisch gegen Nüsse, oder?"), NUTS),
        (("Ich bin allergisch gegen Nüsse.", "Ich bin gegen Nüsse nicht allergisch, nicht wahr?"), NUTS),
        (("I'm allergic to peanuts.", "If I weren't allergic to peanuts, I'd eat satay."), PEANUTS),
    ],
)  # fmt: skip
def test_what_is_asked_with_a_tag_ends_nothing(said, holds):
    assert standing(*said) == {holds}


def test_what_stands_before_another_question_is_still_told():
    assert standing("I'm allergic to peanuts, is that a problem?") == {PEANUTS}
    assert standing("I live in Leeds, isn't that great?") == {'Alice: "I live in Leeds."'}


@pytest.mark.parametrize(
    ("said", "holds"),
    [
        ("It turns out I'm not allergic to peanuts after all, it's sesame.",
         {"It turns out Alice is not allergic to peanuts after all.", "Alice is allergic to sesame."}),
        ("I'm not allergic to peanuts but to sesame.",
         {"Alice is not allergic to peanuts.", "Alice is allergic to sesame."}),
        ("I'm allergic to sesame, not peanuts.", {"Alice is not allergic to peanuts.", "Alice is allergic to sesame."}),
        ("I'm allergic to nuts, not almonds or cashews.",
         {"Alice is allergic to nuts.", "Alice is not allergic to almonds.", "Alice is not allergic to cashews."}),
        ("It's not peanuts, it's sesame I'm allergic to.",
         {'Alice: "I\'m not allergic to peanuts."', 'Alice: "I\'m allergic to sesame."'}),
        ("It's not peanuts I'm allergic to, it's sesame.",
         {'Alice: "I\'m not allergic to peanuts."', 'Alice: "I\'m allergic to sesame."'}),
        ("My son isn't allergic to peanuts but to sesame.",
         {"Alice's son is not allergic to peanuts.", "Alice's son is allergic to sesame."}),
        ("Ich bin nicht allergisch gegen Nüsse, sondern gegen Mandeln und Cashews.",
         {'Alice: "Ich bin nicht allergisch gegen Nüsse."', 'Alice: "Ich bin allergisch gegen Mandeln."',
          'Alice: "Ich bin allergisch gegen Cashews."'}),
        ("Ich bin allergisch gegen Sesam, nicht gegen Erdnüsse.",
         {'Alice: "Ich bin allergisch gegen Sesam."', 'Alice: "Ich bin nicht allergisch gegen Erdnüsse."'}),
        ("I'm not allergic to nuts, it's fine.", {"Alice is not allergic to nuts."}),
        ("I'm allergic to sesame, not vegan.", {"Alice is allergic to sesame, not vegan."}),
        ("I'm allergic to nuts, not just peanuts.", {"Alice is allergic to nuts, not just peanuts."}),
    ],
)  # fmt: skip
def test_not_this_but_that_loses_neither(said, holds):
    assert standing(said) == holds


@pytest.mark.parametrize(
    "denial", ["It's sesame I'm allergic to, not peanuts.", "I'm not allergic to peanuts, it's sesame.",
               "I'm allergic to sesame, not peanuts."],
)  # fmt: skip
def test_a_turn_ends_what_it_denies_and_leaves_the_other(denial):
    held = standing("I'm allergic to peanuts.", "I'm allergic to cats.", denial)
    assert PEANUTS not in held
    assert {"Alice is allergic to cats."} < held
    assert any("allergic to sesame" in text for text in held)


@pytest.mark.parametrize(
    "heard",
    [
        "The doctor says I'm allergic to peanuts.", "My doctor told me I was allergic to peanuts.",
        "My mum thinks I'm allergic to peanuts.", "They told me I'm allergic to peanuts.",
        "I was told that I'm allergic to peanuts.", "It turns out I'm allergic to peanuts.",
        "Apparently I'm allergic to peanuts.",
    ],
)  # fmt: skip
def test_what_others_said_of_my_health_ends_with_my_word_alone(heard):
    assert standing(heard, "I'm not allergic to peanuts.") == {"Alice is not allergic to peanuts."}
    for other in ("I'm not allergic to cashews.", "My brother isn't allergic to peanuts.",
                  "I'm not allergic to peanuts, am I?", "If I weren't allergic to peanuts, I'd eat satay.",
                  "My brother says I'm not allergic to peanuts."):  # fmt: skip
        assert standing(heard) < standing(heard, other) or standing(heard) == standing(heard, other)


@pytest.mark.parametrize("who", ["The doctor says", "My mum thinks", "My mum still believes that"])
def test_what_others_say_of_my_health_ends_nothing_that_i_said(who):
    assert PEANUTS in standing("I'm allergic to peanuts.", f"{who} I'm not allergic to peanuts.")
    denied = "Alice is not allergic to peanuts."
    assert denied in standing("I'm not allergic to peanuts.", f"{who} I'm allergic to peanuts.")


def test_one_of_two_allergies_that_the_doctor_found_stays():
    held = standing("The doctor says I'm allergic to peanuts and shellfish.", "I'm not allergic to peanuts.")
    assert held == {
        "Alice is not allergic to peanuts.", 'Alice: "The doctor says I am allergic to shellfish."',
    }  # fmt: skip


def test_who_is_thought_to_be_allergic_and_is_not():
    held = standing("My mum thinks I'm allergic to peanuts, but I'm not.")
    assert held == {"Alice is not allergic to peanuts."}


def test_german_hearsay_is_kept_as_hearsay():
    heard = 'Alice: "Der Arzt sagt, ich bin allergisch gegen Nüsse."'
    assert standing("Der Arzt sagt, ich bin allergisch gegen Nüsse.") == {heard}
    assert heard not in standing(
        "Der Arzt sagt, ich bin allergisch gegen Nüsse.", "Ich bin nicht allergisch gegen Nüsse."
    )
    assert NUTS in standing(
        "Ich bin allergisch gegen Nüsse.", "Meine Mutter glaubt, ich bin nicht allergisch gegen Nüsse."
    )


def test_a_condition_told_by_a_doctor_is_a_constraint():
    messages = [{"role": "user", "name": None, "occurred_at": "2026-03-02T09:00:00+00:00",
                 "content": "My doctor told me I have coeliac disease."}]  # fmt: skip
    assert [one.type for one in incoming_facts({"messages": messages})] == ["constraint"]


METFORMIN = "Alice takes metformin twice a day."


@pytest.mark.parametrize(
    ("later", "ended"),
    [
        ("I no longer take metformin.", True), ("I stopped taking metformin, I'm on Ozempic now.", True),
        ("I don't take metformin any more.", True), ("I switched from metformin to Ozempic.", True),
        ("I came off metformin last month.", True), ("I stopped taking metformin for a week.", False),
        ("I don't take metformin on Sundays.", False), ("My dad no longer takes metformin.", False),
        ("I no longer take ibuprofen.", False), ("I want to stop taking metformin.", False),
        ("I'm not on metformin, am I?", False), ("My doctor says I should stop taking metformin.", False),
    ],
)  # fmt: skip
def test_a_medicine_ends_when_its_user_stops_taking_it(later, ended):
    held = standing("I take metformin twice a day.", later)
    assert (METFORMIN not in held) == ended


def test_of_two_medicines_one_ends_and_what_takes_its_place_is_known():
    held = standing("I take metformin and warfarin.", "I switched from metformin to Ozempic.")
    assert held == {"Alice takes warfarin.", "Alice switched from metformin to Ozempic.", 'Alice: "I take Ozempic."'}
    held = standing("Ich nehme Metformin und Warfarin.", "Ich habe Metformin abgesetzt.")
    assert held == {'Alice: "Ich nehme Warfarin."', 'Alice: "Ich habe Metformin abgesetzt."'}


def kinds(said: str) -> list[str]:
    return [one.type for one in incoming_facts({"messages": [
        {"role": "user", "name": "Alice", "occurred_at": "2026-03-02T09:00:00+00:00", "content": said}]})]  # fmt: skip


@pytest.mark.parametrize(
    "said",
    [
        "I take metformin twice a day.", "I no longer take metformin.", "I take insulin 10 units.",
        "I'm on the Mediterranean diet now.", "I follow the Mediterranean diet.", "I'm on keto.", "I gave up keto.",
        "I don't tolerate lactose.", "I can't tolerate milk.", "My sister can't tolerate lactose.",
        "My doctor told me I have coeliac disease.", "I've been a vegetarian for six years.", "Ich nehme Metformin.",
    ],
)  # fmt: skip
def test_what_is_of_the_body_is_a_constraint(said):
    assert kinds(said) == ["constraint"]


@pytest.mark.parametrize("said", ["I take the bus twice a day.", "I take photos every day.", "I'm on the coast."])
def test_what_is_no_medicine_and_no_diet_is_no_constraint(said):
    assert "constraint" not in kinds(said)


@pytest.mark.parametrize(
    ("said", "later", "ended"),
    [
        ("I'm on a low-carb diet.", "I'm on the Mediterranean diet now.", True),
        ("I'm on a low-carb diet.", "I stopped the low-carb diet.", True),
        ("I'm on keto.", "I gave up keto.", True), ("I'm on keto.", "I'm not on the ketogenic diet any more.", True),
        ("I've been a vegetarian for six years.", "I'm not vegetarian any more.", True),
        ("I'm on a gluten-free diet.", "I stopped the gluten-free diet.", True),
        ("I'm on a gluten-free diet.", "I'm on a low-carb diet.", False),
        ("I'm vegetarian.", "I'm on keto.", False), ("I'm on keto.", "My brother gave up keto.", False),
        ("I'm on keto.", "I stopped keto for a week.", False), ("I'm on keto.", "I gave up sugar.", False),
        ("I'm on keto.", "This week I'm on the Mediterranean diet.", False),
        ("I'm on keto.", "I gave up keto, didn't I?", False),
        ("Ich mache Keto.", "Ich mache kein Keto mehr.", True),
        ("Ich mache eine Low-Carb-Diät.", "Ich mache jetzt Paleo.", True),
    ],
)  # fmt: skip
def test_a_diet_ends_when_another_takes_its_place_or_it_is_given_up(said, later, ended):
    assert (standing(said) <= standing(said, later)) != ended


@pytest.mark.parametrize(
    ("said", "later", "ended"),
    [
        ("I'm pregnant!", "I lost the baby.", True), ("I'm 12 weeks pregnant.", "I had a miscarriage.", True),
        ("I'm pregnant, due in May.", "We lost the baby last week.", True),
        ("I'm pregnant!", "I had a miscarriage in 2019.", False), ("I'm pregnant!", "I lost the baby's toy.", False),
        ("I'm pregnant!", "My sister had a miscarriage.", False), ("I'm pregnant!", "I'm due in June.", False),
        ("I'm pregnant!", "My sister isn't pregnant.", False), ("I'm pregnant!", "I'm not pregnant, am I?", False),
        ("My sister is pregnant.", "My sister had a miscarriage.", True),
        ("My sister Hanna is pregnant.", "Hanna lost the baby.", True),
        ("My sister Hanna is pregnant.", "Anna lost the baby.", False),
        ("Ich bin schwanger.", "Ich habe das Baby verloren.", True),
        ("Ich bin schwanger.", "Meine Schwester ist nicht schwanger.", False),
    ],
)  # fmt: skip
def test_a_pregnancy_ends_with_the_baby(said, later, ended):
    assert bool(standing(said) & standing(said, later)) != ended


def test_a_baby_is_due_when_it_was_said_last():
    said = "My sister Hanna is pregnant, due in May."
    held = standing(said, "Hanna's baby is due in June, not in May.")
    assert held == {"Alice's sister Hanna is pregnant.", 'Alice: "Hanna\'s baby is due in June (June 2026)."'}
    assert standing(said) <= standing(said, "Anna's baby is due in June.")
