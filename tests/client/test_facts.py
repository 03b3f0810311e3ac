"""The life of a fact: reinforced, superseded, outdated, contradicted, edited, taken back, undone; any past moment."""

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from memstore import Conflict, Fact, InvalidInput
from memstore.client.store import AsyncMemoryStore
from memstore.client.user import AsyncUserScope
from memstore.derive.facts import reader_extractor
from memstore.derive.facts.drafts import FactDraft
from memstore.derive.facts.utterances import Utterance
from memstore.derive.reader.notes import Note

START = datetime(2024, 3, 1, 18, 0, tzinfo=UTC)
MOMENT = timedelta(microseconds=1)
LEEDS, PORTO = "I live in Leeds.", "I live in Porto now."  # the reader is sure that the second ends the first
BOB, ANN, CAROL = (f"My manager is now {name}." for name in ("Bob", "Ann", "Carol"))  # and each of these any other
PEANUTS, NO_PEANUTS = "I'm allergic to peanuts.", "I'm not allergic to peanuts."  # two values of a slot
NAMED = re.compile("Leeds|Porto|Bob|Ann|Carol")


async def say(store: AsyncMemoryStore, text: str, day: int = 0, **more: Any) -> None:
    """Say something in a conversation of its own, on a day after the start."""
    place = store.user("alice").conversation(more.pop("place", f"day {day}"))
    await place.add(more.pop("role", "user"), text, occurred_at=START + timedelta(days=day), **more)


async def told(store: AsyncMemoryStore, *said: tuple[str, int]) -> AsyncUserScope:
    for text, day in said:
        await say(store, text, day)
        await store.derive()
    return store.user("alice")


async def by_name(alice: AsyncUserScope) -> dict[str, Fact]:
    """Return the facts of any state, by the place or the manager that they name."""
    return {"".join(NAMED.findall(fact.text)): fact for fact in await alice.facts(state=None)}


def row(fact: Fact) -> dict[str, Any]:
    return {name: getattr(fact, name) for name in Fact.model_fields}


async def test_saying_it_again_reinforces_what_is_known(store: AsyncMemoryStore) -> None:
    alice = await told(store, (LEEDS, 5), (LEEDS, 2), ("i live in   leeds.", 9))
    (fact,) = await alice.facts()
    assert len(fact.sources) == 3
    assert fact.occurred_at == START + timedelta(days=2)
    history = await alice.fact_history(fact)
    assert [step.action for step in history] == ["added", "reinforced", "reinforced"]
    assert {step.source for step in history} == set(fact.sources)
    assert [span.trust for span in fact.spans] == [2, 2, 2]
    earlier = await alice.facts(as_of=history[1].at - MOMENT)
    assert [(one.sources, one.occurred_at) for one in earlier] == [([history[0].source], START + timedelta(days=5))]


async def test_other_words_in_the_same_batch_reinforce_a_fact_too(url: str) -> None:
    async with await AsyncMemoryStore.open(url) as store:  # whose embedder knows that they mean the same
        await say(store, "I bake bread with my mother every Sunday.", place="one")
        await say(store, "I bake bread with my mum every Sunday.", place="one")
        await store.derive()
        [fact] = await store.user("alice").facts()
        assert len(fact.sources) == 2


async def test_a_newer_value_takes_the_place_of_the_old_one(store: AsyncMemoryStore) -> None:
    alice = await told(store, (LEEDS, 0))
    leeds = (await alice.facts())[0]
    await told(store, (PORTO, 3))
    facts = await by_name(alice)
    assert {name: fact.state for name, fact in facts.items()} == {"Leeds": "superseded", "Porto": "active"}
    assert facts["Leeds"].valid_to == START + timedelta(days=3)
    change = (await alice.fact_history(leeds))[-1]
    assert (change.action, change.other_id, change.before["state"]) == ("superseded", facts["Porto"].id, "active")
    assert [hit.text for hit in await alice.recall("Where do I live?", tiers=["facts"])] == [facts["Porto"].text]
    context = await alice.conversation("new").context("Where do I live?", budget=500)
    assert not any(fact.id == leeds.id for fact in context.receipt.included)

    await alice.undo(change)
    assert row((await by_name(alice))["Leeds"]) == row(leeds)
    await say(store, PORTO, 8)
    await store.derive()
    assert (await by_name(alice))["Leeds"].state == "active", "what somebody settled is not settled again"


