from __future__ import annotations

from typing import Any

import pytest

import memstore
from memstore.providers import load_counter
from memstore.providers.tiktoken import ESTIMATED
from memstore.providers.token_check import counter_for, estimate
from tests.helpers.fakes import WordCounter

CHAT: list[dict[str, Any]] = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "When does the ferry to Ischia leave?"},
    {"role": "assistant", "content": None, "tool_calls": [{"id": "1", "function": {"name": "find"}}]},
]


def test_estimates() -> None:
    exact = memstore.estimate(CHAT)
    assert (exact, exact.kind) == (load_counter("tiktoken:o200k_base").count_messages(CHAT), "exact")
    assert estimate(CHAT, counter="tiktoken:gpt-4o").kind == "estimated"
    assert estimate(CHAT, counter="bytes").kind == "upper_bound"
    assert estimate(CHAT, counter=WordCounter()) == 3 + 3 * 3 + 17
    assert estimate(CHAT, tools=[{"type": "function", "function": {"name": "find"}}]) > exact


@pytest.mark.parametrize(
    ("model", "counter"),
    [
        ("gpt-4o-mini-2024-07-18", "tiktoken:gpt-4o-mini-2024-07-18"),
        ("openai:gpt-4", "tiktoken:gpt-4"),
        ("gpt-oss-20b", "tiktoken:gpt-oss-20b"),
        ("tiktoken:cl100k_base", "tiktoken:cl100k_base"),
        ("ollama:gpt-oss:20b@a80c4f17acd5", "ollama:gpt-oss:20b@a80c4f17acd5"),
        ("tokenizer:/models/llama", "tokenizer:/models/llama"),
        ("claude-sonnet-4-5", ESTIMATED),
        ("anthropic:claude-sonnet-4-5", "anthropic:claude-sonnet-4-5"),
        ("davinci", ESTIMATED),  # of an encoding that does not come with memstore
        ("", ESTIMATED),
    ],
)
def test_a_model_is_counted_by_what_knows_it_best(model: str, counter: str) -> None:
    assert counter_for(model) == counter


def test_a_model_that_nobody_knows_is_warned_of_once(caplog: pytest.LogCaptureFixture) -> None:
    for _ in range(2):
        assert counter_for("foo:bar-7") == ESTIMATED
    assert counter_for("gpt-4o") == "tiktoken:gpt-4o"
    (record,) = caplog.records
    assert "no counter knows the model 'foo:bar-7'" in record.getMessage()
