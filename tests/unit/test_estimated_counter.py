"""The estimate for models without a counter: above what other tokenizers have been measured to make of a text."""

from __future__ import annotations

import json
from math import ceil
from pathlib import Path
from typing import Any

import pytest

from memstore.errors import ProviderMissing
from memstore.providers import load_counter
from memstore.providers.tiktoken import BytesCounter, EstimatedCounter, TiktokenCounter
from tests.helpers.conformance import check_counter

O200K = TiktokenCounter("o200k_base")
COUNTER = EstimatedCounter()
# The most tokens that any of seven tokenizers makes of a text, and whose: Claude 2's (anthropic 0.38), Claude 3's to
# Opus 4.6's and Opus 4.7's and later ones' (as the package ctok 1.3 has reconstructed them), cl100k_base, Qwen's, and
# Mistral's of 32,768 and 131,072 entries.
FILE = Path(__file__).parents[1] / "data" / "measured_tokens.jsonl"
MEASURED = [json.loads(line) for line in FILE.read_text(encoding="utf-8").splitlines()]


def test_it_conforms() -> None:
    check_counter(COUNTER)


@pytest.mark.parametrize("measured", MEASURED, ids=lambda measured: measured["text"][:12])
def test_no_measured_tokenizer_has_more_tokens(measured: dict[str, Any]) -> None:
    text, tokens = measured["text"], measured["tokens"]
    assert tokens <= COUNTER.count(text) <= BytesCounter().count(text), measured["by"]
    assert COUNTER.count(text * 20) <= 20 * COUNTER.count(text) + 20


def test_it_is_the_factor_over_o200k_with_half_a_token_for_each_other_character() -> None:
    for factor in (1.0, 1.6, 2.5):
        counter = load_counter(f"estimated:{factor}")
        for text in ("When does the ferry to Ischia leave?", "Wann fährt die Fähre?", ""):
            others = sum(not char.isascii() for char in text)
            assert counter.count(text) == ceil(factor * (O200K.count(text) + others / 2))
    assert COUNTER.count("x") == 2, "no more than the bound by bytes"


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
