"""What is looked up by its id, and that another user's is not there."""

from __future__ import annotations

from uuid import uuid4

import pytest

from memstore import AsyncMemoryStore, InvalidInput


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
    assert await alice.find_id(summary.id.hex[:8], of="summary") == summary.id
    await alice.retract_fact(fact)
    assert (await alice.fact(str(fact.id))).state == "retracted"

    assert await bob.messages(ids) == []
    assert await bob.conversation_names([lisbon.id]) == {}
    with pytest.raises(InvalidInput, match="This user has no fact"):
        await bob.fact(fact.id)
    with pytest.raises(InvalidInput, match="This user has no summary"):
        await bob.summary(summary.id)
    with pytest.raises(InvalidInput, match="This user has no summary"):
        await bob.find_id(summary.id.hex[:8], of="summary")
