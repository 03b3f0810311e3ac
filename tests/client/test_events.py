"""Events: kept in the outbox with what happened, for readers who miss none."""

from __future__ import annotations

import psycopg
import pytest

from memstore.client.store import AsyncMemoryStore
from memstore.errors import Conflict, InvalidInput


async def test_each_call_that_stores_messages_is_kept_and_what_was_rolled_back_or_known_is_not(
    store: AsyncMemoryStore,
) -> None:
    alice = store.user("alice")
    place = alice.conversation("c")
    await place.add("user", "one two three", external_id="1")
    stored = await place.add_many([{"role": "user", "content": text} for text in ("four", "five six")])
    await place.add("user", "one two three", external_id="1")
    with pytest.raises(Conflict):
        await place.add_many([{"role": "user", "content": "new"}, {"role": "user", "content": "x", "external_id": "1"}])
    kept = await alice.events()
    assert [event.body for event in kept] == [
        {"from_seq": 1, "to_seq": 1, "tokens": 3},
        {"from_seq": 2, "to_seq": 3, "tokens": sum(message.tokens for message in stored)},
    ]
    assert {(event.type, event.conversation_id, event.user_id) for event in kept} == {
        ("message_added", place.id, alice.id)
    }
    assert await store.user("bob").events() == []


async def test_a_reader_goes_on_where_it_was_and_asks_for_types(store: AsyncMemoryStore) -> None:
    alice = store.user("alice")
    for text in ("a", "b", "c", "d"):
        await alice.conversation("c").add("user", text)
    first = await alice.events(limit=3)
    rest = await alice.events(after=first[-1].cursor)
    assert [event.body["to_seq"] for event in first + rest] == [1, 2, 3, 4]
    assert await alice.events(after=rest[-1].cursor) == []
    assert await alice.events(types=["context_assembled"]) == []
    nobody = "00000000-0000-0000-0000-000000000000"
    for wrong in ("nonsense", "1/x", f"x/{nobody}", f"{2**63}/{nobody}", f"-1/{nobody}", 5):
        with pytest.raises(InvalidInput, match="cursor"):
            await alice.events(after=wrong)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="types"):
        await alice.events(types=["message_eaten"])


async def test_a_reader_misses_no_transaction_that_commits_late(store: AsyncMemoryStore) -> None:
    """One that began before others and ends after them is seen when it has ended, and those others not before it."""
    alice = store.user("alice")
    await alice.conversation("c").add("user", "first")
    cursor = (await alice.events())[-1].cursor
    with psycopg.connect(store.url) as late:
        late.execute(
            "insert into events (user_id, id, type) values (%s, gen_random_uuid(), 'message_added')", [alice.id]
        )
        await alice.conversation("c").add("user", "second")
        assert await alice.events(after=cursor) == []
    assert len(await alice.events(after=cursor)) == 2


async def test_without_retention_no_events_are_kept(url: str) -> None:
    settings = {"embedder": "hashing:256", "event_retention_days": 0}
    async with await AsyncMemoryStore.open(url, settings=settings) as store:
        await store.user("alice").conversation("c").add("user", "one")
        assert await store.user("alice").events() == []
