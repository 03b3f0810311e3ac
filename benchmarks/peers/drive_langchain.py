"""LangChain's `trim_messages`, with the options that its documentation gives for chat histories.

    approximate   token_counter="approximate": characters / 4, the documented default for the hot path
    tiktoken      the counter of its how-to guide: role and text of each message over o200k_base, 3 more each, 3 at last
    exact         a counter of ours that counts the messages in OpenAI's format, tool calls too, by the published rule

What is remembered stands in the system message, which `include_system=True` keeps.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

import tiktoken
from langchain_core.messages import BaseMessage, convert_to_openai_messages, trim_messages
from lines import Json, serve
from measure import chat_tokens

ROLES = {"human": "user", "ai": "assistant", "system": "system", "tool": "tool"}


def as_in_the_guide(messages: Sequence[BaseMessage]) -> int:
    """Count as the guide does: text contents only, and `encode` as it comes, which refuses special tokens."""
    encode = tiktoken.get_encoding("o200k_base").encode
    named = sum(1 + len(encode(one.name)) for one in messages if one.name)
    return 3 + named + sum(3 + len(encode(ROLES[one.type])) + len(encode(str(one.content))) for one in messages)


def by_the_rule(messages: Sequence[BaseMessage]) -> int:
    return chat_tokens(convert_to_openai_messages(messages))


COUNTERS = {"approximate": "approximate", "tiktoken": as_in_the_guide, "exact": by_the_rule}


def trimmed(case: Json) -> list[Json]:
    facts = "\n".join(["What is known:", *(f"- {fact}" for fact in case["facts"])]) if case["facts"] else None
    system = "\n\n".join(part for part in (case["system"], facts) if part)
    kept = trim_messages(
        [*([{"role": "system", "content": system}] if system else []), *case["messages"]],
        max_tokens=case["budget"],
        token_counter=COUNTERS[sys.argv[1]],
        strategy="last",
        start_on="human",
        end_on=("human", "tool"),
        include_system=True,
    )
    return convert_to_openai_messages(kept)


if __name__ == "__main__":
    serve(["langchain-core", "tiktoken"], trimmed)
