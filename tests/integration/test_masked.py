"""Secrets are masked before they are stored, wherever they come in, and it is told."""

import json
import zlib
from pathlib import Path
from typing import Any

import psycopg
import pytest

from memstore.client.store import AsyncMemoryStore
from memstore.errors import InvalidInput
from memstore.models import Section

CARD, PIN = "4111 1111 " + "1111 1111", "49" + "21"
SAID = f"My favourite card is {CARD}. I live in Leeds, the PIN is {PIN}. " + "We had fish and went home late. " * 20


def everything(url: str, *tables: str) -> str:
    """Give what stands in these tables, or in all of them but those of the server."""
    with psycopg.connect(url) as connection:
        named = "SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace"
        names = tables or [name for (name,) in connection.execute(named)]
        rows = [connection.execute(f'SELECT t::text FROM "{name}" t').fetchall() for name in names]
        sent = connection.execute("SELECT sent FROM receipts").fetchall()
    return str(rows) + str([zlib.decompress(packed).decode() for (packed,) in sent])


MASKING: dict[str, Any] = {"embedder": "hashing:256", "mask_secrets": True}


async def put_everywhere(store: AsyncMemoryStore, folder: Path) -> None:
    """Give the store a card wherever it takes a text that is no name."""
    alice = store.user("alice")
    trip = alice.conversation("c", title=f"Paying with {CARD}", channel=CARD)
    parts = [{"type": "text", "text": SAID}, {"type": "image_url", "image_url": {"url": f"https://x.example/{CARD}"}}]
    await trip.add("user", parts, name=f"A {CARD}", tags=[CARD], metadata={"note": {CARD: [CARD]}, "id": CARD})
    call = {"id": CARD, "type": "function", "function": {"name": f"f {CARD}", "arguments": json.dumps({"n": CARD})}}
    await trip.add("assistant", f"Yes: {CARD}", tool_calls=[call])
    await trip.add("tool", f"Paid by {CARD}", tool_call_id=CARD)
    own = {"name": "calendar", "text": [f"Call the bank about {CARD}"]}
    await trip.update(title=CARD, channel=CARD, settings={"own": {CARD: CARD}}, sections=[own])
    await trip.update(title=f"{CARD}, again", settings={"own": None})
    fact = await alice.add_fact(
        f"The PIN is {PIN}, the card is {CARD}.", type="preference", subject=CARD, attribute=f"card {CARD}", value=PIN
    )
    changed = await alice.edit_fact(fact, text=f"Alice pays by {CARD}", value=CARD, attribute=CARD, language=CARD)
    await alice.add_fact("It is so.", type="preference", attribute="password", value="sunshine")
    await alice.retract_fact(changed)
    notes = alice.documents()
    await notes.put(("notes",), "a", {CARD: CARD, "n": int(CARD.replace(" ", ""))}, texts={CARD: f"It is {CARD}."})
    await notes.put(("notes",), "b", {"card": CARD})
    talk = {"uuid": "c1", "name": CARD, "chat_messages": [{"uuid": "m1", "sender": "human", "text": SAID}]}
    (folder / "conversations.json").write_text(json.dumps([talk]))
    assert (await store.import_file(folder / "conversations.json", user="bob")).masked == 1
    await store.tokens.create(user="alice", name=CARD)
    await store.derive()
    await trip.summarize()
    settings = {"sections": [Section("own", text=(f"a {CARD}", f"b {CARD}"), minimum=0.1)], "viewer": CARD}
    asked = await trip.context(f"Is {CARD} mine?", budget=2000, system=f"The card is {CARD}.", **settings)
    assert asked.receipt.arguments["masked"] == {"card": 5} and any("5 card" in one for one in asked.receipt.hints)
    assert (await alice.replay(asked)).messages == asked.messages
    assert "[masked card]" in str(asked.messages) and CARD not in str(asked.messages)
    with pytest.raises(InvalidInput):  # a receipt has the names of tools
        await trip.context("What?", budget=900, tools=[{"type": "function", "function": {"name": CARD}}])


