"""The bound by bytes, held against real tokenizers: not one text may have more tokens than it says."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import pytest
from hypothesis import example, given, settings, strategies as st
from tokenizers import Tokenizer

from memstore.providers import load_counter
from memstore.providers.huggingface import ChatTemplate
from memstore.providers.minilm import FOLDER
from memstore.providers.tiktoken import BytesCounter
from tests.helpers.conformance import check_counter
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


def test_what_stands_around_the_texts_is_bounded_as_stated() -> None:
    message: dict[str, Any] = {"role": "user", "content": "hi"}
    assert BYTES.count_message(message) == 16 + 5 + 3
    assert BYTES.count_messages([message, message]) == 64 + 2 * 24
    assert BYTES.count_messages([message]).kind == "upper_bound"
    call = {"role": "assistant", "content": None, "tool_calls": [{"id": "1"}, {"id": "2"}]}
    assert BYTES.count_message(call) == 3 * 16 + 10 + len('[{"id":"1"},{"id":"2"}]') + 1


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
