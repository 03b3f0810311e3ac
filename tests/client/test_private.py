"""Private conversations: they read memory, and leave nothing."""

import logging
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

import memstore
from memstore import InvalidInput
from memstore.settings import ONNX_MINILM

CANARY = "zanzibarquartz"
SETTINGS = {"embedder": ONNX_MINILM}


def everything(url: str) -> dict[str, list[str]]:
    """Return the rows of each table, of memstore and its queue, as text."""
    with psycopg.connect(url, autocommit=True) as connection:
        names = connection.execute(
            "SELECT table_schema, table_name FROM information_schema.tables WHERE table_type = 'BASE TABLE' "
            "AND table_schema NOT IN ('pg_catalog', 'information_schema')"
        ).fetchall()
        read = "SELECT t::text FROM {} t ORDER BY 1"
        return {
            ".".join(name): [row for (row,) in connection.execute(sql.SQL(read).format(sql.Identifier(*name)))]
            for name in names
        }


async def live(store: memstore.AsyncMemoryStore) -> str:
    """Have a private conversation about a word that is said nowhere else; return its last context."""
    talk = store.user("alice").conversation(f"about {CANARY}", title=CANARY, private=True)
    await talk.add("user", f"I found a {CANARY} stone. Does my allergy matter?", external_id=CANARY)
    await talk.add("assistant", f"A {CANARY} contains no nuts.", metadata={"note": CANARY})
    await talk.add("user", f"Where could I sell the {CANARY}?")
    context = await talk.context(budget=1000, system=f"Speak of {CANARY}.")
    assert context.receipt.id is None
    await store.user("alice").recall(CANARY)
    with pytest.raises(InvalidInput):
        await talk.add("nobody", CANARY)
    await store.derive()
    return "\n".join(str(message["content"]) for message in context.messages)


async def test_it_has_memory_and_its_own_turns_and_leaves_no_row(url: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    async with await memstore.open_async(url, settings=SETTINGS) as store:
        await store.user("alice").conversation("lunch").add("user", "I'm allergic to walnuts.")
        await store.derive()
        before = everything(url)
        sent = await live(store)
    assert "walnuts" in sent
    assert sent.count(CANARY) == 4
    assert everything(url) == before
    assert CANARY not in caplog.text


async def test_no_file_of_the_server_has_a_word_of_it(tmp_path: Path) -> None:
    async with await memstore.open_async(f"embedded:{tmp_path}/store", settings=SETTINGS) as store:
        await store.user("alice").conversation("lunch").add("user", "I found a rosewood box.")
        await live(store)
    files = [file for file in tmp_path.rglob("*") if file.is_file()]
    held = [file for file in files if b"rosewood" in file.read_bytes()]
    assert any("pg_wal" in file.parts for file in held)
    assert [file for file in files if CANARY.encode() in file.read_bytes()] == []


async def test_its_messages_are_those_of_a_conversation(url: str) -> None:
    async with await memstore.open_async(url, settings=SETTINGS) as store:
        alice = store.user("alice")
        talks = [alice.conversation("a", private=private) for private in (True, False)]
        answers = []
        for talk in talks:
            await talk.add("user", "One.", external_id="1", tags=["t"])
            await talk.add("user", "One.", external_id="1")
            await talk.add("assistant", "Two.", metadata={"k": 1})
            await talk.clear()
            await talk.add("user", "Three.")
            found = [
                await talk.messages(), await talk.messages(tags=["t"]), await talk.messages(metadata={"k": 1}),
                await talk.messages(roles=["user"], limit=1), await talk.recent(), await talk.recent(0),
            ]  # fmt: skip
            context = await talk.context(budget=500)
            answers.append(
                [[(one.seq, one.role, one.text, one.tokens) for one in messages] for messages in found]
                + [context.messages, context.messages_total, context.receipt.sections, (await talk.statistics()).tokens]
            )
            with pytest.raises(memstore.Conflict):
                await talk.add("user", "Other.", external_id="1")
        assert answers[0] == answers[1]
        assert await alice.conversation("a", private=True).messages() == []
        with pytest.raises(InvalidInput, match="is private"):
            await talks[0].update(title="t")
        with pytest.raises(InvalidInput, match="is private"):
            await talks[0].summarize()
        with pytest.raises(InvalidInput, match="is private"):
            await talks[0].erase()
        assert (await talks[0].info(), await talks[0].summaries(), await talks[0].receipts()) == (None, [], [])


async def test_what_is_kept_for_a_session_is_neither_derived_nor_recalled_and_goes(url: str) -> None:
    async with await memstore.open_async(url, settings=SETTINGS) as store:
        alice = store.user("alice")
        await alice.conversation("lunch").add("user", "I'm allergic to walnuts.")
        await store.derive()
        before = everything(url)
        talk = alice.conversation("doctor", keep="session")
        await talk.add("user", f"I take {CANARY} against a fever.")
        await alice.conversation("doctor").update(title="Doctor")
        await alice.conversation("doctor").add("user", "My manager is Ann.")
        report = await store.derive()
        assert (report.facts, (await store.stats(user="alice"))["pending"]) == (0, 0)
        assert not any(CANARY in hit.text or "Ann" in hit.text for hit in await alice.recall(f"{CANARY} Ann"))
        sent = str((await alice.conversation("doctor", keep="session").context("Which fever?", budget=1000)).messages)
        assert CANARY in sent and "walnuts" in sent and "Ann" in sent
        await talk.erase()
        left = {name: rows for name, rows in everything(url).items() if rows != before[name]}
        assert CANARY not in str(left) and not {name for name in left if name.endswith(("messages", "facts"))}
        with pytest.raises(InvalidInput, match="keep="):
            alice.conversation("x", keep="day")  # type: ignore[arg-type]


async def test_maintenance_erases_what_was_kept_for_a_session_a_day_later(url: str) -> None:
    async with await memstore.open_async(url, settings=SETTINGS) as store:
        talk = store.user("alice").conversation("doctor", keep="session")
        await talk.add("user", f"I take {CANARY}.", occurred_at=datetime.now(UTC) - timedelta(days=2))
        await talk.add("user", "Good night.")
        assert await store.apply_retention() == 1
        assert [message.text for message in await talk.messages()] == ["Good night."]
