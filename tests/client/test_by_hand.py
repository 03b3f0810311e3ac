"""Facts that people enter, edit and ask for: settled with what is known, seen from both sides, named in texts."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from memstore import Conflict
from memstore.client.store import AsyncMemoryStore
from memstore.client.user import AsyncUserScope

START = datetime(2024, 3, 1, 18, 0, tzinfo=UTC)


async def told(store: AsyncMemoryStore, *said: str, name: str | None = None) -> AsyncUserScope:
    """Say this, each on a day of its own, and derive."""
    for day, text in enumerate(said):
        place = store.user("alice").conversation(f"day {day}")
        await place.add("user", text, name=name, occurred_at=START + timedelta(days=day))
    await store.derive()
    return store.user("alice")


async def states(alice: AsyncUserScope) -> dict[str, str]:
    return {fact.text: fact.state for fact in await alice.facts(state="all")}


# -- entered


async def test_what_is_entered_takes_the_place_of_an_older_value_at_once(store: AsyncMemoryStore) -> None:
    alice = await told(store, "I live in Leeds.")
    [leeds] = await alice.facts()
    porto = await alice.add_fact("The user lives in Porto.", type="identity")
    assert (porto.attribute, porto.value) == ("residence", "porto"), "read from its text"
    assert await states(alice) == {leeds.text: "superseded", porto.text: "active"}
    change = (await alice.fact_history(leeds))[-1]
    assert (change.action, change.other_id, change.actor) == ("superseded", porto.id, "hand")
    await alice.undo(change)
    assert set((await states(alice)).values()) == {"active"}


async def test_what_was_true_before_may_be_entered_again_in_other_words(store: AsyncMemoryStore) -> None:
    alice = await told(store, "I live in Porto.", "I live in Leeds.")
    porto = await alice.add_fact("The user lives in Porto!", type="identity")
    assert [fact.id for fact in await alice.facts()] == [porto.id]


async def test_what_is_entered_takes_the_place_of_what_says_the_same(store: AsyncMemoryStore) -> None:
    alice = await told(store, "I'm allergic to shellfish.")
    [derived] = await alice.facts()
    entered = await alice.add_fact("I'm allergic to shellfish.", type="constraint")
    assert await states(alice) == {derived.text: "superseded", entered.text: "active"}
    assert entered.sources == derived.sources, "what was said says it too"
    await told(store, "I'm allergic to shellfish.", "I'm allergic to shellfish.")
    assert [fact.id for fact in await alice.facts()] == [entered.id], "saying it again does not bring it back"
    (change,) = [one for one in await alice.fact_history(entered) if one.action == "edited"]
    await alice.undo(change)
    assert await states(alice) == {derived.text: "active", entered.text: "retracted"}


async def test_what_has_ended_ends_nothing(store: AsyncMemoryStore) -> None:
    alice = await told(store, "I live in Leeds.")
    await alice.add_fact("The user lives in Rome.", type="identity", valid_to=START - timedelta(days=900))
    assert set((await states(alice)).values()) == {"active"}


# -- edited


async def test_an_edit_is_in_the_history_of_both_facts_and_undone_from_either(store: AsyncMemoryStore) -> None:
    alice = await told(store, "I live in Leeds.")
    [leeds] = await alice.facts()
    porto = await alice.edit_fact(leeds, text="The user lives in Porto.")
    assert (porto.attribute, porto.value) == ("residence", "porto"), "the slot follows the words"
    [mine] = [one for one in await alice.fact_history(porto) if one.action == "edited"]
    [others] = [one for one in await alice.fact_history(leeds) if one.action == "edited"]
    assert (mine.fact_id, mine.other_id) == (porto.id, leeds.id)
    assert (others.fact_id, others.other_id) == (leeds.id, porto.id)
    assert mine.id == others.id
    await alice.undo(mine)
    assert await states(alice) == {leeds.text: "active", porto.text: "retracted"}


async def test_no_edit_makes_two_facts_one(store: AsyncMemoryStore) -> None:
    alice = await told(store, "I like tea.")
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
    await alice.add_fact("The user lives in Lenapark.", type="identity")
    gone = await alice.add_fact("The user owes Lena a book.", type="relationship")
    await alice.retract_fact(gone)
    assert [fact.id for fact in (await alice.entity("Lena")).facts] == [walk.id]
    own = await alice.add_fact("Lena is a nurse.", type="identity", subject="Lena")
    assert [fact.id for fact in (await alice.entity("lena")).facts] == [own.id, walk.id]
    assert (await alice.entity("Len")).facts == ()
    assert (await alice.entity("L.na")).facts == ()


# -- taken back, and given back


async def test_what_a_fact_had_ended_holds_again_when_it_is_taken_back(store: AsyncMemoryStore) -> None:
    alice = await told(store, "I live in Leeds.", "I live in Porto.")
    before = {fact.id: fact for fact in await alice.facts(state=None)}
    [porto] = await alice.facts()
    await alice.retract_fact(porto)
    [leeds] = await alice.facts()
    assert (leeds.value, leeds.valid_to) == ("leeds", None)
    undone = await alice.undo((await alice.fact_history(porto))[-1])
    assert {fact.id: fact for fact in await alice.facts(state=None)} == before
    with pytest.raises(Conflict, match="is an undo"):
        await alice.undo(undone)
    await alice.retract_fact(porto)
    assert [fact.value for fact in await alice.facts()] == ["leeds"]


@pytest.mark.parametrize("first", ["Leeds", "Germany"])
async def test_what_has_ended_since_does_not_hold_again_but_ended_by_what_came_next(
    store: AsyncMemoryStore, first: str
) -> None:
    alice = await told(store, f"I live in {first}.", "I live in Porto.", "I live in Rome.")
    before = {fact.id: fact for fact in await alice.facts(state=None)}
    porto = next(fact for fact in before.values() if fact.value == "porto")
    await alice.retract_fact(porto)
    now = {str(fact.value): (fact.state, fact.valid_to) for fact in await alice.facts(state=None)}
    assert now[first.lower()] == ("superseded", START + timedelta(days=2))
    assert now["rome"] == ("active", None)
    await alice.undo((await alice.fact_history(porto))[-1])
    assert {fact.id: fact for fact in await alice.facts(state=None)} == before


async def test_what_was_taken_back_and_is_entered_again_takes_its_place_again(store: AsyncMemoryStore) -> None:
    alice = await told(store, "I live in Leeds.")
    porto = await alice.add_fact("The user lives in Porto.", type="identity")
    await alice.retract_fact(porto)
    await alice.add_fact("The user lives in Porto.", type="identity")
    assert [fact.value for fact in await alice.facts()] == ["porto"]


@pytest.mark.parametrize("new", [{"text": "The user lives in Porto."}, {"attribute": "residence", "value": "porto"}])
async def test_an_edit_ends_other_values_of_the_slot_that_it_gives(
    store: AsyncMemoryStore, new: dict[str, str]
) -> None:
    alice = await told(store, "I live in Leeds.", "I like tea.")
    before = {fact.id: fact for fact in await alice.facts(state=None)}
    [tea] = [fact for fact in before.values() if fact.type != "identity"]
    porto = await alice.edit_fact(tea, **new)
    assert [fact.id for fact in await alice.facts()] == [porto.id]
    await alice.undo((await alice.fact_history(tea))[-1])
    now = {fact.id: fact for fact in await alice.facts(state=None)}
    assert {id: now[id] for id in before} == before


async def test_an_edit_to_another_slot_lets_the_old_one_hold_what_it_held(store: AsyncMemoryStore) -> None:
    alice = await told(store, "I live in Leeds.", "I live in Porto.")
    [porto] = await alice.facts()
    await alice.edit_fact(porto, text="The user works at Acme.")
    assert sorted(str(fact.value) for fact in await alice.facts()) == ["acme", "leeds"]
    await alice.undo((await alice.fact_history(porto))[-1])
    assert [fact.id for fact in await alice.facts()] == [porto.id]
