from __future__ import annotations

import re
from typing import Any, cast

import pytest

import memstore
from memstore.errors import InvalidInput, ProviderMissing
from memstore.models import Context, Message, Receipt
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


def test_a_context_and_stored_messages_are_counted_as_they_are_sent() -> None:
    receipt = cast("Receipt", None)
    apart = Context(CHAT[1:], 0, receipt, system="Be brief.")
    assert estimate(apart) == estimate(CHAT) == estimate(apart, "cached")
    assert estimate(apart, "approximate") == estimate(CHAT, "approximate")
    assert check_fits(apart, estimate(CHAT))
    written = Context([], 0, receipt, text="Be brief. When does it leave?")
    assert estimate(written, counter=WordCounter()) == 6
    assert estimate(written, "approximate") == 9
    stored = Message.model_construct(role="user", text=CHAT[1]["content"], parts=None)
    assert estimate([CHAT[0], stored]) == estimate(CHAT[:2])


def test_a_models_name_takes_the_counter_that_knows_it_best() -> None:
    assert estimate(CHAT, counter="gpt-4o") == estimate(CHAT, counter="tiktoken:gpt-4o")
    assert (estimate(CHAT, counter="nobody:knows"), "bound") == (estimate(CHAT, counter="bytes"), "bound")


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(InvalidInput, match="approximate, exact, cached"):
        estimate(CHAT, "rough")  # type: ignore[arg-type]
    with pytest.raises(ProviderMissing):
        estimate(CHAT, counter="tiktoken:nobody-knows")


@pytest.mark.parametrize(
    ("messages", "most", "more", "told"),
    [
        ("hello", 300, {}, "give a list of messages"),
        (CHAT[0], 300, {}, "give a list of messages"),
        (None, 300, {}, "give a list of messages"),
        (["hello"], 300, {}, "is no message"),
        ([], "many", {}, "max_tokens='many'"),
        ([], True, {}, "max_tokens=True"),
        ([], 9, {"counter": 5}, "give a counter, its name"),
        ([], 9, {"tools": "search"}, "give a list of definitions"),
        ([], 9, {"tools": {"a": 1}}, "give a list of definitions"),
        ([], 9, {"tools": [1]}, "no definition of a tool"),
        ([], 9, {"tools": [None]}, "no definition of a tool"),
        ([], 9, {"tools": [{"nme": 1}]}, "no definition of a tool"),
        ([], 9, {"tools": [{"type": "function", "function": "find"}]}, "no definition of a tool"),
    ],
)
def test_what_cannot_be_counted_is_told_with_what_to_give(messages: Any, most: Any, more: Any, told: str) -> None:
    with pytest.raises(InvalidInput, match=re.escape(told)):
        check_fits(messages, most, **more)


@pytest.mark.parametrize("tool", [{"name": "find", "input_schema": {}}, {"type": "web_search"}])
def test_definitions_of_tools_may_have_other_shapes(tool: dict[str, Any]) -> None:
    assert not check_fits([], 5, tools=[tool])
