"""Training data, a conversation a line or in a list: OpenAI's fine-tuning files, and ShareGPT.

    {"messages": [{"role", "content", …}], "tools": […]}          {"id", "conversations": [{"from": "human", "value"}]}

Neither knows times: all messages have that of the import, and `{"occurred_at": "imported"}` in their metadata. A
conversation is named by its id, which some files give twice, or by a digest of what it says; a message by its place.
Roles, names, calls of tools and system messages are kept, `weight` in the metadata; an image is "[image]"; definitions
of tools are ignored. ShareGPT's `function_call` is a call of a tool, its `observation` what the tool gave.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from memstore.errors import InvalidInput

from .base import DEFAULTS, Found, Ignored, Importer, ImportOptions, Record, Skipped, describe, is_id, with_time
from .chat_messages import convert_message
from .external_sort import Occurrences, derive_name
from .files import ONE_FILE, Part, first_head, read_parts
from .json_stream import find_keys, numbered_values

OPENAI_AGAIN = 'write each conversation as one JSON object on a line of its own, {"messages": […]}'
OPENAI_ROLES = {"function": "tool"} | {role: role for role in ("system", "developer", "user", "assistant", "tool")}
SHAREGPT_AGAIN = 'write each conversation as {"id": …, "conversations": [{"from": "human", "value": "…"}]}'
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
Converted = tuple[dict[str, Any] | None, list[Ignored]]


def sniff_openai(path: Path) -> float:
    """Return 0.8 for an object with messages that have roles."""
    start = first_head(path, ONE_FILE)
    return 0.8 if start[:1] in (b"{", b"[") and {"messages", "role"} <= find_keys(start) else 0.0


def read_openai(path: Path, options: ImportOptions = DEFAULTS) -> Iterator[Found]:
    """Yield the messages of each line's conversation."""
    with Occurrences() as seen:
        yield from read_parts(path, ONE_FILE, options, partial(_openai_part, seen=seen), OPENAI_AGAIN)


def _openai_part(part: Part, *, seen: Occurrences) -> Iterator[Found]:
    for one in numbered_values(part, OPENAI_AGAIN):
        if isinstance(one, Skipped):
            yield one
            continue
        where, given = one
        messages = given.get("messages") if isinstance(given, dict) else None
        if not isinstance(messages, list):
            yield Skipped(where, f"it is no object with a list of messages; {OPENAI_AGAIN}")
            continue
        if given.get("tools") or given.get("functions"):
            yield Ignored("definitions of tools")
        name = derive_name(messages, "training", seen)
        for number, message in enumerate(messages, 1):
            yield from _records(message, number, _convert_openai, name, f"{where}, message {number}")


def _records(
    given: Any, number: int, convert: Callable[[Any, str], Converted], conversation: str, where: str
) -> Iterator[Found]:
    try:
        message, ignored = convert(given, f"turn:{number}")
    except InvalidInput as error:
        yield Skipped(where, str(error))
        return
    yield from ignored
    if message is not None:
        yield Record(conversation=conversation, message=with_time(message, None, None), where=where)


def _convert_openai(given: Any, external_id: str) -> Converted:
    if not isinstance(given, dict):
        raise InvalidInput(f"it is no object but {describe(given)}; {OPENAI_AGAIN}")
    role = OPENAI_ROLES.get(describe(given.get("role")))
    if role is None:
        raise InvalidInput(f"its role ({describe(given.get('role'))}) is none of {', '.join(OPENAI_ROLES)}")
    message, ignored = convert_message(role, given, external_id)
    if message is not None and given.get("weight") in (0, 1):
        message["metadata"]["weight"] = int(given["weight"])
    return message, ignored


def sniff_sharegpt(path: Path) -> float:
    """Return 0.85 for conversations whose turns say from whom they are."""
    start = first_head(path, ONE_FILE)
    return 0.85 if start[:1] in (b"{", b"[") and {"conversations", "from", "value"} <= find_keys(start) else 0.0


def read_sharegpt(path: Path, options: ImportOptions = DEFAULTS) -> Iterator[Found]:
    """Yield the turns of each conversation."""
    with Occurrences() as seen:
        yield from read_parts(path, ONE_FILE, options, partial(_sharegpt_part, seen=seen), SHAREGPT_AGAIN)


def _sharegpt_part(part: Part, *, seen: Occurrences) -> Iterator[Found]:
    for one in numbered_values(part, SHAREGPT_AGAIN):
        if isinstance(one, Skipped):
            yield one
            continue
        where, given = one
        turns = given.get("conversations") if isinstance(given, dict) else None
        if not isinstance(turns, list):
            yield Skipped(where, f"it is no object with a list of conversations; {SHAREGPT_AGAIN}")
            continue
        name = _sharegpt_name(given.get("id"), turns, seen)
        if isinstance(given.get("system"), str):
            turns = [{"from": "system", "value": given["system"]}, *turns]
        if given.get("tools"):
            yield Ignored("definitions of tools")
        for number, turn in enumerate(turns, 1):
            yield from _records(turn, number, _convert_sharegpt, name, f"{where}, turn {number}")


def _sharegpt_name(given: object, turns: list[Any], seen: Occurrences) -> str:
    key = str(given) if isinstance(given, int) and not isinstance(given, bool) and abs(given) < 1 << 64 else given
    if not is_id(key):
        return derive_name(turns, "sharegpt", seen)
    count = seen.count(f"id {key}")
    return key if count == 1 else f"{key}-{count}"


def _convert_sharegpt(given: Any, external_id: str) -> Converted:
    if not isinstance(given, dict):
        raise InvalidInput(f"it is no object but {describe(given)}; {SHAREGPT_AGAIN}")
    sender = describe(given.get("from", given.get("role")))
    if sender not in SHAREGPT_ROLES:
        raise InvalidInput(f"it is from nobody known ({sender}) but {', '.join(SHAREGPT_ROLES)}")
    said = given.get("value", given.get("content"))
    message = _tool_calls(said) if sender == "function_call" else {"content": said}
    return convert_message(SHAREGPT_ROLES[sender], message, external_id)


def _tool_calls(value: Any) -> dict[str, Any]:
    """Return the calls of tools that a text holds, or the text as it stands."""
    try:
        calls = json.loads(value) if isinstance(value, str) else value
    except (ValueError, RecursionError):
        return {"content": value}
    calls = calls if isinstance(calls, list) else [calls]
    if not calls or not all(isinstance(call, dict) and isinstance(call.get("name"), str) for call in calls):
        return {"content": value if isinstance(value, str) else None}
    return {"tool_calls": calls}


OPENAI = Importer("openai", sniff_openai, read_openai)
SHAREGPT = Importer("sharegpt", sniff_sharegpt, read_sharegpt)
