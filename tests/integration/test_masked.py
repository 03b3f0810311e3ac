"""Secrets are masked before they are stored, or before anything is derived from them, and it is told."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psycopg

from memstore.memory.store import AsyncMemoryStore

CARD, PIN = "4111 1111 " + "1111 1111", "49" + "21"
SAID = f"My favourite card is {CARD}. I live in Leeds, the PIN is {PIN}. " + "We had fish and went home late. " * 20
START = datetime(2024, 3, 1, 18, 0, tzinfo=UTC)
DERIVED = ("item_text", "item_vectors", "summaries", "facts", "fact_changes", "receipts")


def everything(url: str, *tables: str) -> str:
    """Give what stands in these tables, or in all of them but those of the server."""
    with psycopg.connect(url) as connection:
        named = "SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace"
        names = tables or [name for (name,) in connection.execute(named)]
        rows = [connection.execute(f'SELECT t::text FROM "{name}" t').fetchall() for name in names]
    return str(rows)


async def test_what_is_masked_before_storing_is_nowhere(url: str, tmp_path: Path) -> None:
    settings: dict[str, Any] = {"embedder": "hashing:256", "mask_secrets": "before_storing"}
    async with await AsyncMemoryStore.open(url, settings=settings) as store:
        alice = store.user("alice")
        trip = alice.conversation("c")
        said = await trip.add("user", SAID, name="Alice", occurred_at=START, external_id="1")
        assert said.text == SAID.replace(CARD, "[masked card]").replace(PIN, "[masked password]")
        assert (said.meta, said.tokens) == ({"masked": {"card": 1, "password": 1}}, store.counter.count(str(said.text)))
        again = await trip.add("user", SAID, name="Alice", occurred_at=START, external_id="1")
        assert again.seq == said.seq, "told again it is the same message"
        line = {"user": "alice", "conversation": "i", "role": "user", "content": SAID, "external_id": "2"}
        (tmp_path / "history.jsonl").write_text(json.dumps(line))
        done = [await store.import_file(tmp_path / "history.jsonl") for _ in range(2)]
        assert [(one.new, one.known, one.passed_by, one.masked) for one in done] == [(1, 0, 0, 1), (0, 1, 0, 1)]
        fact = await alice.add_fact(f"Alice pays with {CARD}.", type="preference", subject="Alice")
        edited = await alice.edit_fact(fact, text=f"Alice never pays with {CARD}.")
        assert (fact.text, edited.text) == ("Alice pays with [masked card].", "Alice never pays with [masked card].")
        await store.derive()
        await trip.context("Which card?", budget=900)
    stored = everything(url)
    assert "Leeds" in stored
    assert CARD not in stored and CARD.replace(" ", "") not in stored and f" {PIN}" not in stored


async def test_what_is_masked_before_deriving_stays_in_its_message_alone(url: str) -> None:
    async with await AsyncMemoryStore.open(url, settings={"embedder": "hashing:256"}) as store:
        trip = store.user("alice").conversation("c")
        said = await trip.add("user", SAID, name="Alice", occurred_at=START)
        await trip.add("user", "Hello again.", occurred_at=START.replace(day=3))
        await store.derive()
    before = everything(url, "summaries", "facts")
    assert CARD in before, "else there is nothing to mask"
    settings: dict[str, Any] = {"embedder": "hashing:256", "mask_secrets": "before_deriving"}
    async with await AsyncMemoryStore.open(url, settings=settings) as store:
        alice, trip = store.user("alice"), store.user("alice").conversation("c")
        assert (await store.derive(redo="facts")).redone == 1
        assert (await store.derive(redo="summaries")).redone == 1
        new = await trip.add("user", f"Another card: {CARD}.", occurred_at=START.replace(day=9))
        assert ((await store.derive()).masked, new.text) == (1, f"Another card: {CARD}.")
        assert CARD not in everything(url, *DERIVED)
        assert {fact.value for fact in await alice.facts()} >= {"leeds"}
        summary = await trip.summarize()
        assert CARD not in summary.text
        assert (await alice.recall("Leeds", tiers=["messages"], limit=1))[0].text in str(said.text)