async def refused_as_names(store: AsyncMemoryStore) -> None:
    """Give the store a card in the place of every name that an id follows from."""
    alice = store.user("alice")
    hello = {"role": "user", "content": "Hello"}
    for call in (
        lambda: store.user(CARD).conversation("c").add("user", "Hello"),
        lambda: store.user(CARD).update(settings={"message_retention_days": 9}),
        lambda: store.user(CARD).add_fact("It rains.", type="preference"),
        lambda: store.user(CARD).documents().put(("a",), "b", {}),
        lambda: store.tokens.create(user=CARD),
        lambda: alice.conversation(CARD).add("user", "Hello"),
        lambda: alice.conversation(CARD).update(title="Hello"),
        lambda: alice.conversation("c").add_many([hello, hello | {"external_id": CARD}]),
        lambda: alice.documents().put(("a", CARD), "b", {}),
        lambda: alice.documents().put(("a",), CARD, {}),
    ):
        with pytest.raises(InvalidInput, match="names are not masked") as refused:
            await call()
        assert CARD not in str(refused.value)


async def test_a_secret_is_nowhere_wherever_it_was_put(url: str, twin: str, tmp_path: Path) -> None:
    async with await AsyncMemoryStore.open(url, settings=MASKING) as store:
        await put_everywhere(store, tmp_path)
        await refused_as_names(store)
    stored = everything(url)
    assert stored.count("[masked card]") > 60
    for written in (CARD, CARD.replace(" ", ""), CARD.replace(" ", "-"), f" {PIN}", f'"{PIN}"', "sunshine"):
        assert written not in stored
    async with await AsyncMemoryStore.open(twin, settings={"embedder": "hashing:256"}) as store:
        await (
            store.user("carol")
            .conversation("c", title=CARD)
            .add_many([{"role": "user", "content": one} for one in (SAID, "I live in York.")])
        )
        await store.user("carol").documents().put(("a",), "b", {"card": CARD})
        await store.user("carol").add_fact(f"Carol pays by {CARD}.", type="preference")
        await store.derive()
        await store.export(tmp_path / "plain.jsonl")
        await store.export(tmp_path / "messages.jsonl", derived=False)
    async with await AsyncMemoryStore.open(url, settings=MASKING) as store:
        done = await store.import_file(tmp_path / "plain.jsonl")
        assert any("--no-derived" in one.reason for one in done.problems)
        assert CARD not in str(done)
        assert "York" in everything(url, "messages") and CARD not in everything(url)
        done = await store.import_file(tmp_path / "messages.jsonl")
        assert (done.new, len(done.problems)) == (1, 1), "the fact's id is of its words"
        await store.derive()
        assert (await store.user("carol").documents().get(("a",), "b")).value == {"card": "[masked card]"}
        said = await store.user("carol").conversation("c").messages()
        assert said[0].text == SAID.replace(CARD, "[masked card]").replace(PIN, "[masked password]")
        assert said[0].tokens == store.counter.count(said[0].text)
    assert CARD not in everything(url)


async def test_a_document_comes_in_with_the_vectors_of_those_of_its_texts_that_hold_no_secret(
    url: str, twin: str, tmp_path: Path
) -> None:
    async with await AsyncMemoryStore.open(twin, settings={"embedder": "hashing:256"}) as store:
        notes = store.user("carol").documents()
        await notes.put(("a",), "some", {"n": 1}, texts={"bank": f"My card is {CARD}.", "trip": "The ferry at nine."})
        await notes.put(("a",), "masked", {"card": CARD}, texts={"trip": "The train at ten."})
        await notes.put(("a",), "whole", {"card": CARD, "trip": "The bus at one."})
        await store.export(tmp_path / "plain.jsonl")
    async with await AsyncMemoryStore.open(url, settings=MASKING) as store:
        done, notes = await store.import_file(tmp_path / "plain.jsonl"), store.user("carol").documents()
        assert (done.restored, done.problems) == ({"users": 1, "documents": 3}, [])
        found = await notes.search(query="When does the ferry leave?")
        assert [one.key for one in found if one.score is not None] == ["some", "masked"]
        assert (await notes.get(("a",), "whole")).value == {"card": "[masked card]", "trip": "The bus at one."}
    assert CARD not in everything(url)
