"""The plain calls of a conversation, its settings and its statistics."""

import pytest

from memstore.client.conversation import AsyncConversationScope
from memstore.client.store import AsyncMemoryStore
from memstore.errors import InvalidInput
from memstore.models import Message


async def talk(store: AsyncMemoryStore, name: str = "trip", turns: int = 4) -> AsyncConversationScope:
    trip = store.user("alice").conversation(name)
    for number in range(turns):
        await trip.add("user", f"Question {number} about the ferry?")
        await trip.add("assistant", f"Answer {number} about the ferry.")
    return trip


def texts(messages: list[Message]) -> list[str | None]:
    return [one.text for one in messages]


async def test_recent_messages_are_all_or_the_newest(store: AsyncMemoryStore) -> None:
    trip = await talk(store)
    assert texts(await trip.recent()) == texts(await trip.messages())
    assert texts(await trip.recent(3)) == texts(await trip.messages())[-3:]
    assert await trip.recent(0) == []
    assert len(await trip.recent(100)) == 8
    assert (await trip.statistics()).messages_kept == 8
    for wrong in (-1, True, "3"):
        with pytest.raises(InvalidInput, match="limit="):
            await trip.recent(wrong)  # type: ignore[arg-type]


async def test_a_conversation_that_is_not_there_is_empty(store: AsyncMemoryStore) -> None:
    nothing = store.user("alice").conversation("nothing")
    assert await nothing.recent() == await nothing.recent(3) == []
    await nothing.clear()
    assert (await nothing.statistics()).messages_total == 0
    assert await nothing.info() is None


async def test_clear_begins_a_new_stretch_and_deletes_nothing(store: AsyncMemoryStore) -> None:
    trip = await talk(store)
    await trip.add("user", "The cabin has the number seventeen.")
    await trip.clear()
    await trip.clear()
    assert await trip.recent() == await trip.recent(5) == []
    assert (await trip.statistics()).messages_kept == 0
    assert len(await trip.messages()) == 9
    await trip.add("user", "What is the number of the cabin?")
    await store.derive()
    assert texts(await trip.recent()) == texts(await trip.recent(5)) == ["What is the number of the cabin?"]
    context = await trip.context(budget=4000)
    roles = [message["role"] for message in context.messages]
    assert roles.count("user") == 1 and "assistant" not in roles
    assert "seventeen" in str(context.messages[0]["content"])  # recalled
    assert context.statistics().messages_total == 1
    assert any("seventeen" in hit.text for hit in await store.user("alice").recall("number of the cabin"))
    assert (await trip.info()).settings == {}  # type: ignore[union-attr]


async def test_a_context_of_before_the_clearing_has_the_stretch_of_then(store: AsyncMemoryStore) -> None:
    trip = await talk(store)
    before = (await trip.recent())[-1].recorded_at
    await trip.clear()
    await trip.add("user", "What now?")
    then = await trip.context("What now?", budget=2000, as_of=before)
    assert sum(message["role"] == "assistant" for message in then.messages) == 4
    now = await trip.context("What now?", budget=2000)
    assert sum(message["role"] == "assistant" for message in now.messages) == 0


async def test_a_conversation_has_settings_of_its_own_else_the_systems(url: str) -> None:
    defaults = {"embedder": "none", "context_budget": 300, "context_reserve": 20, "strategy": ("sliding_window",)}
    async with await AsyncMemoryStore.open(url, settings=defaults) as store:
        trip = await talk(store, turns=20)
        receipt = (await trip.context("ferry?")).receipt
        assert (receipt.budget, receipt.reserve) == (300, 20)
        assert (await trip.settings())["context_budget"] == 300
        await trip.update(settings={"context_budget": 200, "context_reserve": 0, "mine": {"a": 1}})
        receipt = (await trip.context("ferry?")).receipt
        assert (receipt.budget, receipt.reserve) == (200, 0)
        assert (await trip.context("ferry?", budget=250)).receipt.budget == 250
        kept = await trip.settings()
        assert kept["mine"] == {"a": 1}
        assert kept["strategy"][0]["strategy"] == "sliding_window"
        assert (await trip.context("ferry?")).statistics().strategy == "sliding_window"
        await trip.update(strategy=[], settings={"context_budget": None})
        assert (await trip.context("ferry?")).statistics().strategy == "none"
        assert (await trip.context("ferry?")).receipt.budget == 300


async def test_a_conversation_cannot_reserve_all_of_its_budget(url: str) -> None:
    async with await AsyncMemoryStore.open(url, settings={"embedder": "none", "context_budget": 300}) as store:
        trip = await talk(store, turns=2)
        both = {"context_budget": 100, "context_reserve": 200}
        for wrong in (both, {"context_reserve": 300}):
            with pytest.raises(InvalidInput, match="leaves nothing"):
                await trip.update(settings=wrong)
        await trip.update(settings={"context_budget": 1000, "context_reserve": 300})
        for wrong in ({"context_budget": 200}, {"context_budget": None}):
            with pytest.raises(InvalidInput, match="leaves nothing"):
                await trip.update(settings=wrong)
        await trip.update(title="Lisbon", settings={"context_budget": None, "context_reserve": None})
        assert (await trip.context("ferry?")).receipt.budget == 300


async def test_wrong_settings_and_blank_questions_are_refused(store: AsyncMemoryStore) -> None:
    trip = store.user("alice").conversation("trip")
    for wrong in ({"context_budget": "many"}, {"context_viewer": ""}, {"cleared": []}):
        with pytest.raises(InvalidInput, match=next(iter(wrong))):
            await trip.update(settings=wrong)
    with pytest.raises(InvalidInput, match="context_budget"):
        await trip.context("What?")
    for blank in ("", " \n"):
        with pytest.raises(InvalidInput, match="None for the newest user message"):
            await trip.context(blank, budget=500)
        with pytest.raises(InvalidInput, match="is empty"):
            await trip.user.recall(blank)


async def test_statistics(store: AsyncMemoryStore) -> None:
    trip = await talk(store, turns=30)
    context = await trip.context("ferry?", budget=300)
    told = context.statistics()
    assert (told.tokens, told.budget, told.messages_total, told.strategy) == (context.tokens, 300, 60, "none")
    kept = [message for message in context.messages if message["role"] != "system"]
    assert told.messages_kept == len(kept) - 1  # the question is not stored
    assert told.used == context.tokens / 300
    assert sum(told.roles.values()) == len(context.messages)
    assert (await trip.context("ferry?", budget=300, format="text")).statistics().roles == {}
    await trip.update(strategy=["sliding_window"], settings={"context_budget": 500})
    whole = await trip.statistics()
    assert whole.messages_kept == whole.messages_total == 60
    assert whole.roles == {"assistant": 30, "user": 30}
    assert whole.tokens == sum(message.tokens for message in await trip.messages())
    assert (whole.budget, whole.strategy) == (500, "sliding_window")
    await trip.clear()
    assert ((await trip.statistics()).messages_kept, (await trip.statistics()).messages_total) == (0, 60)
