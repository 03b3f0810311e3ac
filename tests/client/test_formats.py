"""Contexts in every format, from a store."""

from __future__ import annotations

from memstore import AsyncMemoryStore
from memstore.formats import Anthropic, Ollama, OpenAI

CALL = {"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": '{"town": "Lisbon"}'}}
LINES = [
    {"role": "user", "name": "Alice", "content": "I'm allergic to peanuts."},
    {"role": "assistant", "content": "Noted."},
    {"role": "user", "content": "How is the weather?"},
    {"role": "assistant", "tool_calls": [CALL]},
    {"role": "tool", "content": "sunny", "tool_call_id": "call_1"},
]


async def test_one_conversation_in_every_format(store: AsyncMemoryStore) -> None:
    trip = store.user("alice").conversation("lisbon")
    await trip.add_many(LINES)
    await store.derive()
    asked = {"budget": 2000, "system": "Be brief."}
    plain = await trip.context(**asked)
    assert (plain.system, plain.text) == (None, None)
    for same in ("openai", OpenAI()):
        assert (await trip.context(**asked, format=same)).messages == plain.messages

    local = await trip.context(**asked, format="ollama")
    assert local.messages[-2]["tool_calls"][0]["function"]["arguments"] == {"town": "Lisbon"}
    assert local.messages[-1]["tool_name"] == "weather"

    apart = await trip.context(**asked, format="anthropic")
    assert apart.system is not None
    assert apart.system.startswith("Be brief.")
    assert [one["role"] for one in apart.messages[-3:]] == ["user", "assistant", "user"]
    assert apart.messages[-1]["content"][0]["tool_use_id"] == apart.messages[-2]["content"][-1]["id"] == "call_1"

    text = await trip.context(**asked, format="text")
    assert text.messages == []
    assert text.text is not None
    assert text.text.startswith("Be brief.\n\n")
    assert "user: How is the weather?" in text.text.split("# The next message\n")[1]

    for context in (local, apart, text):
        assert context.tokens == sum(context.receipt.sections.values()) <= 2000


async def test_an_answer_in_a_models_own_format_is_stored_and_sent_to_another(store: AsyncMemoryStore) -> None:
    trip = store.user("alice").conversation("lisbon")
    await trip.add("user", "How is the weather?")
    blocks = [{"type": "tool_use", "id": "toolu_1", "name": "weather", "input": {"town": "Lisbon"}}]
    answer = {"role": "assistant", "content": [{"type": "text", "text": "I look."}, *blocks]}
    result = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "sunny"}]}
    await trip.add_many([*Anthropic().read(answer), *Anthropic().read(result)])
    context = await trip.context(budget=500, format="anthropic")
    assert context.messages[1:] == [
        answer,
        result | {"content": [result["content"][0] | {"content": [{"type": "text", "text": "sunny"}]}]},
    ]
    sent = (await trip.context(budget=500, format=Ollama())).messages
    assert sent[-1] == {"role": "tool", "content": "sunny", "tool_call_id": "toolu_1", "tool_name": "weather"}
    assert (await trip.context(budget=500)).messages[-2]["tool_calls"] == [
        {"id": "toolu_1", "type": "function", "function": {"name": "weather", "arguments": '{"town": "Lisbon"}'}}
    ]
