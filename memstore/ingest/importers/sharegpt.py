"""ShareGPT and what is written like it: `{"id", "conversations": [{"from": "human", "value": "…"}]}`, a list or JSONL.

Times there are none: all have that of the import, and `{"occurred_at": "imported"}` in their metadata. A conversation
is named by its id, which some files give twice, or by a digest of what it says; a message by its place in it. A
`function_call` is the assistant's call of a tool, an `observation` what the tool gave; `system` may stand beside.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from memstore.errors import InvalidInput

from .chat_message import chat_message
from .files import ONE_FILE, Part, first_head, read_parts
from .json_stream import keys_in, numbered_values
from .made_ids import made_name
from .reading import PLAINLY, Reading
from .records import Found, LeftOut, Record, Skipped, is_id, timed, word
from .scratch import Occurrences

AGAIN = 'write each conversation as {"id": …, "conversations": [{"from": "human", "value": "…"}]}'
ROLES = {
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
class ShareGPT:
    """Reads conversations as ShareGPT has them."""

    @property
    def name(self) -> str:
        """What `--format` calls it."""
        return "sharegpt"

    def sniff(self, path: Path) -> float:
        """Give 0.85 for conversations whose turns say from whom they are."""
        start = first_head(path, ONE_FILE)
        return 0.85 if start[:1] in (b"{", b"[") and {"conversations", "from", "value"} <= keys_in(start) else 0.0

    def read(self, path: Path, reading: Reading = PLAINLY) -> Iterator[Found]:
        """Give the turns of each conversation."""
        with Occurrences() as seen:
            yield from read_parts(path, ONE_FILE, reading, partial(_part, seen=seen), AGAIN)


def _part(part: Part, *, seen: Occurrences) -> Iterator[Found]:
    for one in numbered_values(part, AGAIN):
        if isinstance(one, Skipped):
            yield one
            continue
        where, given = one
        turns = given.get("conversations") if isinstance(given, dict) else None
        if not isinstance(turns, list):
            yield Skipped(where, f"it is no object with a list of conversations; {AGAIN}")
            continue
        name = _name(given, turns, seen)
        if isinstance(given.get("system"), str):
            turns = [{"from": "system", "value": given["system"]}, *turns]
        if given.get("tools"):
            yield LeftOut("definitions of tools")
        for number, turn in enumerate(turns, 1):
            yield from _turn(turn, name, number, f"{where}, turn {number}")


def _name(given: dict[str, Any], turns: list[Any], seen: Occurrences) -> str:
    own = given.get("id")
    own = str(own) if isinstance(own, int) and not isinstance(own, bool) and abs(own) < 1 << 64 else own
    if not is_id(own):
        return made_name(turns, "sharegpt", seen)
    count = seen.count(f"id {own}")
    return own if count == 1 else f"{own}-{count}"


def _turn(given: Any, conversation: str, number: int, where: str) -> Iterator[Found]:
    try:
        if not isinstance(given, dict):
            raise InvalidInput(f"it is no object but {word(given)}; {AGAIN}")
        sender = word(given.get("from", given.get("role")))
        if sender not in ROLES:
            raise InvalidInput(f"it is from nobody known ({sender}) but {', '.join(ROLES)}")
        said = {"content": given.get("value", given.get("content"))}
        if sender == "function_call":
            said = _called(said["content"])
        message, left_out = chat_message(ROLES[sender], said, f"turn:{number}")
    except InvalidInput as error:
        yield Skipped(where, str(error))
        return
    yield from left_out
    if message is not None:
        yield Record(user=None, conversation=conversation, message=timed(message, None, None), where=where)


def _called(value: Any) -> dict[str, Any]:
    """Give a call of a tool, or what is written in its place as it stands."""
    try:
        call = json.loads(value) if isinstance(value, str) else value
    except (ValueError, RecursionError):
        return {"content": value}
    calls = call if isinstance(call, list) else [call]
    if not calls or not all(isinstance(one, dict) and isinstance(one.get("name"), str) for one in calls):
        return {"content": value if isinstance(value, str) else None}
    return {"tool_calls": calls}
