"""Training data, a conversation a line or in a list: OpenAI's fine-tuning files, and ShareGPT.

    {"messages": [{"role", "content", …}], "tools": […]}          {"id", "conversations": [{"from": "human", "value"}]}

Neither knows times: all messages have that of the import, and `{"occurred_at": "imported"}` in their metadata. A
conversation is named by its id, which some files give twice, or by a digest of what it says; a message by its place.
Roles, names, calls of tools and system messages are kept, `weight` in the metadata; an image is "[image]"; definitions
of tools are ignored. ShareGPT's `function_call` is a call of a tool, its `observation` what the tool gave.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from memstore.errors import InvalidInput

from .base import (
    DEFAULTS,
    Found,
    Ignored,
    Importer,
    ImportOptions,
    Record,
    count_seen,
    derive_name,
    printable,
    report_damage,
    with_time,
)
from .chat_messages import convert_message
from .files import ONE_FILE, first_head, read_parts
from .json_stream import convert_values, find_keys

OPENAI_ROLES = {"function": "tool"} | {role: role for role in ("system", "developer", "user", "assistant", "tool")}
SHAREGPT_ROLES = {
    "human": "user",
    "user": "user",
    "gpt": "assistant",
    "chatgpt": "assistant",
    "bing": "assistant",
    "bard": "assistant",
    "model": "assistant",
    "assistant": "assistant",
    "function_call": "assistant",
    "system": "system",
    "tool": "tool",
    "observation": "tool",
    "function_response": "tool",
}


@dataclass(frozen=True, slots=True)
class _Dataset:
    """What is particular to a kind of training data."""

    key: str  # of the list of messages
    keys: set[str]  # that a file of it has
    unit: str  # what it calls a message
    name: Callable[[dict[str, Any], Counter[bytes]], str]
    convert: Callable[[dict[str, Any], str], Iterator[dict[str, Any] | Ignored]]
    again: str


def _sniff(path: Path, data: _Dataset, likeness: float) -> float:
    start = first_head(path, ONE_FILE)
    return likeness if start[:1] in (b"{", b"[") and data.keys <= find_keys(start) else 0.0


def _read(path: Path, options: ImportOptions = DEFAULTS, *, data: _Dataset) -> Iterator[Found]:
    """Yield the messages of each conversation."""
    convert = partial(_conversation, data=data, seen=Counter())
    read = partial(convert_values, unit="item", again=data.again, convert=convert)
    return read_parts(path, ONE_FILE, options, read, data.again)


def _conversation(given: dict[str, Any], where: str, data: _Dataset, seen: Counter[bytes]) -> Iterator[Found]:
    messages = given[data.key]
    if given.get("tools") or given.get("functions"):
        yield Ignored("definitions of tools")
    name = data.name(given, seen)
    if isinstance(given.get("system"), str):
        messages = [{"from": "system", "role": "system", "value": given["system"]}, *messages]
    for number, message in enumerate(messages, 1):
        at = f"{where}, {data.unit} {number}"
        for one in report_damage(data.convert(message, f"turn:{number}"), at, data.again):
            if isinstance(one, dict):
                yield Record(conversation=name, message=with_time(one, None, None), where=at)
            else:
                yield one


def _convert_openai(given: dict[str, Any], external_id: str) -> Iterator[dict[str, Any] | Ignored]:
    role = given.get("role")
    if role not in OPENAI_ROLES:
        raise InvalidInput(f"its role ({printable(str(role))}) is none of {', '.join(OPENAI_ROLES)}")
    for one in convert_message(OPENAI_ROLES[role], given, external_id):
        if isinstance(one, dict) and given.get("weight") in (0, 1):
            one["metadata"]["weight"] = int(given["weight"])
        yield one


def _sharegpt_name(given: dict[str, Any], seen: Counter[bytes]) -> str:
    if given.get("id") in (None, ""):
        return derive_name(given["conversations"], "sharegpt", seen)
    key = str(given["id"])
    count = count_seen(f"id {key}", seen)
    return key if count == 1 else f"{key}-{count}"


def _convert_sharegpt(given: dict[str, Any], external_id: str) -> Iterator[dict[str, Any] | Ignored]:
    sender = given.get("from", given.get("role"))
    if sender not in SHAREGPT_ROLES:
        raise InvalidInput(f"it is from nobody known ({printable(str(sender))}) but {', '.join(SHAREGPT_ROLES)}")
    said = given.get("value", given.get("content"))
    message = _tool_calls(said) if sender == "function_call" else {"content": said}
    yield from convert_message(SHAREGPT_ROLES[sender], message, external_id)


def _tool_calls(value: Any) -> dict[str, Any]:
    """Return the calls of tools that a text holds, or the text as it stands."""
    try:
        calls = json.loads(value) if isinstance(value, str) else value
    except ValueError:
        return {"content": value}
    calls = calls if isinstance(calls, list) else [calls]
    are_calls = all(isinstance(call, dict) and isinstance(call.get("name"), str) for call in calls)
    return {"tool_calls": calls} if calls and are_calls else {"content": value}


_OPENAI = _Dataset(
    key="messages",
    keys={"messages", "role"},
    unit="message",
    name=lambda given, seen: derive_name(given["messages"], "training", seen),
    convert=_convert_openai,
    again='write each conversation as one JSON object on a line of its own, {"messages": […]}',
)
_SHAREGPT = _Dataset(
    key="conversations",
    keys={"conversations", "from", "value"},
    unit="turn",
    name=_sharegpt_name,
    convert=_convert_sharegpt,
    again='write each conversation as {"id": …, "conversations": [{"from": "human", "value": "…"}]}',
)
OPENAI = Importer("openai", partial(_sniff, data=_OPENAI, likeness=0.8), partial(_read, data=_OPENAI))
SHAREGPT = Importer("sharegpt", partial(_sniff, data=_SHAREGPT, likeness=0.85), partial(_read, data=_SHAREGPT))
