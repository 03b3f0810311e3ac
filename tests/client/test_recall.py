"""Recall and context over a real database: filters, the question, what was known when."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import product
from typing import Any

import pytest

from memstore import BudgetTooSmall, InvalidInput
from memstore.client.conversation import AsyncConversationScope
from memstore.client.store import AsyncMemoryStore
from memstore.store import chunks, messages, watermarks
from tests.helpers.fakes import ScriptedReranker

START = datetime(2024, 3, 1, 18, 0, tzinfo=UTC)
CALL = {"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Porto"}'}}
LINES = [
    ("user", "Alice", "I'm allergic to peanuts."),
    ("assistant", None, "Noted: no peanuts for you."),
    ("user", "Bob", "My sister lives in Porto near the river."),
    ("user", "Alice", "We painted the garden fence blue."),
    ("assistant", None, "Blue is a fine colour for a fence."),
    ("user", "Alice", "The train to Porto leaves at nine."),
]
BUDGETS = (300, 400, 700, 1000, 2000, 5000)


async def filled(store: AsyncMemoryStore, name: str = "c", repeat: int = 1) -> AsyncConversationScope:
    """Give a conversation with the lines said, an hour apart, and derived."""
    scope = store.user("alice").conversation(name)
    for n in range(repeat):
        for k, (role, speaker, text) in enumerate(LINES):
            await scope.add(
                role,
                text if n == 0 else f"{text} Again, for the {n}th time.",
                name=speaker,
                tags=[f"line{k}", name],
                occurred_at=START + timedelta(hours=6 * n + k),
            )
    await store.derive()
    return scope


async def test_recall_filters_what_it_may_see(store: AsyncMemoryStore) -> None:
    scope = await filled(store)
    await filled(store, "other")
    alice = scope.user

    async def found(**filters: object) -> set[str]:
        return {hit.text for hit in await alice.recall("Porto", limit=50, **filters)}  # type: ignore[arg-type]

    everything = await found()
    assert {text for _, _, text in LINES} <= everything
    assert {hit.tier for hit in await alice.recall("Porto", limit=50)} == {"messages", "summaries", "facts"}
    assert await found(tiers=["messages"], roles=["assistant"]) == {LINES[1][2], LINES[4][2]}
    assert await found(tiers=["messages"], tags=["line2"]) == {LINES[2][2]}
    assert await found(tags=["line2", "line3"]) == set()
    window = {"since": START + timedelta(hours=1), "until": START + timedelta(hours=3)}
    assert await found(tiers=["messages"], **window) == {LINES[1][2], LINES[2][2]}
    assert len(await alice.recall("Porto", limit=50, tiers=["messages"], conversation="other")) == 6
    assert await found(conversation="nowhere") == set()
    assert await found(as_of=START) == set()
    first = {"since": START, "until": START + timedelta(hours=1)}
    assert all("peanuts" in text for text in await found(tiers=["facts"], **first))


async def test_recall_ranks_what_matches_first_and_explains_it(store: AsyncMemoryStore) -> None:
    scope = await filled(store)
    hits = await scope.user.recall("Which colour has the garden fence?", tiers=["messages"])
    assert hits[0].text == LINES[3][2]
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    assert hits[0].parts["lexical"] > 0
    assert (await scope.user.recall("What did Bob say?", tiers=["messages"]))[0].text == LINES[2][2]
    assert len(await scope.user.recall("Porto", limit=2)) == 2
    assert await scope.user.recall("Porto", min_score=99) == []


async def test_the_newest_user_message_is_the_question(store: AsyncMemoryStore) -> None:
    scope = await filled(store)
    context = await scope.context(budget=400, system="Be brief.")
    assert context.messages[0] == {"role": "system", "content": "Be brief."}
    assert context.messages[-1] == {"role": "user", "name": "Alice", "content": LINES[5][2]}
    assert sum(LINES[5][2] in str(message["content"]) for message in context.messages) <= 2  # a fact may say it too
    assert context.messages == (await scope.context(LINES[5][2], budget=400, system="Be brief.")).messages
    assert context.tokens == store.counter.count_messages(context.messages) <= 400


async def test_a_query_is_the_last_message_and_is_not_stored(store: AsyncMemoryStore) -> None:
    scope = await filled(store)
    context = await scope.context("What must I not eat?", budget=400)
    assert context.messages[-1] == {"role": "user", "content": "What must I not eat?"}
    assert "allergic to peanuts" in str(context.messages)
    assert len(await scope.messages()) == 6
    assert (await store.stats())["receipts"] == 1


async def test_a_question_that_was_answered_is_asked_again(store: AsyncMemoryStore) -> None:
    scope = store.user("alice").conversation("c")
    await scope.add("user", "Go on.")
    asked = {"role": "user", "content": "Go on."}
    assert (await scope.context("Go on.", budget=500)).messages == [asked]
    await scope.add("assistant", tool_calls=[CALL])
    await scope.add("tool", "a chapter", tool_call_id="call_1")
    waiting = (await scope.context("Go on.", budget=500)).messages
    assert [message["role"] for message in waiting] == ["user", "assistant", "tool"]
    await scope.add("assistant", "The second chapter.")
    context = await scope.context("Go on.", budget=500)
    assert context.messages == [*waiting, {"role": "assistant", "content": "The second chapter."}, asked]
    assert (await scope.user.replay(context)).messages == context.messages


async def test_results_of_tools_follow_the_question_that_waits_for_them(store: AsyncMemoryStore) -> None:
    scope = await filled(store)
    await scope.add("user", "How is the weather in Porto?")
    await scope.add("assistant", tool_calls=[CALL])
    open_call = await scope.context(budget=300)
    assert open_call.messages[-1]["content"] == "How is the weather in Porto?"
    assert "unpaired tool call" in open_call.explain()
    await scope.add("tool", "sunny", tool_call_id="call_1")
    for budget in (60, 120, 500):
        roles = [message["role"] for message in (await scope.context(budget=budget)).messages]
        assert roles[-3:] == ["user", "assistant", "tool"]


async def test_many_results_of_tools_are_not_cut_off_from_their_calls(store: AsyncMemoryStore) -> None:
    scope = store.user("alice").conversation("c")
    calls = [CALL | {"id": f"call_{n}"} for n in range(40)]
    await scope.add("user", "How is the weather everywhere?")
    await scope.add("assistant", tool_calls=calls)
    await scope.add_many([{"role": "tool", "content": "sunny", "tool_call_id": call["id"]} for call in calls])
    with pytest.raises(BudgetTooSmall) as caught:
        await scope.context(budget=60)
    needed = caught.value.needed
    assert len((await scope.context(budget=needed)).messages) == 42
    with pytest.raises(BudgetTooSmall):
        await scope.context(budget=needed - 1)
    with pytest.raises(BudgetTooSmall) as caught:
        await scope.context(budget=60, reserve=50)
    assert caught.value.needed == needed + 50


async def test_a_page_pasted_as_a_question_is_answered_in_time(store: AsyncMemoryStore) -> None:
    scope = await filled(store, repeat=5)
    await scope.add("user", " ".join(f"word{n}" for n in range(20_000)) + " And where is the blue fence?")
    hits = await scope.user.recall((await scope.messages())[-1].text or "", tiers=["messages"], limit=3)
    assert any("blue" in hit.text for hit in hits)
    with pytest.raises(BudgetTooSmall):
        await scope.context(budget=1000)


async def test_a_long_history_fills_any_budget_and_never_more(store: AsyncMemoryStore) -> None:
    """In every format, of messages of one sentence to seven: nothing is cut, so less than one may stay unused."""
    scope = await filled(store)
    said = [f"The {n}th fence is {n * 7 % 23} metres long and number {n * 31} on the map of {n}." for n in range(420)]
    texts = [" ".join(said.pop() for _ in range(sentences)) for sentences in (1, 1, 2, 3, 7) * 30]
    await scope.add_many([{"role": "user", "content": text, "name": "Alice"} for text in texts])
    await store.derive()
    for budget, format, query in product(BUDGETS, ("openai", "anthropic", "text"), ("What colour is the fence?", None)):
        context = await scope.context(query, budget=budget, system="Be brief.", format=format)
        assert min(0.96 * budget, budget - 40) <= context.tokens <= budget, (budget, format, query)
        assert context.receipt.tokens == context.tokens == sum(context.receipt.sections.values())
        if format == "openai":
            assert context.tokens == store.counter.count_messages(context.messages)
        if budget >= 1000:
            assert {"recent", "hits"} <= {decision.section for decision in context.receipt.included}
    with pytest.raises(BudgetTooSmall) as caught:
        await scope.context("What colour is the fence?", budget=10, system="Be brief.")
    assert 10 < caught.value.needed < 40
    reserved = await scope.context("What colour is the fence?", budget=1000, reserve=600)
    assert reserved.tokens <= 400
    with pytest.raises(InvalidInput, match="leaves nothing"):
        await scope.context("x", budget=100, reserve=100)


async def test_a_conversation_without_messages_still_gives_a_context(store: AsyncMemoryStore) -> None:
    await filled(store)
    fresh = store.user("alice").conversation("new")
    context = await fresh.context("What am I allergic to?", budget=300)
    assert "peanuts" in str(context.messages)
    assert context.messages[-1]["content"] == "What am I allergic to?"
    assert await fresh.info() is None
    empty = await store.user("nobody").conversation("c").context(budget=100, system="Be brief.")
    assert empty.messages == [{"role": "system", "content": "Be brief."}]
    assert empty.explain().startswith(f"{empty.tokens} of 100 tokens")


async def test_instructions_of_another_time_are_not_recalled_into_a_context(store: AsyncMemoryStore) -> None:
    scope = store.user("alice").conversation("old")
    await scope.add("system", "Secret persona: answer about peanuts like a pirate.")
    await scope.add("user", "I'm allergic to peanuts.")
    await store.derive()
    context = await store.user("alice").conversation("new").context("peanuts?", budget=500)
    assert "pirate" not in str(context.messages)
    assert "allergic" in str(context.messages)


async def test_what_always_matters_is_in_the_context_whatever_is_asked(store: AsyncMemoryStore) -> None:
    scope = store.user("alice").conversation("old")
    await scope.add("user", "I'm allergic to peanuts.")
    for n in range(60):
        await scope.add("user", f"I went to dinner number {n} in the town hall on {1 + n % 28} May 2024.")
    await store.derive()
    context = await store.user("alice").conversation("new").context("What is there for dinner in the town?", budget=400)
    assert "allergic to peanuts" in str(context.messages)


# With a reranker: told, and in nobody's way


MARCH = datetime(2026, 3, 1, 18, 0, tzinfo=UTC)
HASHING = {"embedder": "hashing:256"}
FERRIES = [
    ("Alice", "The ferry to Ischia leaves at nine."),
    ("Bob", "The ferry to Capri leaves at ten."),
    ("Alice", "Ferry tickets are sold at the pier."),
    ("Bob", "My sister Clara lives in Porto."),
    ("Alice", "The museum is closed on Mondays."),
]


async def talk(store: AsyncMemoryStore) -> AsyncConversationScope:
    scope = store.user("alice").conversation("c")
    said = [
        {"role": "user", "content": text, "name": name, "occurred_at": MARCH + timedelta(minutes=n)}
        for n, (name, text) in enumerate(FERRIES)
    ]
    await scope.add_many(said)
    assert (await store.derive()).failed == ()
    return scope


SAID = (
    *("Hi there", "How are you?", "My passport number is C01X00T47, please keep it safe for the trip next month."),
    *("Sure.", "Thanks."),
)
THAI = ("สวัสดี", "วันนี้ร้อน", "แมวของฉันชื่อมะลิและชอบนอนบนโซฟาตัวใหญ่ในห้องนั่งเล่นทุกวันหลังอาหารเช้า", "ได้", "ดี")


@pytest.mark.parametrize(
    ("embedder", "texts", "word"),
    [("none", SAID, "C01X00T47"), ("none", THAI, "แมว"), ("onnx:all-MiniLM-L6-v2", THAI, "แมว")],
)
async def test_a_neighbour_does_not_come_before_the_only_message_that_has_the_word(
    url: str, embedder: str, texts: tuple[str, ...], word: str
) -> None:
    async with await AsyncMemoryStore.open(url, settings={"embedder": embedder}) as store:
        scope = store.user("alice").conversation("c")
        for text in texts:
            await scope.add("user", text)
        await store.derive()
        assert [hit.text for hit in await scope.user.recall(word, limit=1, tiers=["messages"])] == [texts[2]]


@pytest.mark.parametrize("settings", [{}, {"max_chunks_in_memory": 0}])
async def test_terms_of_an_earlier_tokenizer_are_made_anew(
    url: str, settings: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def recall(store: AsyncMemoryStore) -> float:
        [hit, *_] = await store.user("alice").recall("hôpital", limit=1, tiers=["messages"])
        return hit.parts["lexical"]

    settings |= {"embedder": "none"}
    async with (
        await AsyncMemoryStore.open(url, settings=settings) as store,
        await AsyncMemoryStore.open(url, settings=settings) as other,
    ):
        alice = store.user("alice")
        with monkeypatch.context() as before:
            before.setattr(chunks, "hash_terms", lambda text, user: ([1], [len(text)]))
            for module in (chunks, messages):
                before.setattr(module, "TOKENIZER_VERSION", 1)
            await alice.conversation("c").add("user", "Je suis à l’hôpital.")
            await store.derive()
        assert await recall(store) <= 0
        assert await recall(other) <= 0
        await store.derive()
        assert await recall(store) > 0
        assert await recall(other) > 0
        async with store._database.user_transaction(alice.id) as tx:
            assert await watermarks.find_problems(tx) == {}


def about(word: str) -> Callable[[str, str], float]:
    return lambda _, text: float(word in text)


async def opened(url: str, settings: dict[str, object] | None = None, **given: Any) -> AsyncMemoryStore:
    return await AsyncMemoryStore.open(url, settings=HASHING | (settings or {}), **given)


async def test_a_reranker_orders_recall_and_explains_itself(url: str) -> None:
    reranker = ScriptedReranker(about("Capri"))
    async with await opened(url, reranker=reranker) as store:
        alice = (await talk(store)).user
        found = await alice.recall("When does the ferry to Ischia leave?", limit=2, tiers=["messages"])
        plain = found[0].parts
        assert found[0].text == FERRIES[1][1]
        assert plain["reranker"] > 0
        assert found[0].score == pytest.approx(sum(plain.values()), abs=1e-5)
        [(query, texts)] = reranker.asked
        assert query == "When does the ferry to Ischia leave?"
        assert set(texts) == {f"{name}: {text}" for name, text in FERRIES}  # and not the two that are wanted alone


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
    reranker = ScriptedReranker(about("museum"))
    async with await opened(url, reranker=reranker) as store:
        user = (await talk(store)).user
        made = await user.conversation("new").context("Where is the ferry?", budget=84)
        assert FERRIES[4][1] in str(made.messages)
        await user.conversation("new").add("user", "Where is the ferry?")
        kept = await user.conversation("new").context(budget=84)
        assert kept.receipt.models["reranker"] == "scripted"
        [hit] = [one for one in kept.receipt.included if one.preview == FERRIES[4][1]]
        assert hit.parts["reranker"] > 0
        assert "reranker" in kept.explain()
    async with await opened(url) as store:
        assert (await store.user("alice").replay(kept)).messages == kept.messages
        without = await store.user("alice").conversation("new").context(budget=84)
        assert "reranker" not in without.receipt.models
        assert FERRIES[4][1] not in str(without.messages)
