"""Until when a fact holds, where the sentence says so: what is for a while takes nothing from what lasts."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from memstore.ingest.rules.drafts import Said
from memstore.ingest.rules.slots import Manner
from memstore.ingest.rules.slotted import slotted

AT = datetime(2024, 1, 24, 9, tzinfo=UTC)  # a Wednesday


def one(text: str, at: datetime = AT):
    (found,) = slotted(Said(text, "user", "Alice", at))
    return found


@pytest.mark.parametrize(
    ("said", "month", "day"),
    [
        ("I live in Berlin until March.", 3, 1), ("I'm in Berlin until Friday.", 1, 27),
        ("I'm in Berlin until the end of May.", 6, 1), ("I moved to Berlin until June.", 6, 1),
        ("I'm staying in Berlin for two weeks.", 2, 7), ("This week I'm in Berlin.", 1, 29),
        ("I'm working at Siemens until 31 May.", 6, 1),
        ("Ich wohne bis Ende Mai in Berlin.", 6, 1), ("Ich bin bis Freitag in Rom.", 1, 27),
        ("Ich bin für zwei Wochen in Berlin.", 2, 7), ("Ich bin diese Woche in Rom.", 1, 29),
        ("Je suis à Rome jusqu'à vendredi.", 1, 27), ("J'habite à Rome jusqu'en mars.", 3, 1),
        ("Je suis à Nice pour deux semaines.", 2, 7), ("Estoy en Roma hasta marzo.", 3, 1),
        ("Estoy en Madrid por dos semanas.", 2, 7), ("我住在上海到3月。", 3, 1),
    ],
)  # fmt: skip
def test_what_is_for_a_while_ends_when_it_is_said_to(said, month, day):
    found = one(said)
    assert found.slot is not None and found.slot.manner is Manner.TEMPORARY
    assert found.draft.valid_to == datetime(2024, month, day, tzinfo=UTC)


def test_what_fills_no_slot_ends_too():
    assert one("I can't drink alcohol until 3 June.").draft.valid_to == datetime(2024, 6, 4, tzinfo=UTC)
    assert one("I'm on a keto diet until June.").draft.valid_to == datetime(2024, 6, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    "said",
    [
        "I live in Berlin.", "I've lived in Rome for two years.", "I worked at Siemens until March.",
        "I didn't live in Rome until March.", "I moved to Berlin in March.",
        "I live in Berlin until something changes.",
    ],
)  # fmt: skip
def test_no_end_is_made_up(said):
    assert one(said).draft.valid_to is None


@pytest.mark.parametrize(
    "said",
    ["I'm in Berlin right now.", "We're staying at Hotel Adler.", "I'm visiting Porto.", "Ich bin im Urlaub in Rom."],
)
def test_a_stay_of_which_nobody_says_when_it_ends_is_no_standing_fact(said):
    assert one(said).draft.type == "event"
    assert one("I'm in Berlin until Friday.").draft.type == "identity"
    assert one("I'm vegan at the moment.").draft.type == "constraint"


@pytest.mark.parametrize(
    ("said", "fact"),
    [
        ("Since this month I'm vegetarian.", "Since this month (January 2024) Alice is vegetarian."),
        ("I'm vegan since this week.", "Alice is vegan since this week (week of 22 January 2024)."),
        ("As of this month I'm vegan.", "As of this month (January 2024) Alice is vegan."),
        ("From today on I'm vegan.", "From today (24 January 2024) on Alice is vegan."),
        ("Since Monday I work at Siemens.", "Since Monday (22 January 2024) Alice works at Siemens."),
        ("Since 2020 I live in Berlin.", "Since 2020 Alice lives in Berlin."),
        ("Since last week I live in Bonn.", "Since last week (week of 15 January 2024) Alice lives in Bonn."),
        ("Ich bin seit dieser Woche vegan.", 'Alice: "Ich bin seit dieser Woche (Woche vom 22. Januar 2024) vegan."'),
        ("Desde este mes soy vegetariana.", 'Alice: "Desde este mes soy vegetariana."'),
    ],
)  # fmt: skip
def test_what_has_begun_has_no_end_and_says_since_when(said, fact):
    found = one(said)
    assert found.draft.text == fact
    assert found.draft.valid_to is None
    assert found.slot is not None and found.slot.manner is Manner.HOLDS


def test_the_end_is_a_midnight_of_the_speaker():
    late = AT.astimezone(timezone(timedelta(hours=-7)))
    assert one("I'm in Berlin until Friday.", late).draft.valid_to == datetime(2024, 1, 27, tzinfo=late.tzinfo)


def test_the_edge_of_the_calendar_has_no_end():
    assert one("I'm in Berlin for six years.", datetime(9999, 1, 1, tzinfo=UTC)).draft.valid_to is None
