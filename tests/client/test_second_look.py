"""Recall and contexts with a reranker: asked outside of transactions, told, and in nobody's way."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest

from memstore import ProviderError
from memstore.client.conversation import AsyncConversationScope
from memstore.client.store import AsyncMemoryStore
from tests.helpers.fakes import ScriptedReranker

START = datetime(2026, 3, 1, 18, 0, tzinfo=UTC)
HASHING = {"embedder": "hashing:256"}
LINES = [
    ("Alice", "The ferry to Ischia leaves at nine."),
    ("Bob", "The ferry to Capri leaves at ten."),
    ("Alice", "Ferry tickets are sold at the pier."),
    ("Bob", "My sister Clara lives in Porto."),
    ("Alice", "The museum is closed on Mondays."),
]


async def talk(store: AsyncMemoryStore) -> AsyncConversationScope:
    scope = store.user("alice").conversation("c")
    said = [
        {"role": "user", "content": text, "name": name, "occurred_at": START + timedelta(minutes=n)}
        for n, (name, text) in enumerate(LINES)
    ]
    await scope.add_many(said)
    assert (await store.derive()).failed == ()
    return scope


class Watched(ScriptedReranker):
    """A reranker that looks who holds a transaction while it works."""

    def __init__(self, url: str, score: Callable[[str, str], float]) -> None:
        super().__init__(score)
        self.url = url
        self.open: list[int] = []

    def scores(self, query: str, texts: Sequence[str]) -> Any:
        with psycopg.connect(self.url) as connection:
            [row] = connection.execute(
                "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
                " AND state LIKE 'idle in transaction%'"
            ).fetchall()
        self.open.append(row[0])
        return super().scores(query, texts)


def about(word: str) -> Callable[[str, str], float]:
    return lambda _, text: float(word in text)


async def opened(url: str, settings: dict[str, object] | None = None, **given: Any) -> AsyncMemoryStore:
    return await AsyncMemoryStore.open(url, settings=HASHING | (settings or {}), **given)


async def test_a_reranker_orders_recall_and_explains_itself(url: str) -> None:
    reranker = Watched(url, about("Capri"))
    async with await opened(url, reranker=reranker) as store:
        alice = (await talk(store)).user
        found = await alice.recall("When does the ferry to Ischia leave?", limit=2, tiers=["messages"])
        plain = found[0].parts
        assert found[0].text == LINES[1][1]
        assert plain["reranker"] > 0
        assert found[0].score == pytest.approx(sum(plain.values()), abs=1e-5)
        assert reranker.open == [0]
        [(query, texts)] = reranker.asked
        assert query == "When does the ferry to Ischia leave?"
        assert set(texts) == {f"{name}: {text}" for name, text in LINES}  # and not the two that are wanted alone


async def test_a_viewer_s_models_read_what_the_viewer_sees(url: str) -> None:
    reranker = ScriptedReranker(about("Porto"))
    async with await opened(url, reranker=reranker) as store:
        scope = await talk(store)
        await scope.add("assistant", "@Zoe the ferry key is under the mat.", name="Planner")
        await store.derive()
        await scope.user.recall("ferry", viewer="Researcher")
        await scope.context("ferry", budget=500, viewer="Researcher")
        assert reranker.asked
        assert not any("under the mat" in text for _, texts in reranker.asked for text in texts)
        await scope.user.recall("ferry")
        assert any("under the mat" in text for text in reranker.asked[-1][1])


async def test_a_context_is_packed_in_its_order_and_replayed_without_it(url: str) -> None:
    reranker = Watched(url, about("museum"))
    async with await opened(url, reranker=reranker) as store:
        user = (await talk(store)).user
        made = await user.conversation("new").context("Where is the ferry?", budget=84)
        assert LINES[4][1] in str(made.messages)
        assert reranker.open == [0]
        await user.conversation("new").add("user", "Where is the ferry?")
        kept = await user.conversation("new").context(budget=84)
        assert kept.receipt.models["reranker"] == "scripted"
        [hit] = [one for one in kept.receipt.included if one.preview == LINES[4][1]]
        assert hit.parts["reranker"] > 0
        assert "reranker" in kept.explain()
    async with await opened(url) as store:
        again = await store.user("alice").replay(kept.receipt.id)  # type: ignore[arg-type]
        assert again.exact
        without = await store.user("alice").conversation("new").context(budget=84)
        assert "reranker" not in without.receipt.models
        assert LINES[4][1] not in str(without.messages)


async def test_a_broken_reranker_is_told(url: str) -> None:
    async with await opened(url, reranker=ScriptedReranker(lambda *_: float("nan"))) as store:
        alice = (await talk(store)).user
        with pytest.raises(ProviderError, match="not finite"):
            await alice.recall("ferry")
