"""What a context waits for: reads go together, nothing is read twice, and no connection is held while a model works."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import chain
from typing import Any

import pytest

from memstore.client.store import AsyncMemoryStore
from memstore.models import Message
from memstore.providers import Vectors
from memstore.store import messages
from memstore.store.database import Read, Transaction
from memstore.store.embedded.folder import attempts
from memstore.testing import HashingEmbedder
from tests.helpers.fakes import ScriptedChatModel, ScriptedReranker

LINES = [
    ("user", "I'm allergic to peanuts."),
    ("assistant", "Noted: no peanuts for you."),
    ("user", "My sister lives in Porto near the river."),
    ("assistant", "Porto is lovely in May."),
]


async def talked(store: AsyncMemoryStore) -> None:
    more = [[("user", "Go on, please."), ("assistant", f"{LINES[3][1]} That was {n}.")] for n in range(78)]
    lines = [*LINES, *chain.from_iterable(more)]
    said = [{"role": role, "content": text} for role, text in lines]
    await store.user("alice").conversation("c").add_many(said)
    assert (await store.derive()).failed == ()


def watched(monkeypatch: pytest.MonkeyPatch) -> tuple[list[tuple[str, str]], list[list[tuple[str, str]]]]:
    """Return what is read from now on: one by one, and in one round trip, each with its values."""
    alone: list[tuple[str, str]] = []
    together: list[list[tuple[str, str]]] = []
    real, real_together = Transaction.get, Transaction._read_together

    def named(read: Read[Any]) -> tuple[str, str]:
        return read.statement, repr(sorted(read.values.items()))

    async def sent(self: Transaction, read: Read[Any]) -> Any:
        alone.append(named(read))
        return await real(self, read)

    async def sent_together(self: Transaction, reads: Sequence[Read[Any]], *before: Any, **options: Any) -> Any:
        if reads:
            together.append([named(read) for read in reads])
        return await real_together(self, reads, *before, **options)

    monkeypatch.setattr(Transaction, "get", sent)
    monkeypatch.setattr(Transaction, "_read_together", sent_together)
    return alone, together


@pytest.mark.parametrize("strategies", [[], ["sliding_window"]])
async def test_a_context_reads_nothing_twice(
    store: AsyncMemoryStore, monkeypatch: pytest.MonkeyPatch, strategies: list[str]
) -> None:
    await talked(store)
    conversation = store.user("alice").conversation("c")
    await conversation.update(strategy=strategies)
    await conversation.context("Where does my sister live?", budget=500)
    alone, together = watched(monkeypatch)
    context = await conversation.context("Where does my sister live?", budget=500)
    assert "Porto" in str(context.messages)
    sent = alone + [read for reads in together for read in reads]
    assert [read for read, times in Counter(sent).items() if times > 1] == []
    # The history, the texts of what was found, the summaries, and the version when the receipt is kept.
    assert len(together) <= 4
    # On Citus what begins a transaction is apart.
    assert len(alone) <= 2 * len(strategies) + store._database.capabilities.citus


async def test_a_recall_makes_two_round_trips(store: AsyncMemoryStore, monkeypatch: pytest.MonkeyPatch) -> None:
    if store._database.capabilities.citus:
        pytest.skip("the beginning is a round trip of its own there")
    await talked(store)
    await store.user("alice").recall("Where does my sister live?")
    alone, together = watched(monkeypatch)
    hits = await store.user("alice").recall("Where does my sister live?")
    assert any("Porto" in hit.text for hit in hits)
    assert "version" in together[0][0][0]  # with the beginning; what the best ones say comes second
    assert len(alone) + len(together) == 2


async def test_of_a_long_conversation_no_more_is_read_than_could_fill_the_budget(
    store: AsyncMemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = " ".join(f"word{n}" for n in range(25))
    place = store.user("alice").conversation("c")
    await place.add_many([{"role": "user", "content": f"{n}: {long}"} for n in range(400)])
    read: list[int] = []
    real = messages.read_newest

    def counted(*args: Any, **options: Any) -> Read[list[Message]]:
        def result(rows: list[Any]) -> list[Message]:
            read.append(sum(one.tokens for one in rows))
            return rows

        return replace(real(*args, **options), result=result)

    monkeypatch.setattr(messages, "read_newest", counted)
    context = await place.context("What now?", budget=6000)
    assert context.tokens > 0.97 * 6000
    assert 6000 < sum(read) < 3 * 6000


async def test_each_read_has_its_own_result_in_whatever_order_they_are_sent(store: AsyncMemoryStore) -> None:
    await talked(store)
    place = store.user("alice").conversation("c")
    newest, oldest = messages.read_newest(place.id, limit=1), messages.read_newest(place.id, limit=1, before=2)
    name = messages.read_conversation(place.id)
    for reads in ([newest, name, oldest], [oldest, newest, name]):
        async with store._database.user_transaction(store.user("alice").id, reads) as tx:
            assert [message.seq for message in tx.result(newest)] == [160]
            assert [message.seq for message in tx.result(oldest)] == [1]
            kept = tx.result(name)
            assert kept is not None and kept.name == "c"
            with pytest.raises(KeyError):
                tx.result(messages.read_newest(place.id, limit=1))


class WatchedEmbedder(HashingEmbedder):
    """Says what it is about to embed."""

    def __init__(self, look: Callable[[str], None]) -> None:
        super().__init__(256)
        self.look = look

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        self.look("texts")
        return super().embed_documents(texts)

    def embed_query(self, text: str) -> Vectors:
        self.look("question")
        return super().embed_query(text)


async def test_no_connection_is_held_while_a_model_works(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memstore.derive.summaries.llm.MAX_VERBATIM_TOKENS", 0)  # short talks are summarized, too
    seen: set[str] = set()

    def is_free() -> bool:
        stats = store._database._pool.get_stats()
        return stats["pool_available"] == stats["pool_size"]

    def look(what: str) -> None:
        assert any(is_free() for _ in attempts(10)), what  # at last: the history is read while a question is embedded
        seen.add(what)

    def answer(what: str, given: object) -> ScriptedChatModel:
        return ScriptedChatModel([lambda _: look(what) or given] * 9)

    reranker = ScriptedReranker(lambda _, text: float(look("hits") is None))
    async with await AsyncMemoryStore.open(url, settings={"embedder": "hashing:256"}, reranker=reranker) as store:
        store._runtime.embedder = WatchedEmbedder(look)
        store._runtime.chat_models = answer("summary", {"summary": "Tea."}), answer("facts", {"facts": []})
        talk = store.user("alice").conversation("c")
        for day in range(3):
            await talk.add("user", "Tea for me.", occurred_at=datetime(2024, 3, 1 + day, tzinfo=UTC))
        report = await store.derive()
        assert (report.failed, report.waiting, report.invalid_responses) == ((), (), 0)
        assert seen == {"texts", "summary", "facts"}
        seen.clear()
        assert (await talk.summarize(1, 2)).text == "Tea."
        assert (await talk.context("Which tea?", budget=400)).messages
        assert seen == {"texts", "summary", "question", "hits"}
