"""What a later statement makes outdated, as the reader understands two: the same, whatever is derived first."""

import itertools
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from memstore.client.store import AsyncMemoryStore
from memstore.client.user import AsyncUserScope
from memstore.derive.facts import changes
from memstore.derive.reader.notes import Pair
from memstore.models import Fact

START = datetime(2024, 3, 1, 18, 0, tzinfo=UTC)
NADIA, TOM, SHED = (
    "The spare key is with Nadia at number 12.",
    "The spare key is with Tom from the bakery.",
    "The spare key hangs in the shed behind the house.",
)
USUAL = {"replaces": 0.0, "ends": 0.0, "same": 0.0, "refines": 0.0, "independent": 0.0}


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[Pair]:
    """Let what is said of a key make what was said of it before outdated; return the pairs that are read."""
    pairs: list[Pair] = []

    def relations(asked: Sequence[Pair]) -> list[dict[str, float]]:
        pairs.extend(asked)
        return [
            USUAL | {"replaces": 0.55 if "key" in one.earlier and "key" in one.later else 0.1, "ends": 0.38}
            for one in asked
        ]

    monkeypatch.setattr(changes, "read_relations", relations)
    return pairs


async def say(alice: AsyncUserScope, text: str, day: int, name: str = "Alice", place: str = "", **more: Any) -> None:
    at = START + timedelta(days=day)
    await alice.conversation(place or f"day {day}").add("user", text, name=name, occurred_at=at, **more)


async def states(alice: AsyncUserScope) -> dict[str, str]:
    return {said_in(fact.text): fact.state for fact in await alice.facts(state="all")}


async def known(alice: AsyncUserScope, said: str) -> Fact:
    [found] = [fact for fact in await alice.facts(state="all") if said_in(fact.text) == said]
    return found


def said_in(text: str) -> str:
    """Give the words of a fact: of a quotation, or of plain words as they were said."""
    return text.partition('"')[2].rstrip('"') or text.replace("Alice's", "The", 1)


async def test_what_is_not_near_ends_only_where_the_reading_is_very_sure(
    store: AsyncMemoryStore, read: list[Pair], monkeypatch: pytest.MonkeyPatch
) -> None:
    alice = store.user("alice")
    monkeypatch.setattr(changes, "MIN_SAME_THING_COSINE", 1.0)
    monkeypatch.setattr(changes, "MIN_UNSURE_PROBABILITY", 0.99)
    for day, text in enumerate((NADIA, TOM)):
        await say(alice, text, day)
        await store.derive()
    assert await states(alice) == {NADIA: "active", TOM: "active"}
    assert len(read) == 1
    monkeypatch.setattr(changes, "MIN_UNSURE_PROBABILITY", 0.9)
    await say(alice, SHED, 2)
    await store.derive()
    assert set((await states(alice)).values()) == {"superseded", "active"}


@pytest.mark.parametrize("said", [[NADIA, TOM, SHED], [NADIA, TOM, NADIA], [NADIA, TOM, TOM, SHED, TOM]])
async def test_the_same_holds_whichever_conversation_is_derived_first(
    store: AsyncMemoryStore, read: list[Pair], said: list[str]
) -> None:
    outcomes = []
    for order in itertools.islice(itertools.permutations(range(len(said))), 0, None, 17 if len(said) > 3 else 1):
        alice = store.user(str(order))
        for day in order:
            await say(alice, said[day], day)
            await store.derive()
        facts = await alice.facts(state="all")
        outcomes.append({(fact.text, fact.state) for fact in facts})
        if len(said) == len(set(said)):
            until = {fact.valid_to for fact in facts}
            assert until == {None, *(START + timedelta(days=day) for day in range(1, len(said)))}
    assert outcomes[0] == {*itertools.chain(*outcomes)}
    assert [said_in(text) for text, state in outcomes[0] if state == "active"] == [said[-1]]


