from __future__ import annotations

import importlib

import pytest

from memstore.providers import load_counter
from memstore.providers.naming import counter_for
from memstore.providers.optional import brought_by


@pytest.mark.parametrize(
    ("model", "counter"),
    [
        ("gpt-4o", "tiktoken:gpt-4o"),
        ("gpt-4o-mini-2024-07-18", "tiktoken:gpt-4o-mini-2024-07-18"),
        ("openai/gpt-5-mini", "tiktoken:gpt-5-mini"),
        ("openai:gpt-4", "tiktoken:gpt-4"),
        ("gpt-oss-20b", "tiktoken:gpt-oss-20b"),
        ("tiktoken:cl100k_base", "tiktoken:cl100k_base"),
        ("ollama:llama3.2", "ollama:llama3.2"),
        ("ollama:gpt-oss:20b@a80c4f17acd5", "ollama:gpt-oss:20b@a80c4f17acd5"),
        ("tokenizer:/models/llama", "tokenizer:/models/llama"),
        ("bytes", "bytes"),
        ("claude-sonnet-4-5", "bytes"),
        ("anthropic:claude-sonnet-4-5", "bytes"),
        ("llama3.2", "bytes"),
        ("davinci", "bytes"),  # of an encoding that does not come with memstore
        ("", "bytes"),
    ],
)
def test_a_model_is_counted_by_what_knows_it_best(model: str, counter: str) -> None:
    assert counter_for(model) == counter


def test_no_guess_is_called_exact() -> None:
    kinds = {model: load_counter(counter_for(model)).count_messages([]).kind for model in ("gpt-4o", "claude-opus-4")}
    assert kinds == {"gpt-4o": "modelled", "claude-opus-4": "bound"}


def test_a_broken_install_shows_its_own_error() -> None:
    with pytest.raises(ImportError, match="undefined symbol"), brought_by("tokenizers", "tokenizers"):
        raise ImportError("undefined symbol: x", name="tokenizers")
    with pytest.raises(ModuleNotFoundError, match="needed_by_it"), brought_by("tokenizers", "tokenizers"):
        importlib.import_module("needed_by_it")


def test_a_model_that_nobody_knows_is_warned_of_once(caplog: pytest.LogCaptureFixture) -> None:
    for _ in range(2):
        assert counter_for("foo:bar-7") == "bytes"
    assert counter_for("gpt-4o") == "tiktoken:gpt-4o"
    (record,) = caplog.records
    assert "no counter knows the model 'foo:bar-7'" in record.getMessage()
    assert "tokenizer:…" in record.getMessage()
