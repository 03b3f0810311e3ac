"""Review: derived facts wait in the inbox, and what waits is in nothing."""

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

import memstore
from memstore import InvalidInput, NotFound
from memstore.settings import ONNX_MINILM

SETTINGS: dict[str, Any] = {"embedder": ONNX_MINILM, "review_facts": True}
SAID = ["I'm allergic to walnuts.", "I work as a baker.", "My sister is called Noor.", "My manager is Ann."]


async def told(store: memstore.AsyncMemoryStore, question: str) -> set[str]:
    """Return the facts that anything tells of the user."""
    alice = store.user("alice")
    context = await alice.conversation("new").context(question, budget=2000)
    included = [decision.id for decision in context.receipt.included if decision.kind == "fact"]
    facts = [*await alice.facts(), *await alice.facts(ids=[id for id in included if id], state=None)]
    hits = await alice.recall(question, limit=50, tiers=["facts"])
    profile = await alice.profile(400)
    return {one.text for one in [*facts, *hits]} | {fact.text for fact in facts if fact.text in profile.text}


async def test_what_is_derived_waits_with_its_words_until_it_is_accepted(url: str) -> None:
    async with await memstore.open_async(url, settings=SETTINGS) as store:
        alice = store.user("alice")
        await alice.conversation("a").add_many([{"role": "user", "content": text} for text in SAID])
        report = await store.derive()
        items = {item.fact.text: item for item in await alice.inbox()}
        assert (report.facts, report.quarantined) == (0, len(items)) and len(items) >= 4
        allergy = items["The user is allergic to walnuts."]
        assert allergy.quotes == ("I'm allergic to walnuts",)
        assert await told(store, "What may I eat?") == set()
        job = next(item.fact for text, item in items.items() if "baker" in text)
        accepted, refused = await alice.review(accept=[allergy.fact], refuse=[job.id])
        assert ([one.state for one in accepted], [one.state for one in refused]) == (["active"], ["retracted"])
        assert await told(store, "What may I eat?") == {allergy.fact.text}
        # Said again, the accepted one is reinforced, and the refused one does not come back.
        await alice.conversation("b").add_many([{"role": "user", "content": text} for text in SAID[:2]])
        await store.derive()
        assert len((await alice.fact(allergy.fact)).sources) == 2
        assert {item.fact.id for item in await alice.inbox()} == {
            one.fact.id for one in items.values()
        } - {allergy.fact.id, job.id}  # fmt: skip
        with pytest.raises(NotFound, match="Nothing was accepted"):
            await alice.review(accept=[allergy.fact, alice.id])


async def test_a_new_value_ends_the_old_one_when_it_is_accepted(url: str) -> None:
    async with await memstore.open_async(url, settings=SETTINGS) as store:
        alice = store.user("alice")
        await alice.update(settings={"review_facts": False})
        await alice.conversation("a").add("user", "I live in Leeds.")
        await store.derive()
        assert [fact.value for fact in await alice.facts()] == ["leeds"]
        await alice.update(settings={"review_facts": None})
        await alice.conversation("a").add("user", "I live in Ghent now.")
        await store.derive()
        assert [fact.value for fact in await alice.facts()] == ["leeds"]
        [item] = await alice.inbox()
        await alice.review(accept=[item.fact])
        assert [fact.value for fact in await alice.facts()] == ["ghent"]
        assert [fact.value for fact in await alice.facts(state="superseded")] == ["leeds"]
        with pytest.raises(InvalidInput, match="review_facts"):
            await alice.update(settings={"review_facts": "yes"})


async def test_one_derivation_may_be_reviewed(url: str) -> None:
    async with await memstore.open_async(url, settings=SETTINGS | {"review_facts": False}) as store:
        alice = store.user("alice")
        await alice.conversation("a").add("user", SAID[0])
        await store.derive(review=True)
        assert (len(await alice.inbox()), await alice.facts()) == (1, [])
        await alice.conversation("a").add("user", SAID[3])
        await store.derive()
        assert (len(await alice.inbox()), len(await alice.facts())) == (1, 1)


@settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(decisions=st.lists(st.sampled_from(["accept", "refuse", "wait"]), min_size=12, max_size=12))
async def test_nothing_that_waits_or_was_refused_is_told(url: str, decisions: list[str]) -> None:
    async with await memstore.open_async(url, settings=SETTINGS) as store:
        alice = store.user("alice")
        await alice.erase()
        accepted: set[str] = set()
        for number, text in enumerate([*SAID, "My manager is Bob now.", "I moved to Ghent."]):
            await alice.conversation(f"talk {number % 2}").add("user", f"{text} ")
            await store.derive()
            for item, decision in zip(await alice.inbox(), decisions[number:], strict=False):
                if decision != "wait":
                    await alice.review(**{decision: [item.fact]})
                if decision == "accept":
                    accepted.add(item.fact.text)
            assert await told(store, "Who is my manager, and what am I allergic to?") <= accepted
