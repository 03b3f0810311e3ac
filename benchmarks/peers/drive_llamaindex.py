"""LlamaIndex's `Memory`: messages put as they come, `get` before the model is called, as its documentation does.

    default   all defaults: its tokenizer (cl100k_base), 0.7 of the limit for the chat, 3,000 tokens flushed at once
    o200k     the same with `tokenizer_fn` over o200k_base
    tuned     the most that its options give: o200k_base and 4 more for each text, which is what a message costs beside
              it; the whole limit for the chat where there are no blocks; flushed message by message; and the system
              prompt kept out of the memory by the caller, who takes its tokens off the limit

The system prompt is a StaticMemoryBlock of priority 0 (the documented place of what must always be there), facts are
those of a FactExtractionMemoryBlock of priority 1, whose model is a mock: nothing is extracted from what is flushed.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Any

import tiktoken
from lines import Json, serve
from llama_index.core.base.llms.types import ChatMessage, TextBlock, ToolCallBlock
from llama_index.core.llms import MockLLM
from llama_index.core.memory import FactExtractionMemoryBlock, Memory, StaticMemoryBlock
from llama_index.core.utils import get_tokenizer
from measure import PER_MESSAGE, chat_tokens

VARIANT = sys.argv[1]
PUTS = 24  # a long history is put in about so many parts: every put reads all of the queue again
ROLE, REPLY = 1, 3


def tokenizer() -> Callable[[str], list[int]]:
    """Give the variant's tokenizer; answers are kept, which changes nothing but the time."""
    if VARIANT == "default":
        return lru_cache(maxsize=None)(get_tokenizer())
    encode = tiktoken.get_encoding("o200k_base").encode_ordinary
    around = [0] * (PER_MESSAGE + ROLE) if VARIANT == "tuned" else []
    return lru_cache(maxsize=None)(lambda text: around + encode(text))


TOKENIZER = tokenizer()


def memory_for(case: Json) -> Memory:
    """Give an empty memory for a case."""
    options: dict[str, Any] = {"token_limit": case["budget"]}
    blocks: list[Any] = []
    if case["system"] and VARIANT != "tuned":
        blocks.append(StaticMemoryBlock(name="core_info", static_content=case["system"], priority=0))
    if case["facts"]:
        facts = {"facts": case["facts"], "max_facts": 50}
        blocks.append(FactExtractionMemoryBlock(name="extracted_info", llm=MockLLM(), priority=1, **facts))
    if VARIANT == "tuned":
        options["token_limit"] = max(1, case["budget"] - (chat_tokens(system_of(case)) if case["system"] else REPLY))
        options["token_flush_size"] = 1
        options |= {} if blocks else {"chat_history_token_ratio": 1.0}
    return Memory.from_defaults(session_id=case["id"], memory_blocks=blocks, tokenizer_fn=TOKENIZER, **options)


async def remembered(case: Json) -> list[Json]:
    memory = memory_for(case)
    messages = [read(message) for message in case["messages"]]
    last = max(n for n, message in enumerate(messages) if message.role == "user")
    for part in parts(messages[:last]):
        await memory.aput_messages(part)
    for message in messages[last:]:
        await memory.aput(message)
    return [*(system_of(case) if VARIANT == "tuned" else []), *map(written, await memory.aget())]


def system_of(case: Json) -> list[Json]:
    return [{"role": "system", "content": case["system"]}] if case["system"] else []


def parts(messages: Sequence[ChatMessage]) -> Iterator[list[ChatMessage]]:
    """Give the messages in parts that begin with a user's."""
    part: list[ChatMessage] = []
    for message in messages:
        if message.role == "user" and len(part) >= len(messages) / PUTS:
            yield part
            part = []
        part.append(message)
    if part:
        yield part


def read(message: Json) -> ChatMessage:
    """Give a message as LlamaIndex's integration of OpenAI's chat API does: calls as blocks, and beside them."""
    calls = message.get("tool_calls", [])
    blocks: list[Any] = [TextBlock(text=message["content"])] if message["content"] else []
    for call in calls:
        name, arguments = call["function"]["name"], call["function"]["arguments"]
        blocks.append(ToolCallBlock(tool_call_id=call["id"], tool_name=name, tool_kwargs=arguments))
    more = {"tool_calls": calls} if calls else {}
    more |= {"tool_call_id": message["tool_call_id"]} if "tool_call_id" in message else {}
    return ChatMessage(role=message["role"], blocks=blocks, additional_kwargs=more)


def written(message: ChatMessage) -> Json:
    """Give a message as that integration sends it."""
    calls = [block for block in message.blocks if isinstance(block, ToolCallBlock)]
    given: Json = {"role": str(message.role.value), "content": message.content or ""}
    if calls:
        given["tool_calls"] = [
            {
                "id": call.tool_call_id,
                "type": "function",
                "function": {"name": call.tool_name, "arguments": call.tool_kwargs},
            }
            for call in calls
        ]
    if "tool_call_id" in message.additional_kwargs:
        given["tool_call_id"] = message.additional_kwargs["tool_call_id"]
    return given


if __name__ == "__main__":
    with asyncio.Runner() as runner:
        serve(["llama-index-core", "tiktoken"], lambda case: runner.run(remembered(case)))
