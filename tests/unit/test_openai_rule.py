"""OpenAI's rule for chats against an implementation of its own, and tools against the formula known for them."""

from __future__ import annotations

import random
from typing import Any

import pytest
import tiktoken as library

from memstore.providers.tiktoken import TiktokenCounter, _encoding, load

WORDS = [
    "ferry",
    "Ischia",
    "去伊斯基亚",
    "Fähre",
    "\n\n",
    "  ",
    "def f(x):",
    "👩‍👩‍👧",
    "<|endoftext|>",
    "3.14159",
    "don't",
    "\ud800",
]


def published(messages: list[dict[str, str]], encoding: library.Encoding) -> int:
    """Count as OpenAI's cookbook does ("How to count tokens with tiktoken"), for gpt-4o and gpt-4.

    Each message is 3 tokens and the tokens of each of its values; a name is 1 more; every reply is primed with 3.
    """
    total = 0
    for message in messages:
        total += 3
        for key, value in message.items():
            total += len(encoding.encode(value, disallowed_special=()))
            if key == "name":
                total += 1
    return total + 3


def chats(seed: int, number: int) -> list[list[dict[str, str]]]:
    drawn = random.Random(seed)

    def text() -> str:
        return drawn.choice(["", " "]).join(drawn.choices(WORDS, k=drawn.randrange(12)))

    def message() -> dict[str, str]:
        made = {"role": drawn.choice(["system", "user", "assistant", "developer"]), "content": text()}
        return made | ({"name": text()} if drawn.random() < 0.3 else {})

    return [[message() for _ in range(drawn.randrange(8))] for _ in range(number)]


@pytest.mark.parametrize("name", ["o200k_base", "cl100k_base"])
def test_chats_count_as_the_published_rule_says(name: str) -> None:
    counter, encoding = load(name), _encoding(name)
    for chat in chats(4, 5000):
        counted = counter.count_messages(chat)
        assert (counted, counted.kind) == (published(chat, encoding), "exact")


def tool(name: str, about: dict[str, str], properties: dict[str, dict[str, Any]]) -> dict[str, Any]:
    parameters = {"type": "object", "properties": properties, "required": list(properties)[:1]}
    return {"type": "function", "function": {"name": name, **about, "parameters": parameters}}


# Nothing but what is rendered: names alone, and choices of one token each.
BARE = [tool(f"f{n}", {}, {f"a{m}": {} for m in range(15)}) for n in range(5)]
CHOICES = [tool("f", {}, {"a": {"type": "string", "enum": list("abcdefghijklmnopqrstuvwxyz") * 4}})]


def cookbook(functions: list[dict[str, Any]], counter: TiktokenCounter, initial: int) -> int:
    """Count definitions of tools by the cookbook's constants: 7 a function for gpt-4o (10 for gpt-4), 12 at the end."""
    total = 12
    for function in (one["function"] for one in functions):
        total += initial + counter.count(f"{function['name']}:{function.get('description', '').removesuffix('.')}")
        properties = function["parameters"]["properties"]
        total += 3 if properties else 0
        for key, value in properties.items():
            total += 3
            if "enum" in value:
                total += -3 + sum(3 + counter.count(item) for item in value["enum"])
            total += counter.count(f"{key}:{value.get('type', '')}:{value.get('description', '').removesuffix('.')}")
    return total


@pytest.mark.parametrize(("name", "initial"), [("o200k_base", 7), ("cl100k_base", 10)])
@pytest.mark.parametrize("functions", [BARE, CHOICES], ids=["names alone", "choices of one token"])
def test_tools_count_as_more_than_the_known_formula_gives(
    name: str, initial: int, functions: list[dict[str, Any]]
) -> None:
    counter = load(name)
    counted = counter.count_messages([], functions) - counter.count_messages([])
    assert counted >= cookbook(functions, counter, initial)
