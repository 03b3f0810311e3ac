"""Reconciling: what a new fact means for the known ones, and that neither order of them matters."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import UUID

import pytest
from hypothesis import given, strategies as st

from memstore.derive.facts.drafts import Successor
from memstore.derive.facts.entities import is_same_entity, same_subjects
from memstore.derive.facts.normalization import content_words
from memstore.derive.facts.reconcile import end_of, reconcile
from memstore.derive.facts.slots import Slot, holds_many, slot_of_fact
from memstore.models import ALWAYS, HAND
from memstore.providers.minilm import load
from tests.helpers.fact_rows import columns, extracted, fold, known
from tests.timing import assert_linear

NOON = datetime(2024, 5, 6, 12, tzinfo=UTC)
PORTO = Slot("residence", "porto", many=False)
NO_NUTS, NUTS = (Slot("allergy/nut", value, many=True) for value in ("no", "yes"))
MODEL = "llm-facts/3/m"


def new(text="Alice lives in Porto.", slot=PORTO, day=0, **more):
    return extracted(text, slot, NOON + timedelta(days=day), **more)


def old(text="Alice lives in Hamburg.", attribute="residence", value="hamburg", day=-9, number=1, **more):
    return known(UUID(int=number), text, attribute, value, NOON + timedelta(days=day), **more)


def job(value):
    return Slot("job", value, many=False)


def allergy(of="nut", **more):
    return old(f"Alice is allergic to {of}s.", f"allergy/{of}", "yes", **{"type": "constraint", **more})


def no_allergy(**more):
    return new("Alice is not allergic to nuts.", NO_NUTS, type="statement", **more)


@pytest.mark.parametrize(
    ("incoming", "stored", "kind"),
    [
        (new(), old(), "supersedes"),
        (new(), old(day=9), "outdated"),
        (new(), old(day=0), "conflict"),
        (new(mine=False), old(), "conflict"),
        (new(mine=False), old(day=9), "conflict"),
        (new(subject="Bob"), old(), "new"),
        (new(), old(attribute="hometown"), "new"),
        (new(), old(attribute=None, value=None), "new"),
        (new(), old(value="porto portugal", text="Alice lives in Porto, Portugal."), "new"),
        (new(), old(state="superseded"), "new"),
        (new(), old(day=9, state="superseded"), "outdated"),
        (new(), old(day=9, state="retracted"), "new"),
        (new(), old(text="alice lives in  porto", value="porto"), "same"),
        (new(), old(text="Alice lives in Porto.", value="porto", state="retracted"), "same"),
        (new(), old(text="Alice lives in Porto.", value="porto", state="erased"), "new"),
        (new("Alice is living in Porto."), old("Alice lives in Porto.", value="porto", cosine=0.97), "same"),
        (new("Alice is living in Porto."), old("Alice lives in Porto.", value="porto", cosine=0.5), "new"),
        (new("Alice prefers tea over coffee.", None),
         old("Alice prefers coffee over tea.", None, None, cosine=0.99), "new"),
        (new("Alice was married.", None), old("Alice is married.", None, None, cosine=0.99), "new"),
        (new("Alice can't swim.", None), old("Alice can swim.", None, None, cosine=0.9), "conflict"),
        (new("Alice can't swim.", None), old("Alice can swim.", None, None, cosine=0.9, state="superseded"), "new"),
        (new("Alice owns 3 cats.", None), old("Alice owns 2 cats.", None, None), "conflict"),
        (new("Alice ran 3 km.", None, type="event"), old("Alice ran 5 km.", None, None, type="event"), "new"),
        (no_allergy(), allergy(), "supersedes"),
        (no_allergy(), allergy(day=9), "outdated"),
        (no_allergy(), allergy(day=0), "conflict"),
        (no_allergy(), allergy("peanut"), "new"),
        (new("Alice is allergic to nuts.", NUTS), old("Alice can eat nuts.", "allergy/nut", "no"), "supersedes"),
        (new("Alice avoids nuts.", NUTS), allergy(), "new"),
        (new("Alice works as a ward nurse.", job("ward nurse")), old(attribute="job", value="nurse"), "supersedes"),
        (new("Alice works as a nurse.", job("nurse")), old(attribute="job", value="ward nurse"), "new"),
        (new("Alice works as a nurse.", job("nurse")), old(attribute="job", value="ward nurse", day=9), "outdated"),
        (new("Alice works as a ward nurse.", job("ward nurse")), old(attribute="job", value="nurse", day=0), "new"),
    ],
)  # fmt: skip
def test_the_decision(incoming, stored, kind):
    decision = reconcile(incoming, [stored])
    assert decision.kind == kind
    touched = {
        "new": None,
        "same": decision.duplicate,
        "supersedes": decision.ended and decision.ended[0],
        "outdated": decision.successor and stored,
        "conflict": decision.contradicted and decision.contradicted[0],
    }
    assert touched[kind] is (None if kind == "new" else stored)


@pytest.mark.parametrize(
    ("incoming", "stored", "kind"),
    [
        (new(recipe=MODEL), [old(recipe=HAND)], "waits"),
        (new(recipe=MODEL), [old(by_hand="edited")], "waits"),
        (new(recipe=MODEL), [old(importance=ALWAYS)], "waits"),
        (new(recipe=MODEL), [old(day=9, recipe=HAND)], "outdated"),
        (new(recipe=MODEL), [old()], "supersedes"),
        (new(), [old(recipe=HAND)], "supersedes"),
        (no_allergy(), [allergy(recipe=HAND)], "supersedes"),
        (no_allergy(recipe=MODEL), [allergy()], "waits"),
        (no_allergy(recipe=MODEL, said=("I had cake with nuts today.",)), [allergy()], "waits"),
        (no_allergy(recipe=MODEL, said=("I am no longer allergic to milk.",)), [allergy()], "waits"),
        (no_allergy(recipe=MODEL, said=("I am no longer allergic to nuts.",)), [allergy()], "supersedes"),
        (no_allergy(recipe=MODEL, said=("I am no longer allergic to nuts.",)), [allergy(recipe=HAND)], "waits"),
        (no_allergy(mine=False), [allergy()], "waits"),
        (no_allergy(mine=False), [], "waits"),
        (no_allergy(), [], "new"),
        (new("Alice is allergic to nuts.", NUTS, mine=False), [], "new"),
        (new("Alice can eat nuts.", None, mine=False),
         [old("Alice cannot eat nuts.", None, None, cosine=0.9, type="constraint")], "new"),
        (new("Alice can eat nuts.", None, mine=False, type="constraint"),
         [old("Alice cannot eat nuts.", None, None, cosine=0.9, type="constraint")], "waits"),
        (new("Alice can eat nuts.", None, type="constraint"),
         [old("Alice cannot eat nuts.", None, None, cosine=0.9, type="constraint")], "conflict"),
    ],
)  # fmt: skip
def test_what_protects_somebody_or_a_person_has_set_ends_by_no_model_and_by_nobody_else(incoming, stored, kind):
    assert reconcile(incoming, stored).kind == kind


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
    assert reconcile(replace(fact, ends=(contrary.fact.id,)), [contrary]).ended == (contrary,), "and is no duplicate"


def test_what_a_model_says_that_ends_waits_where_it_protects_somebody():
    fact = replace(new("Alice eats everything.", None, recipe=MODEL), ends=(UUID(int=1),))
    assert reconcile(fact, [allergy()]).kind == "waits"
    denied = replace(fact, said=("My allergy to nuts is gone.",))
    assert reconcile(denied, [allergy()]).kind == "supersedes"


def test_what_the_reader_finds_outdated_ends_with_the_first_that_makes_it_so():
    successor, milk = Successor(NOON + timedelta(days=5), UUID(int=7)), old("Alice drinks milk.", None, None)
    fact = replace(new("Alice drinks tea.", None), ends=(milk.fact.id,), successor=successor)
    decision = reconcile(fact, [milk])
    assert (decision.kind, decision.ended, decision.successor) == ("outdated", (milk,), successor)
    later = old(day=3, number=2)
    by_slot = reconcile(replace(new(), successor=successor), [later])
    assert by_slot.successor == (NOON + timedelta(days=3), later.fact.id)
    assert reconcile(replace(new(), successor=successor), [old(day=9, number=2)]).successor == successor


@pytest.mark.parametrize(
    ("since", "until", "begins", "said", "ends"),
    [
        (None, None, 3, 3, 3),
        (None, None, 1, 3, 1),  # "since Monday"
        (1, None, 5, 3, 3),  # "from Friday"
        (4, None, 3, 3, 4),
        (None, 2, 3, 3, 2),
    ],
)
def test_a_fact_ends_after_it_began_and_before_it_was_over(since, until, begins, said, ends):
    day = [NOON + timedelta(days=number) for number in range(6)]
    fact = columns("Alice lives in Porto.", None, None, NOON)
    fact.valid_from, fact.valid_to = since and day[since], until and day[until]
    assert end_of(fact, day[begins], day[said]) == day[ends]


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
    stored = old("Alice works as a nurse.", "task", "nurse", cosine=cosine, recipe=MODEL)
    fact = extracted(text, None, NOON)
    fact.fact.attribute, fact.fact.value, fact.fact.recipe = "task", value, MODEL
    assert reconcile(fact, [stored]).kind == kind


def test_of_one_value_by_the_reader_and_by_a_model_the_model_s_fact_is_active():
    says = "Alice has been allergic to nuts since her childhood."
    by_reader, by_model = allergy(), old(says, "allergy/nut", "yes", recipe=MODEL, type="constraint")
    supersedes = reconcile(new(says, NUTS, recipe=MODEL, type="constraint"), [by_reader])
    assert (supersedes.kind, supersedes.ended) == ("supersedes", (by_reader,))
    outdated = reconcile(new("Alice is allergic to nuts.", NUTS, type="constraint"), [by_model])
    assert (outdated.kind, outdated.successor) == ("outdated", (NOON, by_model.fact.id))


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


@pytest.mark.parametrize(
    ("speaker", "subjects", "kind"),
    [
        ("Alice", ["Alice's daughter Mia"], "supersedes"),
        ("Bob", ["Alice's daughter Mia"], "conflict"),
        ("Alice", ["Alice's daughter Mia", "Alice's friend Mia"], "new"),
        ("Alice", ["Alice's daughter Ida"], "new"),
    ],
)
def test_a_bare_name_is_of_the_one_relative_who_has_it(speaker, subjects, kind):
    fact = new("Mia lives in Porto.", subject="Mia", mine=False, speaker=speaker)
    stored = [
        old(f"{subject} lives in Hamburg.", subject=subject, number=number) for number, subject in enumerate(subjects)
    ]
    decision = reconcile(fact, stored)
    assert decision.kind == kind
    assert [*decision.ended, *decision.contradicted] == (stored if kind != "new" else [])


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


# -- in whatever order facts are judged


def lives(facts):
    """Return each fact that was stored in the end, its value, and until when it holds."""
    return {one.fact.text: (one.fact.value, one.fact.state, one.fact.valid_to) for one in fold(facts).values()}


def active_values(facts):
    return {value for value, state, _ in lives(facts).values() if state == "active"}


@given(
    st.permutations(range(6)),
    st.lists(st.sampled_from(["porto", "oslo", "rome", "bern"]), min_size=6, max_size=6),
    st.sampled_from([MODEL, HAND, "reader/1"]),
)
def test_the_value_said_last_is_active(order, towns, recipe):
    facts = [new(f"{day}: {town}", PORTO._replace(value=town), day, recipe=recipe) for day, town in enumerate(towns)]
    assert active_values([facts[day] for day in order]) == {towns[-1]}


@given(st.permutations(range(6)))
def test_every_value_holds_until_the_next_one_was_said(order):
    facts = [new(f"{day}: town", PORTO._replace(value=f"town{day}"), day) for day in range(6)]
    ends = {text: valid_to for text, (_, _, valid_to) in lives([facts[day] for day in order]).items()}
    assert ends == {f"{day}: town": NOON + timedelta(days=day + 1) if day < 5 else None for day in range(6)}


@given(st.permutations(range(6)), st.lists(st.sampled_from([NUTS, NO_NUTS]), min_size=6, max_size=6))
def test_an_allergy_is_or_is_not_as_was_said_last(order, slots):
    facts = [new(f"{day}: nuts, {slot.value}", slot, day, type="constraint") for day, slot in enumerate(slots)]
    assert active_values([facts[day] for day in order]) == {slots[-1].value}


@given(st.permutations(range(5)), st.lists(st.sampled_from(["nurse", "ward nurse", "night ward nurse"]), min_size=5))
def test_the_same_jobs_are_active_where_some_are_told_more_exactly(order, jobs):
    facts = [new(f"{day}: {each}", job(each), day) for day, each in enumerate(jobs[:5])]
    assert active_values([facts[day] for day in order]) == active_values(facts)


# -- of what is compared


def test_attributes_of_which_several_hold_at_once_are_known_by_their_first_part():
    many = ["allergy/peanut", "pet/cat", "health/asthma", "likes/tea", "task/taxes", "language"]
    assert [holds_many(one) for one in many] == [True] * 6
    assert [holds_many(one) for one in ("residence", "job", "plan/exam", "medication/metformin", "allergyx", "")] == [
        False
    ] * 6
    stored = columns("Alice is allergic to nuts.", "allergy/nut", "yes", NOON)
    assert slot_of_fact(stored) == NUTS
    doses = [slot_of_fact(columns("It.", "medication/metformin", each, NOON)) for each in ("yes", "500 mg")]
    assert [slot.many for slot in doses if slot] == [True, False]
    home = columns("Alice lives in Porto.", "residence", "porto", NOON)
    assert slot_of_fact(home) is None, "what the reader tells of a home is read in pairs"
    assert slot_of_fact(home.model_copy(update={"recipe": "hand"})) == PORTO
    assert slot_of_fact(columns("Alice sings.", None, None, NOON)) is None
    assert slot_of_fact(columns("Alice sings.", "likes/singing", None, NOON)) is None


@pytest.mark.slow
@pytest.mark.parametrize(
    "words", ["I live in ", "not my exam ", "a, ", "12:30 and 5 km ", "Alice's daughter Mia ", "'s "]
)
def test_the_time_of_a_long_text_is_bounded(words):
    def compare(text):
        content_words.cache_clear()
        near = old(f"{text} not", None, None, cosine=0.95)
        reconcile(new(text, None, subject="Alice's daughter"), [near])
        reconcile(new("Mia", subject=text), [old(text, subject=text)])

    assert_linear(compare, words)


@pytest.mark.slow
def test_the_time_of_many_known_facts_is_bounded():
    some = [old(f"Alice lives in T{n}.", value=f"t{n}", cosine=0.9, number=n, day=n % 19 - 9) for n in range(1000)]
    assert_linear(lambda text: reconcile(new(), some * (len(text) // 1000)), "a", length=2_000)


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
