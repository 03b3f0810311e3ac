"""What people may not eat, what they take and how they are: a true allergy stays, what is over ends, nothing is lost."""

from __future__ import annotations

import pytest

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
