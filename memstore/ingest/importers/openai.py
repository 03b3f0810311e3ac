"""OpenAI's fine-tuning JSONL: a conversation a line, `{"messages": [{"role", "content", …}], "tools": […]}`.

It knows neither times nor ids. A conversation is named by a digest of its messages, a message by its place in it; all
have the time of the import, and `{"occurred_at": "imported"}` in their metadata. Roles, names, calls of tools and
system messages are kept, `weight` in the metadata; an image is "[image]"; definitions of tools are left out.
"""

from __future__ import annotations

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
from .records import Found, LeftOut, Record, Skipped, timed, word
from .scratch import Occurrences

AGAIN = 'write each conversation as one JSON object on a line of its own, {"messages": […]}'
ROLES = {"function": "tool"} | {role: role for role in ("system", "developer", "user", "assistant", "tool")}


@dataclass(frozen=True, slots=True)
class OpenAI:
    """Reads conversations for fine-tuning, one line after the other."""

    @property
    def name(self) -> str:
        """What `--format` calls it."""
        return "openai"

    def sniff(self, path: Path) -> float:
        """Give 0.8 for an object with messages that have roles."""
        start = first_head(path, ONE_FILE)
        return 0.8 if start[:1] in (b"{", b"[") and {"messages", "role"} <= keys_in(start) else 0.0

    def read(self, path: Path, reading: Reading = PLAINLY) -> Iterator[Found]:
        """Give the messages of each line's conversation."""
        with Occurrences() as seen:
            yield from read_parts(path, ONE_FILE, reading, partial(_part, seen=seen), AGAIN)


def _part(part: Part, *, seen: Occurrences) -> Iterator[Found]:
    for one in numbered_values(part, AGAIN):
        if isinstance(one, Skipped):
            yield one
            continue
        where, given = one
        messages = given.get("messages") if isinstance(given, dict) else None
        if not isinstance(messages, list):
            yield Skipped(where, f"it is no object with a list of messages; {AGAIN}")
            continue
        if given.get("tools") or given.get("functions"):
            yield LeftOut("definitions of tools")
        name = made_name(messages, "training", seen)
        for number, message in enumerate(messages, 1):
            yield from _message(message, name, number, f"{where}, message {number}")


def _message(given: Any, conversation: str, number: int, where: str) -> Iterator[Found]:
    try:
        if not isinstance(given, dict):
            raise InvalidInput(f"it is no object but {word(given)}; {AGAIN}")
        role = ROLES.get(word(given.get("role")))
        if role is None:
            raise InvalidInput(f"its role ({word(given.get('role'))}) is none of {', '.join(ROLES)}")
        message, left_out = chat_message(role, given, f"turn:{number}")
    except InvalidInput as error:
        yield Skipped(where, str(error))
        return
    yield from left_out
    if message is not None:
        if given.get("weight") in (0, 1):
            message["metadata"]["weight"] = int(given["weight"])
        yield Record(user=None, conversation=conversation, message=timed(message, None, None), where=where)
