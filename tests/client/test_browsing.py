"""Looking through a memory page by page and by id."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest

from memstore import AsyncMemoryStore, InvalidInput

BEGAN = datetime(2025, 3, 1, 9, tzinfo=UTC)
WORDS = [
    "I live in Porto.",
    "My cat is called Miso.",
    "I work as a baker.",
    "I love hiking.",
    "My sister is called Ana.",
]
LATER = [
    "I am allergic to peanuts.",
    "My dog is called Rex.",
    "I love sailing.",
    "My brother is called Rui.",
    "I play the piano.",
]


async def test_a_memory_is_looked_through_in_pages(store: AsyncMemoryStore) -> None:
    alice, bob = store.user("alice"), store.user("bob")
    said = []
    for number, (name, lines) in enumerate({"lisbon": WORDS, "porto": LATER}.items()):
        at = BEGAN + timedelta(days=300 * number)
        told = [{"role": "user", "content": words, "occurred_at": at} for words in lines]
        said += await alice.conversation(name).add_many(told)
    await bob.conversation("lisbon").add("user", WORDS[0])
    await store.derive()

    every = await alice.facts(state=None)
    pages, last = [], None
    while page := await alice.facts(state=None, before=last, limit=2):
        pages += [one.id for one in page]
        last = page[-1].occurred_at, page[-1].id
    assert pages == [one.id for one in every]
    assert len(pages) >= 4
    assert await alice.facts(type=every[0].type, subject=every[0].subject.upper(), limit=100)
    assert {one.id for one in await alice.facts_said_by([said[0].id])} == {
        one.id for one in every if said[0].id in one.sources
    }
    said_by = [one.id for one in every if one.sources]
    for number in range(1, len(said_by) + 1):
        latest = await alice.facts_said_by([one.id for one in said], limit=number)
        assert [one.id for one in latest] == said_by[:number]
    assert await bob.facts_said_by([said[0].id]) == []

    lisbon = alice.conversation("lisbon")
    summary = await lisbon.summarize(2, 4)
    assert summary.id in {one.id for one in await alice.summaries_over(lisbon.id, 4, 5)}
    assert summary.id not in {one.id for one in await alice.summaries_over(lisbon.id, 5, 5)}

    made = [await alice.conversation(name).context("Where?", budget=300) for name in ("lisbon", "porto", "lisbon")]
    ids = [one.receipt.id for one in made]
    first = await alice.receipt_page(limit=2)
    assert [one.id for one in first] == ids[:0:-1]
    assert [one.id for one in await alice.receipt_page(before=first[-1].id)] == ids[:1]
    assert [one.id for one in await alice.receipt_page(conversation_id=lisbon.id)] == [ids[2], ids[0]]
    assert await bob.receipt_page() == []


async def test_items_are_found_by_their_ids(store: AsyncMemoryStore) -> None:
    alice, bob = store.user("alice"), store.user("bob")
    lisbon, porto = alice.conversation("lisbon"), alice.conversation("porto")
    said = [await place.add("user", f"I'm in {place.name}.") for place in (porto, lisbon)]
    summary = await lisbon.summarize()
    fact = await alice.add_fact("The user likes tea.", type="preference", sources=[said[1].id])
    ids = [said[1].id, uuid4(), said[0].id]
    assert [one.text for one in await alice.messages(ids)] == ["I'm in porto.", "I'm in lisbon."]  # as they were said
    assert await alice.conversation_names([lisbon.id, uuid4()]) == {lisbon.id: "lisbon"}
    assert (await alice.summary(summary.id)).text == summary.text
    assert await alice.resolve_id(summary.id.hex[:8], kind="summary") == summary.id
    await alice.retract_fact(fact)
    assert (await alice.fact(str(fact.id))).state == "retracted"

    assert await bob.messages(ids) == []
    assert await bob.conversation_names([lisbon.id]) == {}
    with pytest.raises(InvalidInput, match="This user has no fact"):
        await bob.fact(fact.id)
    with pytest.raises(InvalidInput, match="This user has no summary"):
        await bob.summary(summary.id)
    with pytest.raises(InvalidInput, match="This user has no summary"):
        await bob.resolve_id(summary.id.hex[:8], kind="summary")