@pytest.mark.parametrize("last", [CAROL, BOB])
@pytest.mark.parametrize("order", [(0, 1, 2), (1, 2, 0), (2, 1, 0)])
async def test_the_value_said_last_is_active(store: AsyncMemoryStore, order: tuple[int, ...], last: str) -> None:
    said = ((BOB, 0), (ANN, 3), (last, 7))
    facts = await by_name(await told(store, *(said[number] for number in order)))
    ends = {"Bob": 3, "Ann": 7, "Carol": None} if last == CAROL else {"Bob": None, "Ann": 7}
    assert {name: (fact.state, fact.valid_to) for name, fact in facts.items()} == {
        name: ("active", None) if day is None else ("superseded", START + timedelta(days=day))
        for name, day in ends.items()
    }


async def test_what_cannot_be_told_is_a_conflict_and_both_stay(store: AsyncMemoryStore) -> None:
    await say(store, PEANUTS, 0, place="one")
    await say(store, NO_PEANUTS, 0, place="other")
    await store.derive()
    alice = store.user("alice")
    facts = await alice.facts()
    assert {(fact.attribute, fact.value) for fact in facts} == {("allergy/peanut", "yes"), ("allergy/peanut", "no")}
    steps = [step for fact in facts for step in await alice.fact_history(fact)]
    (change,) = [step for step in steps if step.action == "conflicted"]
    assert {change.fact_id, change.other_id} == {fact.id for fact in facts}
    settled = await alice.undo(change)
    assert (settled.action, settled.undoes) == ("resolved", change.id)
    with pytest.raises(Conflict, match="this is undone"):
        await alice.undo(change)
    assert [row(fact) for fact in await alice.facts()] == [row(fact) for fact in facts]


async def test_facts_are_taken_from_people_only_unless_others_are_trusted(store: AsyncMemoryStore, url: str) -> None:
    for role in ("system", "developer", "assistant", "tool"):
        await say(store, f"I live in {role.title()}ville.", 1, role=role, place="c")
    await say(store, LEEDS, 1, place="c")
    await store.derive()
    alice = store.user("alice")
    assert [fact.text for fact in await alice.facts()] == ["The user lives in Leeds."]
    async with await AsyncMemoryStore.open(
        url, settings={"embedder": "hashing:256", "fact_roles": "user,assistant,tool"}
    ) as trusting:
        assert (await trusting.derive(redo="facts")).redone == 1
        facts = await trusting.user("alice").facts(state="all")
    levels = {fact.subject: (fact.spans[0].trust, fact.state) for fact in facts}
    assert levels == {"The user": (2, "active"), "The assistant": (1, "active"), "The tool": (0, "quarantined")}


async def test_what_a_context_had_put_into_a_message_is_not_taken_for_said(store: AsyncMemoryStore) -> None:
    alice = await told(store, (PEANUTS, 0))
    context = await alice.conversation("new").context("What must I avoid?", budget=500)
    prompt = "\n".join(str(message["content"]) for message in context.messages)
    assert "allergic to peanuts" in prompt
    await say(store, f"{prompt}\nI live in Leeds.", 3)
    await store.derive()
    allergy = next(fact for fact in await alice.facts() if "peanuts" in fact.text)
    assert len(allergy.sources) == 1
    assert {fact.text for fact in await alice.facts()} == {allergy.text, "The user lives in Leeds."}


async def test_a_fact_entered_by_hand_is_found_at_once_and_may_be_edited(store: AsyncMemoryStore) -> None:
    alice = store.user("alice")
    fact = await alice.add_fact("Alice plays the cello.", type="preference", subject="Alice")
    assert (fact.state, fact.recipe, fact.kind, fact.confidence) == ("active", "hand", "semantic", 1.0)
    assert [hit.id for hit in await alice.recall("Who plays the cello?")] == [fact.id]
    edited = await alice.edit_fact(fact, text="Alice plays the viola.", type="procedure")
    assert (edited.kind, edited.subject) == ("procedural", "Alice")
    assert [hit.text for hit in await alice.recall("Who plays something?")] == ["Alice plays the viola."]
    change = (await alice.fact_history(fact))[-1]
    assert (change.action, change.other_id, change.actor) == ("edited", edited.id, "hand")
    await alice.undo(change)
    assert [row(one) for one in await alice.facts()] == [row(fact)]
    assert [(one.id, one.state) for one in await alice.facts(state="retracted")] == [(edited.id, "retracted")]
    again = await alice.add_fact("Alice plays the viola.", type="preference", subject="Alice")
    assert (again.id, again.state) == (edited.id, "active")