async def test_it_is_logged_by_which_words_and_can_be_undone(store: AsyncMemoryStore, read: list[Pair]) -> None:
    alice = store.user("alice")
    await say(alice, NADIA, 0)
    await say(alice, TOM, 1)
    await store.derive()
    tom, nadia = await known(alice, TOM), await known(alice, NADIA)
    [_, done] = await alice.fact_history(nadia.id)
    assert (done.action, done.other_id, done.actor) == ("superseded", tom.id, tom.recipe)
    await alice.undo(done.id)
    await say(alice, SHED, 2)
    await store.derive()
    assert await states(alice) == {NADIA: "active", TOM: "superseded", SHED: "active"}


async def test_a_retraction_of_the_later_words_brings_the_earlier_back(
    store: AsyncMemoryStore, read: list[Pair]
) -> None:
    alice = store.user("alice")
    await say(alice, NADIA, 0)
    await say(alice, TOM, 1)
    await store.derive()
    assert await states(alice) == {NADIA: "superseded", TOM: "active"}
    await alice.retract_fact((await known(alice, TOM)).id)
    assert (await states(alice))[NADIA] == "active"


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
@pytest.mark.parametrize(
    "kind", ["another", "friends", "untrusted", "relative", "landlord", "named alike", "event", "protects"]
)
async def test_what_may_not_end_a_fact(
    store: AsyncMemoryStore, read: list[Pair], monkeypatch: pytest.MonkeyPatch, kind: str, order: tuple[int, int]
) -> None:
    alice = store.user("alice")
    earlier = {
        "protects": "I have an EpiPen against wasps, the key to its box is with Nadia.",
        "event": "Last March I broke my leg on the stairs, with the spare key in my hand.",
    }
    later = {
        "relative": "My sister's spare key is with Tom from the bakery.",
        "landlord": "My landlord's spare key is with Tom from the bakery.",
    }.get(kind, TOM)
    speaker = {"another": "Ben", "named alike": "Alice's flatmate"}.get(kind, "Alice")

    async def tell(day: int) -> None:
        if day == 0:
            await say(alice, earlier.get(kind, NADIA), 0)
        elif kind == "friends":
            await say(alice, "Where is it?", 1, name="Ben", place="friends")
            await say(alice, later, 1, place="friends")
        else:
            more = {"metadata": {"trust": "untrusted"}} if kind == "untrusted" else {}
            await say(alice, later, 1, name=speaker, **more)
        await store.derive()

    for day in order:
        await tell(day)
    old = [fact for fact in await alice.facts(state="all") if "Tom" not in fact.text]
    assert [fact.state for fact in old] == ["active"]


@pytest.mark.parametrize(
    ("earlier", "later", "ends"),
    [
        ("The key is with Nadia.", "The key has not moved, don't worry.", False),
        ("The key is with Nadia.", "I haven't sold the house with the key yet.", False),
        ("Der Schlüssel (key) ist bei Nadia.", "Der key ist noch nicht verkauft.", False),
        ("The key is with Nadia.", "The key moved to Tom.", True),
        ("My son mustn't eat eggs, says the key doctor.", "My son eats with the key spoon now.", False),
        ("I can't have the key in this flat.", "I can have the key in this flat now.", True),
        ("Mila darf keine Nüsse vom key Regal.", "Mila darf jetzt länger mit dem key spielen.", False),
        ("My son plays with the key box.", "My son plays with the key ring now.", True),
        ("My son can't eat key limes.", "I can eat key limes again.", False),
        ("My son can't eat key limes.", "My son eats key lime pie now.", False),
        ("My son can't eat key limes.", "My son can eat key limes again now.", False),
        ("I can't eat key limes.", "I can eat key limes again now.", False),
        ("My son can't have the key nuts.", "The key nuts moved to Tom, says my aunt Grant.", False),
        ("The key is with my client Vincent.", "I moved the key of the apartment from my aunt to Tom.", True),
    ],
)
async def test_what_did_not_happen_ends_nothing_and_what_others_may_not_have_does_not_end(
    store: AsyncMemoryStore, read: list[Pair], earlier: str, later: str, ends: bool
) -> None:
    alice = store.user("alice")
    for day, text in enumerate((earlier, later)):
        await alice.conversation(f"day {day}").add("user", text, name="Alice", occurred_at=START + timedelta(days=day))
        await store.derive()
    first = [fact for fact in await alice.facts(state="all") if fact.occurred_at < START + timedelta(hours=1)]
    assert first, "it is read"
    assert all((fact.state == "superseded") is ends for fact in first)


