"""A context for a model is counted as that model counts, and the receipt says how far that is known."""

from __future__ import annotations

from pathlib import Path

import pytest

from memstore import BudgetTooSmall
from memstore.client.store import AsyncMemoryStore
from memstore.providers import load_counter
from tests.helpers.tokenizers import GEMMA, LLAMA_3, QWEN, byte_level, write


@pytest.mark.parametrize(
    ("model", "counter", "kind"),
    [
        (None, "tiktoken:o200k_base", "exact"),
        ("gpt-4o", "tiktoken:gpt-4o", "estimated"),
        ("gpt-4", "tiktoken:gpt-4", "estimated"),
        ("claude-opus-4", "estimated:2.5", "estimated"),
        ("estimated:1.6", "estimated:1.6", "estimated"),
        ("bytes", "bytes", "upper_bound"),
    ],
)
async def test_a_context_is_counted_for_its_model(
    store: AsyncMemoryStore, model: str | None, counter: str, kind: str
) -> None:
    talk = store.user("alice").conversation("lisbon")
    await talk.add_many([{"role": ("user", "assistant")[n % 2], "content": f"去里斯本的渡轮 {n}"} for n in range(60)])
    context = await talk.context("When does the ferry leave?", budget=600, model=model)
    assert (context.receipt.counter, context.receipt.count) == (counter, kind)
    assert context.tokens == load_counter(counter).count_messages(context.messages) <= 600
    with pytest.raises(BudgetTooSmall):
        await talk.context("When does the ferry leave?", budget=12, model=model)


@pytest.mark.parametrize(("shape", "kind"), [(LLAMA_3, "exact"), (QWEN, "exact"), (GEMMA, "estimated")])
async def test_a_context_for_an_open_model_fills_its_budget_and_not_more(
    store: AsyncMemoryStore, tmp_path: Path, shape: str, kind: str
) -> None:
    folder = write(tmp_path, byte_level(), shape)
    talk = store.user("alice").conversation("lisbon")
    said = [{"role": ("user", "assistant")[n % 2], "content": f"The ferry number {n} leaves."} for n in range(120)]
    await talk.add_many(said)
    counter = load_counter(f"tokenizer:{folder}")
    for budget in (300, 1000):
        context = await talk.context("Which?", budget=budget, system="Be brief.", model=f"tokenizer:{folder}")
        assert context.receipt.count == kind
        assert 0.9 * budget < counter.count_messages(context.messages) == context.tokens <= budget


async def test_a_context_for_a_model_whose_template_knows_no_system_and_no_tools(
    store: AsyncMemoryStore, tmp_path: Path
) -> None:
    folder = write(tmp_path, byte_level(), GEMMA)
    talk = store.user("alice").conversation("lisbon")
    call = {"id": "1", "type": "function", "function": {"name": "find", "arguments": '{"what": "ferry"}'}}
    await talk.add("system", "Answer in one sentence.")
    await talk.add("user", "When does the ferry leave?")
    await talk.add("assistant", None, tool_calls=[call])
    await talk.add("tool", "At nine.", tool_call_id="1")
    for format in ("openai", "ollama"):
        context = await talk.context(budget=400, system="Be brief.", model=f"tokenizer:{folder}", format=format)
        assert [one["role"] for one in context.messages[-3:]] == ["user", "assistant", "tool"]
        assert context.receipt.count == "estimated"
        assert sum(context.receipt.sections.values()) == context.tokens <= 400