async def test_only_the_last_word_is_undone(store: AsyncMemoryStore) -> None:
    alice = await told(store, (LEEDS, 0), (PORTO, 3))
    leeds = (await by_name(alice))["Leeds"]
    superseded = (await alice.fact_history(leeds))[-1]
    await alice.retract_fact(leeds)
    with pytest.raises(Conflict, match="state is 'retracted' and was 'superseded'"):
        await alice.undo(superseded)
    retracted = (await alice.fact_history(leeds))[-1]
    undone = await alice.undo(retracted)
    await alice.undo(superseded)
    with pytest.raises(Conflict):
        await alice.undo(undone)
    assert [step.action for step in await alice.fact_history(leeds)] == [
        "added",
        "superseded",
        "retracted",
        "superseded",
        "restored",
    ]


async def test_facts_are_filtered(store: AsyncMemoryStore) -> None:
    alice = store.user("alice")
    await alice.add_fact("Bob lives in Leeds.", type="identity", subject="Bob")
    await alice.add_fact("Alice flies to Rome on 3 May 2027.", type="plan", subject="Alice")
    assert [fact.subject for fact in await alice.facts(subject="bob")] == ["Bob"]
    assert [fact.subject for fact in await alice.facts(kind="episodic")] == ["Alice"]
    assert [fact.subject for fact in await alice.facts(type="identity")] == ["Bob"]
    assert await alice.facts(subject="Nobody") == []
    assert await alice.facts(state="all") == await alice.facts(state=None) == await alice.facts()
    for wrong in ({"state": "gone"}, {"kind": "x"}, {"as_of": datetime(2024, 1, 1)}):
        with pytest.raises(InvalidInput):
            await alice.facts(**wrong)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match=r"hobby.*preference.*procedure"):
        await alice.facts(type="hobby")


async def test_an_entity_is_seen_with_its_relations(store: AsyncMemoryStore) -> None:
    alice = store.user("alice")
    relations = [("Ann", "sister", "Bea"), ("Bea", "employer", "Acme"), ("Porto", "mayor", "Ann")]
    for subject, attribute, value in relations:
        await alice.add_fact(
            f"{subject}: {attribute} {value}.", type="identity", subject=subject, attribute=attribute, value=value
        )
    entity = await alice.entity("ann")
    assert [fact.subject for fact in entity.facts] == ["Ann", "Porto"], "its own, then those that name it"
    assert [(edge.subject, edge.value) for edge in entity.edges] == [("Ann", "Bea"), ("Porto", "Ann")]
    await alice.retract_fact((await alice.facts(subject="Porto"))[0])
    assert [edge.value for edge in (await alice.entity("Ann")).edges] == ["Bea"]


RECIPE = "memstore.derive.facts.reader_extractor.RECIPE"


