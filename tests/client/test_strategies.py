"""Strategies through the door: kept with a conversation, for one context alone, and told in the receipt."""

import json
from typing import Any

import pytest

from memstore import BudgetTooSmall, InvalidInput, Section
from memstore.client.conversation import AsyncConversationScope
from memstore.client.store import AsyncMemoryStore
from memstore.strategies import ConversationView, GoalBatch, Hierarchical, SlidingWindow, Strategy, ToolCalls


async def worked(store: AsyncMemoryStore) -> AsyncConversationScope:
    """Give a conversation in which tools were called twelve times."""
    scope = store.user("alice").conversation("work")
    given: list[dict[str, object]] = [{"role": "system", "content": "Be brief."}]
    for n in range(12):
        made = {"id": f"c{n}", "type": "function"}
        function = {"name": "search", "arguments": json.dumps({"query": f"offer {n}", "limit": 40})}
        rows = [{"offer": f"off_{n}_{row}", "price": 100 * n + row} for row in range(40)]
        given += [
            {"role": "user", "content": f"Look for offer {n}, please."},
            {"role": "assistant", "content": None, "tool_calls": [made | {"function": function}]},
            {"role": "tool", "content": json.dumps({"total": 40, "rows": rows}), "tool_call_id": f"c{n}"},
            {"role": "assistant", "content": f"I would take off_{n}_7."},
        ]
    await scope.add_many(given)
    return scope


async def test_strategies_are_kept_with_the_conversation_and_used(store: AsyncMemoryStore) -> None:
    scope = await worked(store)
    plain = await scope.context("Which offer was it?", budget=20_000)
    await scope.update(strategy=["tool_calls"])
    kept = await scope.info()
    assert kept is not None
    assert kept.settings["strategy"][0] | {"strategy": "tool_calls", "older_than": 10} == kept.settings["strategy"][0]
    context = await scope.context("Which offer was it?", budget=20_000)
    (done,) = context.receipt.compressed
    assert (done.strategy, done.turns) == ("tool_calls", 9)
    assert context.tokens < 0.7 * plain.tokens
    assert plain.tokens - context.tokens == pytest.approx(done.saved, abs=60)
    told = [one["content"] for one in context.messages if str(one["content"]).startswith("<record>")]
    assert len(told) == 9
    assert "search(query=offer 0, limit=40) gave: " in told[0]
    assert "off_0_7, 7" in told[0]
    assert [one["role"] for one in context.messages[:4]] == ["system", "user", "system", "assistant"]
    blocks = [one for one in context.receipt.included if one.kind == "block"]
    assert blocks[-1].note == "tool_calls: messages 3 to 4"
    assert context.receipt.as_dict()["compressed"][0]["saved"] == done.saved
    assert "tool_calls: 9 turns" in context.explain()


async def test_a_hierarchical_context_has_the_facts_of_what_it_no_longer_shows(store: AsyncMemoryStore) -> None:
    scope = store.user("alice").conversation("talk")
    said = [
        "I'm allergic to peanuts.",
        *(f"The {n}th boat in the harbour has {n * 7} lamps at night." for n in range(80)),
    ]
    await scope.add_many([{"role": "user", "content": text} for text in said])
    await store.derive()
    context = await scope.context("Hello?", budget=1100, strategy=Hierarchical(middle=10))
    record = next(str(one["content"]) for one in context.messages if str(one["content"]).startswith("<record>"))
    assert "- The user is allergic to peanuts." in record


async def test_a_context_may_have_strategies_of_its_own_or_none(store: AsyncMemoryStore) -> None:
    scope = await worked(store)
    plain = await scope.context("Which offer?", budget=20_000)
    await scope.update(settings={"strategy": ["tool_calls"], "other": 1})
    assert (await scope.context("Which offer?", budget=20_000, strategy=[])).messages == plain.messages
    window = await scope.context("Which offer?", budget=20_000, strategy=SlidingWindow(6))
    assert window.messages[0]["role"] == "system"  # instructions stay
    assert any(one.note.startswith("sliding_window: 30 turns") for one in window.receipt.left_out)
    goals = await scope.context("Which offer?", budget=20_000, strategy=["goal_batch", GoalBatch(older_than=1)])
    assert {one.strategy for one in goals.receipt.compressed} == {"goal_batch"}
    assert sum(str(one["content"]).startswith("<record>") for one in goals.messages) == 1  # side by side, in one fence
    await scope.update(strategy=[])
    assert (await scope.context("Which offer?", budget=20_000)).messages == plain.messages
    kept = await scope.info()
    assert kept is not None
    assert kept.settings == {"strategy": [], "other": 1}


TOOL = {"type": "function", "function": {"name": "search", "parameters": {"type": "object", "properties": {}}}}


@pytest.mark.parametrize("format", ["openai", "text"])
async def test_the_budget_that_is_said_to_be_needed_is_enough(store: AsyncMemoryStore, format: str) -> None:
    """Though strategies make more in more room, of which more must be in."""
    scope = store.user("alice").conversation("talk")
    given = [
        {"role": ("user", "assistant")[n % 2], "content": f"On day {n} we talked about ferries."} for n in range(40)
    ]
    await scope.add_many(given)
    asked: dict[str, Any] = {"strategy": ["summary_buffer"], "sections": [Section("recent", minimum=500)]}
    asked |= {"tools": [TOOL], "format": format}
    for budget in (1, 90, 140):
        with pytest.raises(BudgetTooSmall) as caught:
            await scope.context("Which ferry?", budget=budget, **asked)
        assert caught.value.budget == budget < caught.value.needed < 500
        assert (await scope.context("Which ferry?", budget=caught.value.needed, **asked)).tokens <= caught.value.needed


class Shout(Strategy):
    name = "shout"

    def run(self, view: ConversationView) -> ConversationView:
        return view.with_blocks([view.block(self, view.entries[1:20], "We spoke of offers.", 1)])


async def test_a_strategy_of_ones_own(store: AsyncMemoryStore) -> None:
    scope = await worked(store)
    context = await scope.context("Which?", budget=20_000, strategy=[Shout(), ToolCalls()])
    assert [one.strategy for one in context.receipt.compressed] == ["shout", "tool_calls"]
    with pytest.raises(InvalidInput, match="only given to context"):
        await scope.update(strategy=[Shout()])


async def test_what_is_no_strategy_is_refused_before_it_is_kept(store: AsyncMemoryStore) -> None:
    scope = await worked(store)
    for given in ("zip", [{"strategy": "tool_calls", "age": 1}], [{"strategy": "threshold", "target": 0.9}]):
        with pytest.raises(InvalidInput):
            await scope.update(strategy=given)
        with pytest.raises(InvalidInput):
            await scope.update(settings={"strategy": given})
        with pytest.raises(InvalidInput):
            await scope.context("x", budget=900, strategy=given)
    kept = await scope.info()
    assert kept is not None
    assert kept.settings == {}
    for settings in ("tool_calls", ["tool_calls"]):
        with pytest.raises(InvalidInput, match="settings"):
            await scope.update(settings=settings)  # type: ignore[arg-type]
