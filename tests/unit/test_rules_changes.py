"""What is said later takes the place of what was said before: teachers, schools, wishes, dates that were wrong."""

from __future__ import annotations

import pytest

from tests.unit.test_changing_minds import fold, incoming_facts


def standing(*said: str) -> set[str]:
    """Give the texts of the facts that hold after all that was said, a message a day."""
    messages = [
        {"role": "user", "name": "Alice", "occurred_at": f"2026-03-{day:02}T09:00:00+00:00", "content": text}
        for day, text in enumerate(said, 1)
    ]
    return {one.text for one in fold(incoming_facts({"messages": messages})).values() if one.state == "active"}


@pytest.mark.parametrize(
    ("said", "holds"),
    [
        (("My maths teacher is Mr Keller and he is strict.", "My new maths teacher is called Ms Brunner."),
         {"Alice's new maths teacher is called Ms Brunner."}),
        (("My maths teacher is Mr Keller.", "My art teacher is now Tom Baker."),
         {"Alice's maths teacher is Mr Keller.", "Alice's art teacher is now Tom Baker."}),
        (("My dentist is Dr Weber.", "My dentist is called Dr Stein now."),
         {"Alice's dentist is called Dr Stein now."}),
        (("My boss is Anna.", "My boss is American."), {"Alice's boss is Anna.", "Alice's boss is American."}),
        (("Mein Mathelehrer ist Herr Keller.", "Meine neue Mathelehrerin heißt Frau Brunner."),
         {'Alice: "Meine neue Mathelehrerin heißt Frau Brunner."'}),
        (("I want to become a pilot.", "I don't want to become a pilot any more."),
         {"Alice doesn't want to become a pilot any more."}),
        (("I'd like to move to Canada one day.", "I no longer want to move to Canada."),
         {"Alice no longer wants to move to Canada."}),
        (("I want to study medicine.", "I want to become a vet."),
         {"Alice wants to study medicine.", "Alice wants to become a vet."}),
        (("I want to become a pilot.", "Maybe I don't want to become a pilot any more."),
         {"Alice wants to become a pilot."}),
        (("My birthday is on 3 May.", "I was wrong about my birthday: it's on 4 May."),
         {"Alice was wrong about their birthday: it's on 4 May."}),
        (("I'm 13 and I go to Lindenhof School in Bern.", "I go to Seefeld school now."),
         {"Alice is 13.", "Alice goes to Seefeld school now."}),
        (("I attend Seefeld High School.", "I'm at Gymnasium Friedberg now."),
         {"Alice is at Gymnasium Friedberg now."}),
        (("I go to the University of Bern.", "I switched to ETH Zurich."), {"Alice switched to ETH Zurich."}),
        (("I live in Bern.", "I go to Lindenhof School.", "I moved from Lindenhof School to Seefeld School."),
         {"Alice lives in Bern.", "Alice moved from Lindenhof School to Seefeld School."}),
        (("I go to Lindenhof School.", "I go to the Seefeld School gym."),
         {"Alice goes to Lindenhof School.", "Alice goes to the Seefeld School gym."}),
        (("I go to Lindenhof School.", "I'm going to Seefeld School next year."),
         {"Alice goes to Lindenhof School.", "Alice is going to Seefeld School next year (2027)."}),
        (("I go to Lindenhof School.", "My daughter goes to Seefeld School."),
         {"Alice goes to Lindenhof School.", "Alice's daughter goes to Seefeld School."}),
        (("I go to Lindenhof School.", "My daughter's school is Seefeld School."),
         {"Alice goes to Lindenhof School.", "Alice's daughter's school is Seefeld School."}),
        (("I go to Lindenhof School.", "I'm at Seefeld School on Friday."),
         {"Alice goes to Lindenhof School.", "Alice is at Seefeld School on Friday (6 March 2026)."}),
        (("I go to Lindenhof School.", "I left Lindenhof School at 3 yesterday."),
         {"Alice goes to Lindenhof School.", "Alice left Lindenhof School at 3 yesterday (1 March 2026)."}),
        (("I live in Bern.", "I go to Lindenhof School.", "I moved to Oxford."),
         {"Alice goes to Lindenhof School.", "Alice moved to Oxford."}),
        (("I go to Lindenhof School.", "I study at Oxford now."), {"Alice studies at Oxford now."}),
        (("I go to Lindenhof School.", "My school is Catholic."),
         {"Alice goes to Lindenhof School.", "Alice's school is Catholic."}),
        (("My teacher is Ms Brunner.", "My old teacher is Mr Keller."),
         {"Alice's teacher is Ms Brunner.", "Alice's old teacher is Mr Keller."}),
        (("My boss is Anna.", "My boss is Julian."), {"Alice's boss is Julian."}),
        (("Ich gehe auf die Kantonsschule Wetzikon.", "Ich bin an der Uni Mitarbeiter."),
         {'Alice: "Ich gehe auf die Kantonsschule Wetzikon."'}),
        (("Ich gehe auf die Kantonsschule Wetzikon.", "Ich bin jetzt am Gymnasium Friedberg."),
         {'Alice: "Ich bin jetzt am Gymnasium Friedberg."'}),
        (("My boss is called Ann and the team uses Snowflake.", "My boss is Julian."), {"Alice's boss is Julian."}),
        (("I work at the Charité as a nurse.", "I quit at the Charité."),
         {"Alice works as a nurse.", "Alice quit at the Charité."}),
        (("Ich arbeite an der Uniklinik.", "I quit at the Uniklinik."), {"Alice quit at the Uniklinik."}),
        (("Ich arbeite an der Uniklinik.", "Ich habe an der Uniklinik gekündigt."),
         {'Alice: "Ich habe an der Uniklinik gekündigt."'}),
        (("Ich arbeite an der Uniklinik.", "Ich arbeite an der Steuererklärung."),
         {'Alice: "Ich arbeite an der Uniklinik."', 'Alice: "Ich arbeite an der Steuererklärung."'}),
        (("I have yoga classes on Wednesdays.", "I have no classes on Fridays."),
         {"Alice has yoga classes on Wednesdays.", "Alice has no classes on Fridays."}),
        (("I work at Siemens.", "I resigned from the Charité."),
         {"Alice works at Siemens.", "Alice resigned from the Charité."}),
        (("I take metformin, 500 mg twice a day.", "I no longer take metformin."),
         {"Alice no longer takes metformin."}),
        (("Ich nehme Metformin, 500 mg zweimal am Tag.", "Ich nehme kein Metformin mehr."),
         {'Alice: "Ich nehme kein Metformin mehr."'}),
        (("I have piano lessons on Wednesdays.", "My piano lessons are on Mondays now."),
         {"Alice's piano lessons are on Mondays now."}),
        (("I have piano lessons on Wednesdays.", "My Spanish classes are on Mondays now."),
         {"Alice has piano lessons on Wednesdays.", "Alice's Spanish classes are on Mondays now."}),
        (("I have yoga classes on Wednesdays.", "I have yoga classes on Fridays."),
         {"Alice has yoga classes on Wednesdays.", "Alice has yoga classes on Fridays."}),
        (("I have a dentist appointment on 21 May at 9:30.",
          "The dentist called: my appointment is moved from 21 May to 4 June."),
         {"The dentist called: Alice's appointment is moved from 21 May (21 May 2026) to 4 June (4 June 2026)."}),
        (("I have a dentist appointment on 21 May at 9:30.", "My appointment was moved from 3 May to 4 June."),
         {"Alice has a dentist appointment on 21 May (21 May 2026) at 9:30.",
          "Alice's appointment was moved from 3 May (3 May 2026) to 4 June (4 June 2026)."}),
        (("I have asthma.", "I no longer have asthma."), {"Alice no longer has asthma."}),
    ],
)  # fmt: skip
def test_what_is_said_later_holds(said, holds):
    assert standing(*said) == holds


