"""Contexts in every format, from a store."""

from __future__ import annotations

from memstore import AsyncMemoryStore
from memstore.formats import Anthropic, Ollama

CALL = {"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": '{"town": "Lisbon"}'}}
LINES = [
    {"role": "user", "name": "Alice", "content": "I'm allergic to peanuts."},
    {"role": "assistant", "content": "Noted."},
    {"role": "user", "content": "How is the weather?"},
    {"role": "assistant", "tool_calls": [CALL]},
    {"role": "tool", "content": "sunny", "tool_call_id": "call_1"},
]


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
