from __future__ import annotations

from typing import Any

import pytest

import memstore
from memstore.errors import InvalidInput, ProviderMissing
from memstore.providers import load_counter
from memstore.providers.fits import check_fits, estimate
from memstore.testing import WordCounter

CHAT: list[dict[str, Any]] = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "When does the ferry to Ischia leave?"},
    {"role": "assistant", "content": None, "tool_calls": [{"id": "1", "function": {"name": "find"}}]},
]


def test_what_fits_fits_to_the_token() -> None:
    tokens = load_counter("tiktoken:o200k_base").count_messages(CHAT)
    assert memstore.check_fits(CHAT, tokens)
    assert not memstore.check_fits(CHAT, tokens - 1)
    assert not check_fits(CHAT, tokens, tools=[{"type": "function", "function": {"name": "find"}}])
    assert check_fits(CHAT, 3 + 3 * 3 + 17, counter=WordCounter())
    assert not check_fits(CHAT, 3 + 3 * 3 + 16, counter=WordCounter())
    assert not check_fits(CHAT, tokens, counter="bytes")


def test_estimates() -> None:
    exact = memstore.estimate(CHAT)
    assert (exact, exact.kind) == (load_counter("tiktoken:o200k_base").count_messages(CHAT), "exact")
    assert (estimate(CHAT, "cached"), estimate(CHAT, "cached").kind) == (exact, "exact")
    guess = estimate(CHAT, "approximate")
    assert guess.kind == "modelled"
    assert exact / 2 < guess < exact * 2
    assert estimate(CHAT, counter="tiktoken:gpt-4o").kind == "modelled"
    assert estimate(CHAT, counter="bytes").kind == "bound"


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(InvalidInput, match="approximate, exact, cached"):
        estimate(CHAT, "rough")  # type: ignore[arg-type]
    with pytest.raises(ProviderMissing):
        estimate(CHAT, counter="nobody:knows")