def test_a_date_that_was_wrong_ends():
    said = ("The test is on 20 March.", "Actually, I was wrong about the test: it was on 27 March, not 20 March.")
    (fact,) = standing(*said)
    assert fact.startswith("Alice was wrong about the test: it was on 27 March")


@pytest.mark.parametrize(
    "said",
    [
        "Bitte antworte mir immer kurz und auf Deutsch.", "Bitte schreibe Code immer mit Typen.",
        "Bitte gib mir immer ein Beispiel.", "Antworte mir bitte nie auf Englisch.",
    ],
)  # fmt: skip
def test_what_is_asked_for_good_in_german_stays(said):
    messages = [{"role": "user", "name": "Alice", "occurred_at": "2026-03-02T09:00:00+00:00", "content": said}]
    assert [(one.type, one.text) for one in incoming_facts({"messages": messages})] == [
        ("procedure", f'Alice: "{said}"')
    ]


@pytest.mark.parametrize(
    "said",
    ["Bitte erkläre mir, warum das immer so ist.", "Schreib mir eine Mail, dass ich immer an sie denke."],
)
def test_what_is_asked_for_once_in_german_is_none(said):
    assert standing(said) == set()


@pytest.mark.parametrize("order", [1, -1])
def test_an_appointment_of_another_season_ends_none_in_whatever_order_they_are_read(order):
    messages = [
        {"role": "user", "name": "Alice", "occurred_at": f"2026-{month}-17T09:00:00+00:00", "content": text}
        for month, text in (("01", "My appointment was moved from 21 January to 4 February."),
                            ("07", "My appointment at the town hall is on 24 July."))
    ]  # fmt: skip
    known = fold(incoming_facts({"messages": messages[::order]}))
    assert [one.state for one in known.values()] == ["active", "active"]


def test_an_idiom_is_no_fact_and_what_is_to_come_is_a_plan():
    assert standing("The orange got me.") == set()
    assert standing("Spiders scare me.") == {"Spiders scare Alice."}
    assert standing("My dad is a funny man.") == {"Alice's dad is a funny man."}
    messages = [{"role": "user", "name": None, "occurred_at": "2026-03-02T09:00:00+00:00",
                 "content": "Mum lands on Friday at 21:50, Tom and I pick her up together."}]  # fmt: skip
    assert [one.type for one in incoming_facts({"messages": messages})] == ["plan"]
    messages[0]["content"] = "I get up at 6am."
    assert [one.type for one in incoming_facts({"messages": messages})] == ["preference"]
