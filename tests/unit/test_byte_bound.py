"""The bound by bytes and the estimate, held against real tokenizers: no text may have more tokens than they say."""

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings, strategies as st
from tokenizers import Tokenizer

import memstore
from memstore.errors import ProviderMissing
from memstore.providers import load_counter
from memstore.providers.huggingface import ChatTemplate
from memstore.providers.minilm import FOLDER
from memstore.providers.tiktoken import BytesCounter, EstimatedCounter, counter_for, estimate
from tests.helpers.conformance import check_counter
from tests.helpers.fakes import WordCounter
from tests.helpers.tokenizers import CHATML, GEMMA, LLAMA_3, QWEN, byte_level, sentencepiece, unigram

BYTES = BytesCounter()
HARD = [
    "\ufdfa",
    "\U0001d160",
    "\u0130",
    "\u0390",
    "\u1e9e",
    "각",
    "한글",
    "é",
    "e\u0301",
    "ﬁ",
    "㌀",
    "\u0958",
    "\ud800",
    "▁",
    "\x00",
]
texts = st.lists(st.one_of(st.text(max_size=20), st.sampled_from(HARD)), max_size=8).map("".join)


def test_it_conforms() -> None:
    check_counter(load_counter("bytes"))
    assert load_counter("bytes").name == "bytes"


@settings(deadline=None)
@given(texts, st.sampled_from(["tiktoken:o200k_base", "tiktoken:cl100k_base"]))
def test_no_encoding_of_tiktoken_has_more_tokens(text: str, name: str) -> None:
    assert load_counter(name).count(text) <= BYTES.count(text)


def test_what_an_image_costs_is_not_bounded() -> None:
    image = {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}]}
    assert BYTES.count_messages([image]).kind == "estimated"
    assert BYTES.count_messages([{"role": "user", "content": "", "images": ["aGk="]}]).kind == "estimated"
    assert BYTES.count_messages([{"role": "user", "content": [{"type": "text", "text": "hi"}]}]).kind == "upper_bound"


@cache
def minilm() -> Tokenizer:
    own = Tokenizer.from_file(str(FOLDER / "tokenizer.json"))
    own.no_truncation()
    own.no_padding()
    return own


KINDS: dict[str, Callable[[], Tokenizer]] = {
    "WordPiece, NFD, lower case, no accents (MiniLM)": minilm,
    "byte-level BPE": byte_level,
    "byte-level BPE, nothing merged": lambda: byte_level(vocabulary=264),
    "byte-level BPE, NFKC": lambda: byte_level(normal="NFKC", vocabulary=264),
    "SentencePiece BPE, bytes": sentencepiece,
    "Unigram, NFKC, bytes": unigram,
    "Unigram, lower case, bytes": lambda: unigram("Lowercase"),
}


@pytest.mark.parametrize("kind", KINDS)
@settings(deadline=None, max_examples=200)
@given(text=texts)
@example(text="\ua7f2\ufdf0")  # of Unicode 14: a tokenizer may know only the second's form
def test_no_tokenizer_has_more_tokens(kind: str, text: str) -> None:
    whole = text.replace("\ud800", "\ufffd")
    assert len(KINDS[kind]().encode(whole, add_special_tokens=False)) <= BYTES.count(text)


@pytest.mark.parametrize("template", [LLAMA_3, GEMMA, CHATML, QWEN], ids=["llama", "gemma", "chatml", "qwen"])
@settings(deadline=None, max_examples=60)
@given(said=st.lists(texts, max_size=4))
def test_no_template_makes_more_tokens_of_a_chat(template: str, said: list[str]) -> None:
    roles = ["system", "user", "assistant", "user"]
    chat = [{"role": role, "content": text} for role, text in zip(roles, said, strict=False)]
    prompt, _ = ChatTemplate(template, {"bos_token": "<|begin_of_text|>"}).render(chat or [{"role": "user"}])
    most = BYTES.count_messages(chat or [{"role": "user"}])
    whole = prompt.replace("\ud800", "\ufffd")
    assert len(byte_level(vocabulary=264).encode(whole, add_special_tokens=False)) <= most


# The estimate for models without a counter


COUNTER = EstimatedCounter()
# The most tokens that any of seven tokenizers makes of a text, and whose: Claude 2's (anthropic 0.38), Claude 3's to
# Opus 4.6's and Opus 4.7's and later ones' (as the package ctok 1.3 has reconstructed them), cl100k_base, Qwen's, and
# Mistral's of 32,768 and 131,072 entries.
FILE = Path(__file__).parents[1] / "data" / "measured_tokens.jsonl"
MEASURED = [json.loads(line) for line in FILE.read_text(encoding="utf-8").splitlines()]


def test_the_estimate_conforms() -> None:
    check_counter(COUNTER)


@pytest.mark.parametrize("measured", MEASURED, ids=lambda measured: measured["text"][:12])
def test_no_measured_tokenizer_has_more_tokens(measured: dict[str, Any]) -> None:
    text, tokens = measured["text"], measured["tokens"]
    assert tokens <= COUNTER.count(text) <= BYTES.count(text), measured["by"]
    assert COUNTER.count(text * 20) <= 20 * COUNTER.count(text) + 20


def test_every_chat_is_estimated_and_tools_have_room_for_instructions() -> None:
    chat = [{"role": "user", "content": "When?"}]
    assert COUNTER.count_messages(chat).kind == COUNTER.count_messages([]).kind == "estimated"
    assert COUNTER.count_messages(chat) == COUNTER.count_messages([]) + COUNTER.count_message(chat[0])
    tool = {"type": "function", "function": {"name": "find"}}
    assert COUNTER.count_messages(chat, [tool]) > COUNTER.count_messages(chat) + 700


def test_the_name_says_the_factor() -> None:
    assert load_counter("estimated").name == load_counter("estimated:2.50").name == "estimated:2.5"
    for factor in ("0.9", "11", "nan", "inf", "claude"):
        with pytest.raises(ProviderMissing, match="a factor of 1 to 10"):
            load_counter(f"estimated:{factor}")


# Which counter a model has


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
        ("claude-sonnet-4-5", "estimated:2.5"),
        ("anthropic:claude-sonnet-4-5", "anthropic:claude-sonnet-4-5"),
        ("davinci", "estimated:2.5"),  # of an encoding that does not come with memstore
        ("", "estimated:2.5"),
    ],
)
def test_a_model_is_counted_by_what_knows_it_best(model: str, counter: str) -> None:
    assert counter_for(model) == counter


def test_a_model_that_nobody_knows_is_warned_of_once(caplog: pytest.LogCaptureFixture) -> None:
    for _ in range(2):
        assert counter_for("foo:bar-7") == "estimated:2.5"
    assert counter_for("gpt-4o") == "tiktoken:gpt-4o"
    (record,) = caplog.records
    assert "no counter knows the model 'foo:bar-7'" in record.getMessage()
