"""The bound by bytes, held against real tokenizers: not one text may have more tokens than it says."""

from __future__ import annotations

import sys
from typing import Any
from unicodedata import decomposition, normalize

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memstore.errors import ProviderMissing
from memstore.providers import load_counter
from memstore.providers.bytes import BytesCounter, load, longest
from memstore.testing import check_counter

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


def test_it_has_no_model() -> None:
    with pytest.raises(ProviderMissing, match="without 'gpt-4o'"):
        load("gpt-4o")


@pytest.mark.parametrize(
    ("text", "tokens"),
    [("", 0), ("ferry", 6), ("é", 3), ("渡轮", 7), ("\ufdfa", 34), ("\U0001d160", 13), ("\ud800", 4)],
)
def test_count(text: str, tokens: int) -> None:
    assert BYTES.count(text) == tokens


@settings(deadline=None)
@given(texts, st.sampled_from(["tiktoken:o200k_base", "tiktoken:cl100k_base"]))
def test_no_encoding_of_tiktoken_has_more_tokens(text: str, name: str) -> None:
    assert load_counter(name).count(text) <= BYTES.count(text)


@given(texts)
def test_no_normal_form_is_longer(text: str) -> None:
    whole = text.replace("\ud800", "?")
    for form in (whole, normalize("NFC", whole), normalize("NFKC", whole), normalize("NFKC", normalize("NFC", whole))):
        for cased in (form, form.lower(), form.casefold()):
            assert len(cased.encode()) <= longest(text)
    assert len(normalize("NFKD", whole)) <= longest(text)


def test_composing_never_lengthens() -> None:
    """What makes the bound hold across the ends of a text: what stands beside it can only shorten it."""
    for number in range(sys.maxunicode + 1):
        parts = decomposition(chr(number))
        if not parts or parts.startswith("<") or " " not in parts:
            continue
        pair = "".join(chr(int(part, 16)) for part in parts.split())
        if normalize("NFC", pair) == chr(number):
            assert len(chr(number).encode()) <= len(pair.encode())


def test_what_stands_around_the_texts_is_bounded_as_stated() -> None:
    message: dict[str, Any] = {"role": "user", "content": "hi"}
    assert BYTES.count_message(message) == 16 + 5 + 3
    assert BYTES.count_messages([message, message]) == 64 + 2 * 24
    assert BYTES.count_messages([message]).kind == "bound"
    call = {"role": "assistant", "content": None, "tool_calls": [{"id": "1"}, {"id": "2"}]}
    assert BYTES.count_message(call) == 3 * 16 + 10 + len('[{"id":"1"},{"id":"2"}]') + 1


def test_what_an_image_costs_is_not_bounded() -> None:
    image = {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}]}
    assert BYTES.count_messages([image]).kind == "modelled"
    assert BYTES.count_messages([{"role": "user", "content": "", "images": ["aGk="]}]).kind == "modelled"
    assert BYTES.count_messages([{"role": "user", "content": [{"type": "text", "text": "hi"}]}]).kind == "bound"
