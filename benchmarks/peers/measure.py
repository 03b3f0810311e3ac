"""The measure of all systems: tokens by OpenAI's published chat rule over o200k_base, and what an API would refuse.

Written from the rule ("How to count tokens with tiktoken" in OpenAI's cookbook), not from memstore's counter. The rule
says nothing of tool calls: they count as their compact JSON. `text_tokens` is what nobody can leave out: texts, and
names and arguments of calls, without any overhead.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from typing import Any

import tiktoken

PER_MESSAGE = PRIMED = 3
NAMED = 1


@cache
def _encoding() -> tiktoken.Encoding:
    return tiktoken.get_encoding("o200k_base")


@lru_cache(maxsize=100_000)
def tokens(text: str) -> int:
    """Give the tokens of a text, special tokens in it being plain text."""
    return len(_encoding().encode(text, disallowed_special=()))


def chat_tokens(messages: Sequence[dict[str, Any]]) -> int:
    """Give the tokens of a chat by the rule, the start of the reply included."""
    return PRIMED + sum(message_tokens(message) for message in messages)


def message_tokens(message: dict[str, Any]) -> int:
    """Give what one message adds to a chat."""
    total = PER_MESSAGE + (NAMED if message.get("name") else 0)
    for value in message.values():
        if isinstance(value, str):
            total += tokens(value)
        elif value:
            total += tokens(json.dumps(value, ensure_ascii=False, separators=(",", ":")))
    return total


def text_tokens(messages: Sequence[dict[str, Any]]) -> int:
    """Give the tokens of what was said, and of names and arguments of tool calls."""
    return sum(map(tokens, _texts(messages)))


def _texts(messages: Sequence[dict[str, Any]]) -> Iterator[str]:
    for message in messages:
        yield message["content"] or ""
        for call in message.get("tool_calls") or ():
            yield call["function"]["name"]
            yield call["function"]["arguments"]


def broken_pairs(messages: Sequence[dict[str, Any]]) -> int:
    """Give the results without their call just before, and the calls without their result just after."""
    broken, waiting = 0, set[str]()
    for message in messages:
        if message["role"] == "tool":
            broken += message.get("tool_call_id") not in waiting
            waiting.discard(message.get("tool_call_id", ""))
        else:
            broken += len(waiting)
            waiting = {call["id"] for call in message.get("tool_calls") or ()}
    return broken + len(waiting)