async def test_what_a_person_has_pinned_or_restored_is_not_ended(store: AsyncMemoryStore, read: list[Pair]) -> None:
    alice = store.user("alice")
    await say(alice, NADIA, 0)
    await store.derive()
    [nadia] = await alice.facts()
    await alice.edit_fact(nadia.id, importance="pinned")
    await say(alice, TOM, 1)
    await store.derive()
    assert await states(alice) == {NADIA: "active", TOM: "active"}


async def test_of_two_that_fill_slots_these_decide(store: AsyncMemoryStore, read: list[Pair]) -> None:
    alice = store.user("alice")
    await say(alice, "I'm allergic to key limes.", 0)
    await say(alice, "I'm not allergic to key limes.", 1)
    await store.derive()
    found = {fact.text: (fact.attribute, fact.value, fact.state) for fact in await alice.facts(state="all")}
    assert found == {
        "Alice is allergic to key limes.": ("allergy/key lime", "yes", "superseded"),
        "Alice is not allergic to key limes.": ("allergy/key lime", "no", "active"),
    }
    assert not read


@pytest.mark.parametrize("order", [(3, 10), (10, 3)])
async def test_a_plan_holds_until_its_day_is_over_as_it_was_said_last(
    store: AsyncMemoryStore, order: tuple[int, int]
) -> None:
    alice = store.user("alice")
    for day in order:
        await say(alice, "I have an appointment at the dentist's on Friday at 8.", day)
        await store.derive()
    [fact] = await alice.facts(state="ended")
    assert (fact.type, fact.valid_from, fact.valid_to) == ("plan", None, datetime(2024, 3, 16, tzinfo=UTC))
    assert [one.state for one in (fact, *await alice.facts(state="all"), await alice.fact(fact))] == ["ended"] * 3
    later = await alice.edit_fact(fact, valid_to=datetime(2124, 3, 16, tzinfo=UTC))
    assert later.state == "active"
    await alice.edit_fact(fact, valid_to=fact.valid_to)
    assert "at 8" in fact.text
    assert await alice.facts() == []


@pytest.mark.parametrize(
    ("earlier", "later", "share", "ended"),
    [
        ("I take insulin twice a day.", "My insulin pump is gone, I gave it back.", 0.99, False),
        ("My flatmate Magnus plays war games till three.", "Magnus moved out this afternoon.", 0.94, True),
        ("My flatmate Magnus plays war games till three.", "Magnus moved out this afternoon.", 0.92, False),
        ("I live with Magnus in Cork.", "Magnus moved out this afternoon.", 0.99, False),
        ("ive got a cat called biscuit", "biscuit died last week", 0.94, True),
        ("My sister is called Jo, she lives in York", "jo moved to bristol", 0.99, False),
    ],
)
@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
async def test_what_is_about_somebody_by_name_ends_by_words_about_them(
    store: AsyncMemoryStore,
    monkeypatch: pytest.MonkeyPatch,
    earlier: str,
    later: str,
    share: float,
    ended: bool,
    order: tuple[int, int],
) -> None:
    monkeypatch.setattr(changes, "read_relations", lambda asked: [USUAL | {"ends": share} for _ in asked])
    monkeypatch.setattr(changes, "MIN_SAME_THING_COSINE", 0.0)
    alice = store.user("alice")
    for day in order:
        await say(alice, (earlier, later)[day], day)
        await store.derive()
    assert sorted(
        (fact.occurred_at - START, fact.state == "superseded") for fact in await alice.facts(state="all")
    ) == [(timedelta(days=0), ended), (timedelta(days=1), False)]
