"""Chunks kept in the process: never older than the database, and found as its own statements find them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import psycopg
import pytest

from memstore.client.store import AsyncMemoryStore

START = datetime(2024, 3, 1, 18, 0, tzinfo=UTC)
LONG = " ".join(f"On day {n} the train to Porto was late, and nobody at the station knew why." for n in range(60))
LINES = [
    ("user", "Alice", "I'm allergic to peanuts."),
    ("assistant", None, "Noted: no peanuts for you."),
    ("user", "Bob", "My sister lives in Porto near the river."),
    ("user", "Alice", LONG),
    ("tool", None, ""),
    ("user", "Alice", "We painted the garden fence blue."),
    ("system", None, "Talk about Porto like a guide."),
]
QUESTIONS = [
    "Porto",
    "What did Bob say about his sister?",
    "Which colour has the fence?",
    "xyzzy",
    "late train on day 7",
]


async def talked(store: AsyncMemoryStore, name: str = "c", times: int = 12) -> None:
    scope = store.user("alice").conversation(name)
    for n in range(times):
        for k, (role, speaker, text) in enumerate(LINES):
            if role != "tool":
                said = f"{text} ({n}.)" if n % 3 else text
                await scope.add(role, said, name=speaker, occurred_at=START + timedelta(hours=6 * n + k // 2))
    await store.derive()


async def test_what_others_add_and_remove_is_seen_at_once(
    store: AsyncMemoryStore, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for world in ("memstore", "memstore._sync"):
        monkeypatch.setattr(f"{world}.store.chunks.OVERLAP", timedelta())
    await talked(store)
    alice = store.user("alice")
    await alice.recall("parrot")
    async with await AsyncMemoryStore.open(url, settings={"embedder": "hashing:256"}) as other:
        for n in range(4):
            await other.user("alice").conversation("c").add("user", f"Parrot number {n} flew to Porto.")
            await other.derive()
            hits = await alice.recall("parrot Porto", limit=60)
            assert sum("Parrot" in hit.text for hit in hits if hit.tier == "messages") == n + 1
            async with await AsyncMemoryStore.open(url, settings={"embedder": "hashing:256"}) as cold:
                assert await cold.user("alice").recall("parrot Porto", limit=60) == hits
    with psycopg.connect(url, autocommit=True) as connection, connection.transaction():
        gone = next(hit.id for hit in hits if "number 0" in hit.text)
        connection.execute("delete from item_text where item_id = %s", [gone])
        connection.execute("update users set chunks = chunks - 1")
    left = await alice.recall("parrot Porto", limit=60)
    assert gone not in {hit.id for hit in left}
    assert len(left) >= len(hits) - 1


async def test_what_was_made_anew_is_not_taken_for_what_was_there(store: AsyncMemoryStore, url: str) -> None:
    await talked(store)
    alice, between = store.user("alice"), datetime.now(UTC)
    assert "facts" in {hit.tier for hit in await alice.recall("peanuts", as_of=between)}
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("update derivations set recipe = 'older'")
    await store.derive(redo="facts")
    async with await AsyncMemoryStore.open(url, settings={"embedder": "hashing:256"}) as cold:
        for moment in (between, None):
            warm = await alice.recall("peanuts Porto", limit=60, as_of=moment)
            assert warm == await cold.user("alice").recall("peanuts Porto", limit=60, as_of=moment)


async def test_a_users_arrays_are_for_that_user(store: AsyncMemoryStore) -> None:
    await talked(store, times=1)
    assert await store.user("alice").recall("Porto")
    assert await store.user("bob").recall("Porto") == []
    await store.user("bob").conversation("c").add("user", "Nothing much.")
    await store.derive()
    assert {hit.text for hit in await store.user("bob").recall("Porto")} == {"Nothing much."}
