"""Tidying: plans whose time has passed are proposed to be ended, and nothing changes before a person accepts."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from memstore import AsyncMemoryStore, Conflict, Fact, NotFound

MAY = datetime(2026, 5, 25, tzinfo=UTC)
PLANS = ["I'm going camping next month.", "I have a dentist appointment next week."]
LASTING = ["I'm allergic to walnuts.", "I'm learning to play the violin."]


async def tell(store: AsyncMemoryStore, *texts: str, at: datetime = MAY, user: str = "alice") -> None:
    rows: list[dict[str, Any]] = [{"role": "user", "content": text, "occurred_at": at} for text in texts]
    await store.user(user).conversation(f"{at:%x}").add_many(rows)
    await store.derive()


async def shown(store: AsyncMemoryStore, user: str = "alice") -> tuple[Any, ...]:
    """Return whatever facts, hits, profiles, contexts and histories tell of a user."""
    scope = store.user(user)
    facts = await scope.facts(state=None)
    hits = await scope.recall("What do I plan?", limit=50)
    context = await scope.conversation("new").context("What do I plan?", budget=2000)
    histories = [await scope.fact_history(fact) for fact in facts]
    return (
        facts,
        [(hit.text, hit.valid_to) for hit in hits],
        (await scope.profile(400)).text,
        context.messages,
        histories,
    )


async def proposed(store: AsyncMemoryStore, user: str = "alice") -> dict[str, Fact]:
    return {fact.text: fact for fact in (proposal.fact for proposal in await store.user(user).tidy())}


async def test_a_plan_whose_time_has_passed_is_proposed_with_its_words_and_ends_when_it_is_accepted(
    store: AsyncMemoryStore,
) -> None:
    alice = store.user("alice")
    await tell(store, *PLANS, *LASTING)
    await tell(store, "I'm going sailing next year.", at=datetime.now(UTC))
    before = await shown(store)
    proposals = await alice.tidy()
    assert {(each.quotes[0].rstrip("."), f"{each.ends_at:%m-%d}") for each in proposals} == {
        (PLANS[0].rstrip("."), "07-01"), (PLANS[1].rstrip("."), "06-08"),
    }  # fmt: skip
    assert await shown(store) == before
    changes = await alice.decide_tidy(accept=[each.fact for each in proposals])
    assert {change.fact_id: change.after["valid_to"] for change in changes} == {
        each.fact.id: each.ends_at.isoformat() for each in proposals
    }
    assert {fact.id for fact in await alice.facts(state="ended")} == {each.fact.id for each in proposals}
    assert await alice.tidy() == []
    as_known = await alice.facts(as_of=changes[0].at - timedelta(microseconds=1))
    assert {each.fact.id for each in proposals} <= {fact.id for fact in as_known}
    # What was accepted together is undone together, and not proposed again.
    undone = await alice.undo_tidy(changes[1])
    assert {change.undoes for change in undone} == {change.id for change in changes}
    assert (await alice.facts(state="ended"), await alice.tidy()) == ([], [])
    with pytest.raises(Conflict):
        await alice.undo_tidy(changes[0])


async def test_a_refused_plan_is_kept_and_proposed_again_only_when_it_is_said_again(store: AsyncMemoryStore) -> None:
    alice = store.user("alice")
    await tell(store, *PLANS)
    camping = next(fact for text, fact in (await proposed(store)).items() if "camping" in text)
    with pytest.raises(NotFound, match="Nothing was changed"):
        await alice.decide_tidy(refuse=[camping, alice.id])
    (change,) = await alice.decide_tidy(refuse=[camping])
    assert (await alice.fact(camping)).model_dump() == camping.model_dump()
    assert [text for text in await proposed(store) if "camping" in text] == []
    with pytest.raises(NotFound, match="ended no plan"):
        await alice.undo_tidy(change)
    await tell(store, PLANS[0], at=MAY + timedelta(days=40))
    assert (await proposed(store))[camping.text].id == camping.id


async def test_an_accepted_plan_that_is_said_again_later_holds_again(store: AsyncMemoryStore) -> None:
    alice = store.user("alice")
    await tell(store, PLANS[0])
    (proposal,) = await alice.tidy()
    await alice.decide_tidy(accept=[proposal.fact])
    # Of before its end: it has ended all the same.
    await tell(store, PLANS[0], at=MAY + timedelta(days=9))
    assert (await alice.fact(proposal.fact)).state == "ended"
    await store.derive(redo="facts")
    assert (await alice.fact(proposal.fact)).state == "ended"
    await tell(store, PLANS[0], at=MAY + timedelta(days=60))
    assert (await alice.fact(proposal.fact)).state == "active"
    assert [f"{each.ends_at:%m-%d}" for each in await alice.tidy()] == ["09-01"]


async def test_what_a_person_has_set_is_not_proposed(store: AsyncMemoryStore) -> None:
    alice = store.user("alice")
    await tell(store, *PLANS)
    pinned, edited = (await proposed(store)).values()
    await alice.edit_fact(pinned, importance="pinned")
    await alice.edit_fact(edited, confidence=0.7)
    assert await alice.tidy() == []


async def test_proposals_go_with_the_messages_that_say_them(store: AsyncMemoryStore) -> None:
    alice = store.user("alice")
    await tell(store, *PLANS)
    first, *others = await alice.tidy()
    await alice.decide_tidy(refuse=[each.fact for each in others])
    await alice.erase_message(first.fact.sources, others[0].fact.sources)
    assert await alice.tidy() == []
    assert await alice.facts(state=None) == []


@settings(max_examples=4, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(decisions=st.lists(st.sampled_from(["accept", "refuse", "wait"]), min_size=3, max_size=3))
async def test_only_what_is_accepted_changes_and_nobody_else_sees_it(
    store: AsyncMemoryStore, decisions: list[str]
) -> None:
    name = f"alice {uuid4()}"
    alice = store.user(name)
    await tell(store, *PLANS, "I'm flying to Lisbon this week.", *LASTING, user=name)
    await tell(store, *LASTING, user=f"friend of {name}")
    before, of_friend = {fact.id: fact for fact in await alice.facts()}, await shown(store, f"friend of {name}")
    proposals = await alice.tidy()
    assert len(proposals) == 3
    chosen = {
        name: [each.fact for each, decision in zip(proposals, decisions, strict=True) if decision == name]
        for name in ("accept", "refuse")
    }
    await alice.decide_tidy(**chosen)
    accepted = {fact.id for fact in chosen["accept"]}
    assert {fact.id: fact for fact in await alice.facts()} == {
        id: fact for id, fact in before.items() if id not in accepted
    }
    assert len(await alice.tidy()) == decisions.count("wait")
    assert await store.user(f"friend of {name}").tidy() == []
    assert await shown(store, f"friend of {name}") == of_friend
