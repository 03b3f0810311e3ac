"""Reconciling: what a new fact means for the known ones, and that neither order of them matters."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import UUID

import pytest
from hypothesis import given, strategies as st

from memstore.derive.facts.entities import is_same_entity, same_subjects
from memstore.derive.facts.normalization import parse_slot
from memstore.derive.facts.reconcile import implies_end, reconcile
from memstore.derive.rules.slots import Modality, Slot
from memstore.providers.minilm import load
from tests.helpers.fact_rows import columns, extracted, known
from tests.timing import assert_linear
from tests.unit.test_changing_minds import fold

NOON = datetime(2024, 5, 6, 12, tzinfo=UTC)
PORTO = Slot("residence", "porto", False, Modality.HOLDS)


def new(text="Alice lives in Porto.", slot=PORTO, day=0, **more):
    return extracted(text, slot, NOON + timedelta(days=day), **more)


def old(text="Alice lives in Hamburg.", attribute="residence", value="hamburg", day=-9, number=1, **more):
    return known(UUID(int=number), text, attribute, value, NOON + timedelta(days=day), **more)


@pytest.mark.parametrize(
    ("incoming", "stored", "kind"),
    [
        (new(), old(), "supersedes"),
        (new(), old(day=9), "outdated"),
        (new(), old(day=0), "conflict"),
        (new(slot=Slot("residence", "porto", False, Modality.CORRECTS)), old(day=0), "supersedes"),
        (new(mine=False), old(), "conflict"),
        (new(subject="Bob"), old(), "new"),
        (new(), old(value="porto portugal", text="Alice lives in Porto, Portugal."), "new"),
        (new(), old(state="superseded"), "new"),
        (new(), old(text="alice lives in  porto", value="porto"), "same"),
        (new(), old(text="Alice lives in Porto.", value="porto", state="retracted"), "same"),
        (new(), old(text="Alice lives in Porto.", value="porto", state="erased"), "new"),
        (new("Alice is living in Porto."), old("Alice lives in Porto.", value="porto", cosine=0.97), "same"),
        (new("Alice is living in Porto."), old("Alice lives in Porto.", value="porto", cosine=0.5), "new"),
        (new("Alice prefers tea over coffee.", None),
         old("Alice prefers coffee over tea.", None, None, cosine=0.99), "new"),
        (new("Alice was married.", None), old("Alice is married.", None, None, cosine=0.99), "new"),
        (new("Alice can't swim.", None), old("Alice can swim.", None, None, cosine=0.9), "conflict"),
        (new("Alice owns 3 cats.", None), old("Alice owns 2 cats.", None, None), "conflict"),
        (new("Alice ran 3 km.", None, type="event"), old("Alice ran 5 km.", None, None, type="event"), "new"),
        (new(slot=Slot("former/residence", "hamburg", True, Modality.ENDED)), old(), "supersedes"),
        (new(slot=Slot("former/residence", "oslo", True, Modality.ENDED)), old(), "new"),
        (new(slot=Slot("former/employer", "", True, Modality.ENDED)),
         old(attribute="employer", value="acme"), "supersedes"),
        (new(slot=Slot("former/employer", "", True, Modality.ENDED)),
         old(attribute="employer", value="acme", day=9), "new"),
        (new(slot=Slot("employer", "acme", False, Modality.HOLDS)),
         old(attribute="former/employer", value="", day=9), "outdated"),
        (new(slot=Slot("likes/tea", "no", True, Modality.HOLDS)),
         old(attribute="likes/tea", value="yes"), "supersedes"),
        (new(slot=Slot("likes/tea", "no", True, Modality.HOLDS)), old(attribute="likes/coffee", value="yes"), "new"),
        (new(slot=Slot("plan/exam", "friday", False, Modality.HOLDS)),
         old(attribute="plan/exam", value="monday"), "supersedes"),
        (new(slot=Slot("plan/exam", "friday", False, Modality.HOLDS)),
         old(attribute="plan/exam", value="monday", day=-90), "new"),
        (new(slot=Slot("job", "ward nurse", False, Modality.HOLDS)), old(attribute="job", value="nurse"), "supersedes"),
        (new(slot=Slot("job", "nurse", False, Modality.HOLDS)), old(attribute="job", value="ward nurse"), "new"),
        (new(slot=Slot("job", "nurse", False, Modality.HOLDS)),
         old(attribute="job", value="ward nurse", day=9), "outdated"),
        (new(slot=Slot("job", "ward nurse", True, Modality.HOLDS)), old(attribute="job", value="nurse"), "new"),
    ],
)  # fmt: skip
def test_the_decision(incoming, stored, kind):
    decision = reconcile(incoming, [stored])
    assert decision.kind == kind
    touched = {
        "new": None,
        "same": decision.twin,
        "supersedes": decision.ended and decision.ended[0],
        "outdated": decision.successor and stored,
        "conflict": decision.contradicted and decision.contradicted[0],
    }
    assert touched[kind] is (None if kind == "new" else stored)


def test_what_a_model_says_that_ends_was_said_before_and_is_active():
    stored = [
        old("Alice drinks no milk.", None, None, number=1),
        old("Alice drinks no tea.", None, None, number=2, state="retracted"),
        old("Alice drinks no wine.", None, None, number=3, day=9),
        old("Alice is thirsty.", None, None, number=4),
    ]
    fact = replace(new("Alice drinks everything.", None), ends=tuple(one.fact.id for one in stored[:3]))
    assert reconcile(fact, stored).ended == (stored[0],)
    contrary = old("Alice drinks anything.", None, None, cosine=0.99, number=5)
    assert reconcile(replace(fact, ends=(contrary.fact.id,)), [contrary]).ended == (contrary,), "and is no twin"


@pytest.mark.parametrize(
    ("text", "value", "cosine", "kind"),
    [
        ("Alice works in Leeds as a nurse.", "nurse", 0.95, "same"),
        ("Alice works in Leeds as a nurse.", "Nurse", 0.5, "new"),
        ("Alice works in Leeds as a cook.", "cook", 0.95, "new"),
        ("Alice has worked as a nurse for 3 years.", "nurse", 0.95, "new"),
        ("Alice does not work as a nurse.", "nurse", 0.95, "conflict"),
    ],
)
def test_facts_of_a_model_with_one_value_are_one_where_they_are_near(text, value, cosine, kind):
    stored = old("Alice works as a nurse.", "task", "nurse", cosine=cosine, recipe="llm-facts/3/m")
    fact = extracted(text, None, NOON)
    fact.fact.attribute, fact.fact.value, fact.fact.recipe = "task", value, "llm-facts/3/m"
    assert reconcile(fact, [stored]).kind == kind


@pytest.mark.parametrize(
    ("subject", "text", "other", "same"),
    [
        ("Alice's daughter Mia", "Mia is five.", "Alice's daughter", True),
        ("Alice's daughter Mia", "Mia is five.", "Alice's daughter Mia", True),
        ("Alice's daughter Mia", "Mia is five.", "Mia", True),
        ("Alice's daughter Mia", "Mia is five.", "Alice's daughter Ida", False),
        ("Alice's Tochter Mia", "Mia ist fünf.", "Alice", False),
    ],
)
def test_somebody_s_kin_is_known_by_kinship_and_name(subject, text, other, same):
    fact = columns(text, None, None, NOON, subject=subject)
    known = columns("Alice's daughter Mia is four." if same else "Ida is four.", None, None, NOON, subject=other)
    assert is_same_entity(known, fact, same_subjects(fact, [known])) is same


def test_what_is_outdated_ends_with_the_next_value_and_ends_those_before_it():
    before, then, now = (
        old(value=f"town{number}", day=day, number=number, state=state, valid_to=ends and NOON + timedelta(days=ends))
        for number, day, state, ends in ((1, -9, "superseded", 3), (2, 3, "superseded", 9), (3, 9, "active", None))
    )
    decision = reconcile(new(), [now, before, then])
    assert (decision.successor, decision.ended) == ((NOON + timedelta(days=3), then.fact.id), (before,))


def test_all_older_values_end_and_the_order_of_the_known_does_not_matter():
    stored = [old(value=f"town{number}", text=f"Alice lives in T{number}.", number=number) for number in range(1, 6)]
    decisions = [reconcile(new(), order) for order in (stored, stored[::-1])]
    assert {one.kind for one in decisions} == {"supersedes"}
    assert [{each.fact.id for each in one.ended} for one in decisions] == [{one.fact.id for one in stored}] * 2


@given(st.permutations(range(6)), st.lists(st.sampled_from(["porto", "oslo", "rome", "bern"]), min_size=6, max_size=6))
def test_the_value_said_last_is_active_in_whatever_order_facts_of_one_slot_are_judged(order, towns):
    facts = [new(f"{day}: {town}", replace(PORTO, value=town), day) for day, town in enumerate(towns)]
    assert {value for _, value in _active([facts[day] for day in order])} == {towns[-1]}


@given(st.permutations(range(5)), st.lists(st.sampled_from(["nurse", "ward nurse", "night ward nurse"]), min_size=5))
def test_the_same_jobs_are_active_in_whatever_order_those_told_more_exactly_are_judged(order, jobs):
    facts = [
        new(f"{day}: {job}", Slot("job", job, False, Modality.HOLDS), day, type="identity")
        for day, job in enumerate(jobs[:5])
    ]
    held = [{value for _, value in _active(judged)} for judged in ([facts[day] for day in order], facts)]
    assert held[0] == held[1]


def _active(facts):
    return {(one.fact.text, one.fact.value) for one in fold(facts).values() if one.fact.state == "active"}


@pytest.mark.slow
@pytest.mark.parametrize("words", ["I live in ", "my exam ", "a, ", "moved to and "])
def test_the_time_of_a_long_clause_is_bounded(words):
    for language in ("en", "de", "fr", "es"):
        assert_linear(lambda text, language=language: parse_slot(text, "Alice", language), words)
        parse_slot((words * 200)[:600].strip(), "Alice", language)  # the longest that is read


def test_the_labelled_pairs_are_told_apart_by_the_real_encoder():
    pairs = [json.loads(line) for line in (Path(__file__).parent.parent / "pairs.jsonl").read_text().splitlines()]
    encoder = load("")
    sides = [encoder.embed_documents([pair[side] for pair in pairs]) for side in "ab"]
    merged = [
        pair["label"]
        for pair, cosine in zip(pairs, (sides[0] * sides[1]).sum(axis=1), strict=True)
        if reconcile(new(pair["b"], None), [old(pair["a"], None, None, cosine=float(cosine))]).kind == "same"
    ]
    assert len(pairs) >= 200
    assert merged.count("same") == len(merged)
    assert len(merged) >= 0.5 * sum(pair["label"] == "same" for pair in pairs)


def test_a_value_of_another_slot_ends_however_it_is_written():
    teaching = columns("Alice teaches maths at Greenfield School.", "employer/teaching", "greenfield school", NOON)
    for quit, ends in (("Greenfield", True), ("Siemens", False)):
        assert implies_end(columns(f"Alice quit {quit}.", "former/employer", quit, NOON), teaching) == ends


# Slots


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
        ("The meeting with Anna is at 4 pm", "Alice", "en", ("plan/meeting with anna", "4 pm")),
        ("I have a meeting with Tom at 3 pm", "Alice", "en", ("plan/meeting with tom", "3 pm")),
        ("Ich esse seit Januar kein Fleisch mehr", "Alice", "de", ("diet", "vegetarier")),
        ("Seit drei Jahren wohne ich in Ulm", "Alice", "de", ("residence", "ulm")),
        ("J'ai un chien", "Alice", "fr", ("pet/chien", "yes")),
        ("Ya no me gusta el café", "Alice", "es", ("likes/café", "no")),
        ("Unser Hund Bruno ist im Oktober gestorben", "Alice", "de", ("former/pet/hund", "")),
        ("Im Oktober ist unser Hund Bruno gestorben", "Alice", "de", ("former/pet/hund", "")),
        ("Unsere Katze ist letzte Woche verstorben", "Alice", "de", ("former/pet/katze", "")),
        ("Meine Katze Mia starb im Mai", "Alice", "de", ("former/pet/katze", "")),
        ("Trabajo en casa", "Alice", "es", None),
        ("J'ai 30 minutes de retard", "Alice", "fr", None),
        ("No me llamo Pedro", "Alice", "es", None),
        ("Je vis dans un petit appartement", "Alice", "fr", None),
        ("Unser Hund ist nicht gestorben", "Alice", "de", None),
        ("Unser Hund ist fast gestorben", "Alice", "de", None),
        ("I live in fear", "Alice", "en", None),
        ("the town where I live in winter", "Alice", "en", None),
    ],
)
def test_the_slot_of_a_sentence_is_of_its_own_subject_only(
    text: str, subject: str, language: str, filled: tuple[str, str] | None
) -> None:
    slot = parse_slot(text, subject, language)
    assert (slot and (slot.attribute, slot.value)) == filled