async def test_a_redo_makes_facts_anew_but_for_what_people_did(
    store: AsyncMemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = ((BOB, 0), (PEANUTS, 1), ("My sister is a nurse.", 2), (ANN, 3), (CAROL, 5))
    alice = await told(store, *said)
    await alice.add_fact("Alice plays the cello.", type="preference", subject="Alice")
    by_text = {fact.text: fact for fact in await alice.facts(state=None)}
    allergy, sister = (next(one for text, one in by_text.items() if word in text) for word in ("peanuts", "nurse"))
    await alice.edit_fact(allergy, text="The user gets a rash from peanuts.", type="constraint")
    await alice.retract_fact(sister)
    bob = (await by_name(alice))["Bob"]
    await alice.undo((await alice.fact_history(bob))[-1])
    assert (await store.derive(redo="facts")).redone == 0, "of the same recipe"

    before = [(fact.text, fact.state, fact.sources, fact.valid_to) for fact in await alice.facts(state=None)]
    chunks = await store.stats()
    monkeypatch.setattr(RECIPE, "reader/test")
    report = await store.derive(redo="facts")
    assert (report.redone, report.failed) == (5, ())
    after = await alice.facts(state=None)
    assert [(fact.text, fact.state, fact.sources, fact.valid_to) for fact in after] == before
    assert {fact.recipe for fact in after if re.search("Ann|Carol", fact.text)} == {"reader/test"}
    assert await store.stats() == chunks
    assert (await store.derive(redo="facts")).redone == 0
    assert (await store.derive()).messages == 0


async def test_what_was_taken_back_or_edited_does_not_come_back_in_other_words(
    store: AsyncMemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    alice = await told(store, (LEEDS, 0), (PEANUTS, 1))
    leeds = (await by_name(alice))["Leeds"]
    await alice.retract_fact(leeds)
    (allergy,) = await alice.facts()
    await alice.edit_fact(allergy, text="The user gets a rash from peanuts.")
    extract = reader_extractor.extract

    def reworded(said: Utterance, notes: Sequence[Note], before: Sequence[Utterance], **_: Any) -> list[FactDraft]:
        return [draft.with_columns(text=f"It is so: {draft.fact.text}") for draft in extract(said, notes, before)]

    monkeypatch.setattr(reader_extractor, "extract", reworded)
    monkeypatch.setattr(RECIPE, "reader/test")
    assert (await store.derive(redo="facts")).redone == 2
    assert [fact.text for fact in await alice.facts()] == ["The user gets a rash from peanuts."]


async def test_a_redo_that_fails_leaves_the_old_facts(store: AsyncMemoryStore, monkeypatch: pytest.MonkeyPatch) -> None:
    alice = await told(store, (LEEDS, 0), (PORTO, 3))
    before = [row(fact) for fact in await alice.facts(state=None)]

    def broken(said: Utterance, notes: Sequence[Note], before: Sequence[Utterance], **_: Any) -> list[FactDraft]:
        raise ZeroDivisionError

    with monkeypatch.context() as patch:
        patch.setattr(reader_extractor, "extract", broken)
        patch.setattr(RECIPE, "reader/test")
        report = await store.derive(redo="facts")
        assert (report.redone, len(report.failed)) == (0, 2)
    assert [row(fact) for fact in await alice.facts(state=None)] == before


async def test_a_redo_of_summaries_takes_their_place(store: AsyncMemoryStore, monkeypatch: pytest.MonkeyPatch) -> None:
    trip = store.user("alice").conversation("c")
    for day in range(20):
        await trip.add("user", f"On day {day} we went to see the harbour of Porto.", occurred_at=START + timedelta(day))
        await trip.add("assistant", "That sounds lovely.", occurred_at=START + timedelta(day, 60))
    await store.derive()
    before = await trip.summaries()
    stats = await store.stats()
    monkeypatch.setattr("memstore.derive.summaries.extractive.ExtractiveSummarizer.recipe", "extractive/test")
    monkeypatch.setattr("memstore.derive.summaries.extractive.ExtractiveSummarizer.batch_size", 7)
    assert (await store.derive(redo="summaries")).redone == 1
    after = await trip.summaries()
    assert {one.recipe for one in after} == {"extractive/test"}
    ranges = [[(one.level, one.from_seq, one.to_seq, one.text) for one in some] for some in (before, after)]
    assert ranges[0] == ranges[1]
    assert await store.stats() == stats


async def test_what_cannot_be_of_a_fact_is_refused(store: AsyncMemoryStore) -> None:
    alice = await told(store, (LEEDS, 0))
    (fact,) = await alice.facts()
    with pytest.raises(InvalidInput):
        await alice.edit_fact(fact)
    with pytest.raises(InvalidInput, match="state"):
        await alice.edit_fact(fact, state="active")
    with pytest.raises(InvalidInput, match="confidence"):
        await alice.add_fact("x", type="identity", confidence=2)
    early = datetime.min.replace(tzinfo=timezone(timedelta(hours=14)))
    wrong = {"attribute": "a" * 301, "subject": "s" * 301, "value": "v" * 2001, "valid_from": early}
    for name, value in wrong.items():
        with pytest.raises(InvalidInput, match=name):
            await alice.add_fact(**{"text": "x", "type": "identity", name: value})
    full = await alice.add_fact(
        "Alice lives in 🏠.", type="identity", subject="🏠" * 300, attribute="🏡" * 300, value="🏠"
    )
    assert full.state == "active", "what is allowed fits into the index"


async def test_two_who_edit_at_once_overwrite_nothing(store: AsyncMemoryStore, monkeypatch: pytest.MonkeyPatch) -> None:
    alice = await told(store, (LEEDS, 0))
    (fact,) = await alice.facts()
    stale = fact.model_copy(update={"confidence": 0.1})
    monkeypatch.setattr(type(alice), "_stored_fact", lambda *_: _given(stale))
    with pytest.raises(Conflict, match="changed meanwhile"):
        await alice.edit_fact(fact, type="plan")
    monkeypatch.undo()
    assert [row(one) for one in await alice.facts()] == [row(fact)]


async def _given(fact: Fact) -> Fact:
    return fact


# Facts that people enter, edit and ask for: settled with what is known, seen from both sides


async def told_daily(store: AsyncMemoryStore, *said: str) -> AsyncUserScope:
    return await told(store, *((text, day) for day, text in enumerate(said)))


async def states(alice: AsyncUserScope) -> dict[str, str]:
    return {fact.text: fact.state for fact in await alice.facts(state="all")}


# -- entered


@pytest.mark.parametrize(
    ("said", "text", "slot"),
    [
        (LEEDS, "The user lives in Porto now.", (None, None)),
        (PEANUTS, "The user is not allergic to peanuts.", ("allergy/peanut", "no")),
    ],
)
async def test_what_is_entered_takes_the_place_of_an_older_value_at_once(
    store: AsyncMemoryStore, said: str, text: str, slot: tuple[str | None, str | None]
) -> None:
    alice = await told_daily(store, said)
    [old] = await alice.facts()
    new = await alice.add_fact(text, type="identity")
    assert (new.attribute, new.value) == slot, "read from its text, if it is about what protects somebody"
    assert await states(alice) == {old.text: "superseded", new.text: "active"}
    change = (await alice.fact_history(old))[-1]
    assert (change.action, change.other_id, change.actor) == ("superseded", new.id, "hand")
    await alice.undo(change)
    assert set((await states(alice)).values()) == {"active"}


async def test_a_slot_that_is_entered_has_one_value(store: AsyncMemoryStore) -> None:
    alice = await told_daily(store, "I like tea.")
    [tea] = await alice.facts()
    leeds, porto = [
        await alice.add_fact(f"The user lives in {place}.", type="identity", attribute="residence", value=place)
        for place in ("Leeds", "Porto")
    ]
    assert await states(alice) == {tea.text: "active", leeds.text: "superseded", porto.text: "active"}
    edited = await alice.edit_fact(tea, text="The user lives in Rome.", attribute="residence", value="Rome")
    assert [fact.id for fact in await alice.facts()] == [edited.id]


async def test_what_is_entered_takes_the_place_of_what_says_the_same(store: AsyncMemoryStore) -> None:
    alice = await told_daily(store, "I'm allergic to shellfish.")
    [derived] = await alice.facts()
    entered = await alice.add_fact("I'm allergic to shellfish.", type="constraint")
    assert await states(alice) == {derived.text: "superseded", entered.text: "active"}
    assert entered.sources == derived.sources, "what was said says it too"
    await told_daily(store, "I'm allergic to shellfish.", "I'm allergic to shellfish.")
    assert [fact.id for fact in await alice.facts()] == [entered.id], "saying it again does not bring it back"
    (change,) = [one for one in await alice.fact_history(entered) if one.action == "edited"]
    await alice.undo(change)
    assert await states(alice) == {derived.text: "active", entered.text: "retracted"}


async def test_what_has_ended_ends_nothing(store: AsyncMemoryStore) -> None:
    alice = await told_daily(store, LEEDS)
    rome = await alice.add_fact("The user lives in Rome.", type="identity", valid_to=START - timedelta(days=900))
    assert rome.state == (await alice.fact(rome)).state == "ended"
    assert sorted((await states(alice)).values()) == ["active", "ended"]


# -- edited


async def test_an_edit_is_in_the_history_of_both_facts_and_undone_from_either(store: AsyncMemoryStore) -> None:
    alice = await told_daily(store, PEANUTS)
    [peanuts] = await alice.facts()
    walnuts = await alice.edit_fact(peanuts, text="The user is allergic to walnuts.")
    assert (walnuts.attribute, walnuts.value) == ("allergy/walnut", "yes"), "the slot follows the words"
    [mine] = [one for one in await alice.fact_history(walnuts) if one.action == "edited"]
    [others] = [one for one in await alice.fact_history(peanuts) if one.action == "edited"]
    assert (mine.fact_id, mine.other_id) == (walnuts.id, peanuts.id)
    assert (others.fact_id, others.other_id) == (peanuts.id, walnuts.id)
    assert mine.id == others.id
    await alice.undo(mine)
    assert await states(alice) == {peanuts.text: "active", walnuts.text: "retracted"}


async def test_no_edit_makes_two_facts_one(store: AsyncMemoryStore) -> None:
    alice = await told_daily(store, "I like tea.")
    [tea] = await alice.facts()
    rome = await alice.add_fact("The user lives in Rome.", type="identity")
    with pytest.raises(Conflict, match="retract this one"):
        await alice.edit_fact(tea, text="The user lives in Rome.")
    assert await states(alice) == {tea.text: "active", rome.text: "active"}


async def test_an_edited_slot_is_that_of_the_new_words_or_none(store: AsyncMemoryStore) -> None:
    alice = store.user("alice")
    fact = await alice.add_fact("Ann plays the cello.", type="preference", attribute="instrument", value="cello")
    fact = await alice.edit_fact(fact, text="Ann never plays the cello.")
    assert (fact.attribute, fact.value) == (None, None)


# -- asked for


async def test_an_entity_that_is_only_named_is_found(store: AsyncMemoryStore) -> None:
    alice = store.user("alice")
    walk = await alice.add_fact("The user walks with LENA on Sundays.", type="preference")
    await alice.add_fact("The user saw a film about Lenapark.", type="event")
    gone = await alice.add_fact("The user owes Lena a book.", type="relationship")
    await alice.retract_fact(gone)
    assert [fact.id for fact in (await alice.entity("Lena")).facts] == [walk.id]
    own = await alice.add_fact("Lena is a nurse.", type="identity", subject="Lena")
    assert [fact.id for fact in (await alice.entity("lena")).facts] == [own.id, walk.id]
    assert (await alice.entity("Len")).facts == ()
    assert (await alice.entity("L.na")).facts == ()


# -- taken back, and given back


async def test_what_a_fact_had_ended_holds_again_when_it_is_taken_back(store: AsyncMemoryStore) -> None:
    alice = await told_daily(store, LEEDS, PORTO)
    before = {fact.id: fact for fact in await alice.facts(state=None)}
    [porto] = await alice.facts()
    await alice.retract_fact(porto)
    [leeds] = await alice.facts()
    assert (leeds.text, leeds.valid_to) == ("The user lives in Leeds.", None)
    undone = await alice.undo((await alice.fact_history(porto))[-1])
    assert {fact.id: fact for fact in await alice.facts(state=None)} == before
    with pytest.raises(Conflict, match="is an undo"):
        await alice.undo(undone)
    await alice.retract_fact(porto)
    assert [fact.id for fact in await alice.facts()] == [leeds.id]


async def test_what_has_ended_since_was_ended_by_what_came_next(store: AsyncMemoryStore) -> None:
    alice = await told_daily(store, BOB, ANN, CAROL)
    before = {fact.id: fact for fact in await alice.facts(state=None)}
    ann = (await by_name(alice))["Ann"]
    await alice.retract_fact(ann)
    now = {name: (fact.state, fact.valid_to) for name, fact in (await by_name(alice)).items()}
    assert now["Bob"] == ("superseded", START + timedelta(days=2))
    assert now["Carol"] == ("active", None)
    await alice.undo((await alice.fact_history(ann))[-1])
    assert {fact.id: fact for fact in await alice.facts(state=None)} == before


@pytest.mark.parametrize(
    "new", [{"text": "The user is not allergic to peanuts."}, {"attribute": "allergy/peanut", "value": "no"}]
)
async def test_an_edit_ends_other_values_of_its_new_slot(store: AsyncMemoryStore, new: dict[str, str]) -> None:
    alice = await told_daily(store, PEANUTS, "I like tea.")
    before = {fact.id: fact for fact in await alice.facts(state=None)}
    [tea] = [fact for fact in before.values() if fact.type != "constraint"]
    none = await alice.edit_fact(tea, **new)
    assert [fact.id for fact in await alice.facts()] == [none.id]
    await alice.undo((await alice.fact_history(tea))[-1])
    now = {fact.id: fact for fact in await alice.facts(state=None)}
    assert {id: now[id] for id in before} == before


@pytest.mark.parametrize(
    ("said", "text"),
    [((PEANUTS, NO_PEANUTS), "The user is allergic to walnuts."), ((LEEDS, PORTO), "The user plays the cello.")],
)
async def test_an_edit_to_something_else_lets_the_old_one_hold_what_it_held(
    store: AsyncMemoryStore, said: tuple[str, str], text: str
) -> None:
    alice = await told_daily(store, *said)
    [new] = await alice.facts()
    [old] = await alice.facts(state="superseded")
    edited = await alice.edit_fact(new, text=text)
    assert {fact.id for fact in await alice.facts()} == {old.id, edited.id}
    await alice.undo((await alice.fact_history(new))[-1])
    assert [fact.id for fact in await alice.facts()] == [new.id]
