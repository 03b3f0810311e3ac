"""Slots of facts that come as sentences of their own, and what an edit leaves of what was said."""

from __future__ import annotations

import pytest

from memstore.derive.facts.normalization import parse_slot, slot_of_fact
from memstore.models import FactColumns


@pytest.mark.parametrize(
    ("text", "subject", "language", "filled"),
    [
        ("The user lives in Porto.", "The user", "en", ("residence", "porto")),
        ("Alice moved to Porto last month (April 2023).", "Alice", "und", ("residence", "porto")),
        ("In March Alice moved to Porto.", "Alice", "en", ("residence", "porto")),
        ("Alice's favourite colour is blue.", "Alice", "en", ("favourite/colour", "blue")),
        ("The user's sister lives in Lyon.", "The user's sister", "en", ("residence", "lyon")),
        ('The user: "Ich wohne in Leeds."', "The user", "de", ("residence", "leeds")),
        ("I live in Leeds.", "The user", "und", ("residence", "leeds")),
        ("The user is not allergic to shellfish.", "The user", "en", ("allergy/shellfish", "no")),
        ("Marta is no longer allergic to nuts.", "Marta", "en", ("allergy/nut", "no")),
        ("Marta doesn't have a nut allergy.", "Marta", "en", ("allergy/nut", "no")),
        ("Marta hat keine Nussallergie.", "Marta", "de", ("allergy/nuss", "no")),
        ("The user's sister lives in Lyon.", "The user", "en", None),
        ("Tom lives in Rome.", "Alice", "en", None),
        ("Alice lives in Leeds and works at Acme.", "Alice", "en", None),
        ("Does Alice live in Leeds?", "Alice", "en", None),
        ("爱丽丝住在里斯本。", "爱丽丝", "zh", None),
    ],
)
def test_a_sentence_fills_a_slot_of_its_own_subject_only(
    text: str, subject: str, language: str, filled: tuple[str, str] | None
) -> None:
    slot = parse_slot(text, subject, language)
    assert (slot and (slot.attribute, slot.value)) == filled


@pytest.mark.parametrize(
    ("attribute", "value", "text", "many"),
    [
        ("likes/tea", "green", "Ann works.", True),
        ("residence", "yes", "She works.", False),
        ("former/residence", "leeds", "She works.", True),
        ("likes/tea", "yes", "Ann likes tea.", True),
        ("instrument", "cello", "Ann plays.", False),
    ],
)
def test_whether_a_stored_slot_holds_several_is_the_slot_books_answer(
    attribute: str, value: str, text: str, many: bool
) -> None:
    fact = FactColumns.model_construct(
        attribute=attribute, value=value, text=text, subject="Ann", language="en", type="identity"
    )
    slot = slot_of_fact(fact)
    assert slot is not None
    assert slot.many == many
