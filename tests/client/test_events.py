"""Events: told after the fact, kept in the outbox, and nobody waits for a subscriber."""

from __future__ import annotations

import logging
import threading
from collections.abc import AsyncIterator

import psycopg
import pytest

from memstore.client.store import AsyncMemoryStore
from memstore.errors import Conflict, InvalidInput
from memstore.events import Event, EventType


@pytest.fixture
async def quiet(url: str) -> AsyncIterator[AsyncMemoryStore]:
    settings = {"embedder": "hashing:256", "event_retention_days": 0}
    async with await AsyncMemoryStore.open(url, settings=settings) as store:
        yield store


async def test_each_call_that_stores_messages_is_told_and_kept(store: AsyncMemoryStore) -> None:
    told: list[Event] = []
    alice = store.user("alice")
    place = alice.conversation("c")
    with store.subscribe(told.append):
        await place.add("user", "one two three")
        stored = await place.add_many([{"role": "user", "content": text} for text in ("four", "five six")])
    assert [event.body for event in told] == [
        {"from_seq": 1, "to_seq": 1, "tokens": 3},
        {"from_seq": 2, "to_seq": 3, "tokens": sum(message.tokens for message in stored)},
    ]
    assert {(event.type, event.conversation_id, event.user_id) for event in told} == {
        ("message_added", place.id, alice.id)
    }
    kept = await alice.events()
    assert [(event.id, event.body, event.recorded_at) for event in kept] == [
        (event.id, event.body, event.recorded_at) for event in told
    ]
    assert await store.user("bob").events() == []


async def test_what_was_rolled_back_or_known_is_not_told(store: AsyncMemoryStore) -> None:
    told: list[Event] = []
    place = store.user("alice").conversation("c")
    await place.add("user", "said", external_id="1")
    with store.subscribe(told.append):
        await place.add("user", "said", external_id="1")
        with pytest.raises(Conflict):
            await place.add_many(
                [{"role": "user", "content": "new"}, {"role": "user", "content": "x", "external_id": "1"}]
            )
    assert told == []
    assert len(await store.user("alice").events()) == 1


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
    with pytest.raises(InvalidInput, match="types"):
        store.subscribe(print, types=["message_eaten"])
    with pytest.raises(InvalidInput, match="types"):
        store.subscribe(print, types="message_added")
    with pytest.raises(InvalidInput, match="function"):
        store.subscribe("print")  # type: ignore[arg-type]


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


async def test_slow_and_failing_subscribers_hold_up_nobody(
    store: AsyncMemoryStore, caplog: pytest.LogCaptureFixture
) -> None:
    told: list[Event] = []
    release = threading.Event()
    place = store.user("alice").conversation("c")

    def failing(event: Event) -> None:
        raise (SystemExit if len(told) % 2 else RuntimeError)("not today")

    with caplog.at_level(logging.CRITICAL, logger="memstore"):
        stuck = store.subscribe(lambda _: release.wait())
        broken = store.subscribe(failing)
        with store.subscribe(told.append):
            for _ in range(5):
                await place.add("user", "on it goes")
        broken.close()
    assert (len(told), broken.failed) == (5, 5)
    release.set()
    stuck.close()


async def test_a_queue_that_is_full_leaves_the_rest_to_the_outbox(
    store: AsyncMemoryStore, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("memstore.events.QUEUE_SIZE", 2)
    release, started = threading.Event(), threading.Event()
    alice = store.user("alice")

    def slow(event: Event) -> None:
        started.set()
        release.wait()

    subscription = store.subscribe(slow)
    await alice.conversation("c").add("user", "1")
    started.wait()
    for _ in range(4):
        await alice.conversation("c").add("user", "more")
    release.set()
    subscription.close()
    assert subscription.dropped == 2
    assert len(await alice.events()) == 5
    assert "too slow" in caplog.text


async def test_without_an_outbox_events_are_only_told(quiet: AsyncMemoryStore) -> None:
    told: list[Event] = []
    with quiet.subscribe(told.append, types=[EventType.MESSAGE_ADDED]):
        await quiet.user("alice").conversation("c").add("user", "one")
    assert len(told) == 1
    assert await quiet.user("alice").events() == []
