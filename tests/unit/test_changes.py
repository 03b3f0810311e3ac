"""What a new fact makes outdated, by how the reader understands two statements."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from memstore.derive.facts import changes
from memstore.derive.facts.changes import with_changes
from memstore.derive.facts.reconcile import reconcile
from memstore.derive.rules.slots import Modality, Slot
from memstore.models import ALWAYS, HAND, KnownFact
from tests.helpers.fact_rows import extracted, known

NOON = datetime(2024, 5, 6, 12, tzinfo=UTC)
CARDIFF = "we made it, we're in Cardiff now!"


def old(text: str = "Alice lives in Bristol.", day: int = -9, number: int = 1, **more) -> KnownFact:
    more = {"cosine": 0.6, "recipe": "reader/3", **more}
    return known(UUID(int=number), text, None, None, NOON + timedelta(days=day), **more)


@pytest.fixture
def understood(monkeypatch):
    """Answer for each pair what is told for its earlier statement; note the pairs."""
    pairs, answers = [], {}

    def relations(asked):
        pairs.extend(asked)
        usual = {"replaces": 0.0, "ends": 0.0, "same": 0.0, "refines": 0.0, "independent": 0.0}
        return [usual | answers.get(pair.earlier, {"independent": 1.0}) for pair in asked]

    monkeypatch.setattr(changes, "read_relations", relations)
    return pairs, answers


def decide(new, facts):
    return reconcile(with_changes(new, facts), facts)


def new(text: str = f'Alice: "{CARDIFF}"', **more):
    return extracted(text, None, NOON, **more)


def test_what_is_replaced_or_ended_is_superseded_by_the_words_of_the_later(understood):
    pairs, answers = understood
    answers["Alice lives in Bristol."] = {"replaces": 0.6, "ends": 0.38}
    decision = decide(new(), [old(), old("Alice has a dog.", number=2)])
    assert decision.kind == "supersedes"
    assert [one.fact.text for one in decision.ended] == ["Alice lives in Bristol."]
    assert {pair.later for pair in pairs} == {CARDIFF}


def test_of_what_is_said_later_nothing_ends(understood):
    pairs, answers = understood
    answers["Alice lives in Bristol."] = {"replaces": 0.97}
    assert decide(new(), [old(day=9)]).kind == "new"
    assert not pairs


def test_a_question_is_no_part_of_the_statement(understood):
    pairs, _ = understood
    with_changes(new(f'Alice, asked "Where to?": "{CARDIFF}"'), [old()])
    assert pairs == [("Alice lives in Bristol.", CARDIFF)]


@pytest.mark.parametrize(
    "more",
    [
        {"recipe": HAND},
        {"importance": ALWAYS},
        {"type": "constraint"},
        {"state": "superseded"},
        {"cosine": 0.1},
        {"cosine": None},
        {"day": 0},
    ],
)
def test_what_people_set_what_protects_and_what_is_far_is_never_ended(understood, more):
    _, answers = understood
    answers["Alice lives in Bristol."] = {"replaces": 1.0}
    assert decide(new(), [old(**more)]).kind == "new"


def test_a_reading_that_is_not_sure_ends_nothing(understood):
    _, answers = understood
    answers["Alice lives in Bristol."] = {"replaces": 0.6, "independent": 0.4}
    assert decide(new(), [old()]).kind == "new"


def test_a_statement_makes_one_other_outdated_the_nearest(understood):
    _, answers = understood
    texts = ["Alice lives in Bristol.", "Alice pays 850 pounds of rent."]
    answers |= {text: {"replaces": 0.99} for text in texts}
    facts = [old(texts[0], cosine=0.7), old(texts[1], number=2, cosine=0.9)]
    assert [one.fact.text for one in decide(new(), facts).ended] == texts[1:]


@pytest.mark.parametrize("text", ["Alice's sister lives in Bristol.", 'Alice: "my gran lives in Bristol"'])
def test_words_about_a_relative_are_not_ended_by_those_about_oneself(understood, text):
    _, answers = understood
    answers |= {each: {"replaces": 0.99} for each in (text, "my gran lives in Bristol")}
    assert decide(new(), [old(text)]).kind == "new"


def test_of_two_that_fill_slots_these_decide(understood):
    _, answers = understood
    answers["Alice lives in Bristol."] = {"replaces": 0.99}
    slot = Slot("plan/wedding", "off", many=False, modality=Modality.HOLDS)
    home = known(UUID(int=1), "Alice lives in Bristol.", "partner", "leo", NOON - timedelta(days=9), cosine=0.9)
    assert with_changes(extracted("Alice's wedding is off.", slot, NOON), [home]).ends == ()


def test_only_the_nearest_are_read(understood):
    pairs, _ = understood
    with_changes(new(), [old(f"Alice has {n} cats.", number=n, cosine=n / 100) for n in range(55, 80)])
    assert [pair.earlier for pair in pairs] == [f"Alice has {n} cats." for n in range(79, 79 - changes.MOST_PAIRS, -1)]
