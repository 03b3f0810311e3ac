"""What token counters share: the texts of a message that are counted, and counts that are remembered."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import Any

from memstore.errors import InvalidInput

TEXT_PARTS = ("text", "input_text", "output_text")
MAX_COUNTS = 30_000  # of 150 bytes each; as many older ones stay until there are so many again
_TOOL = '{"type": "function", "function": {"name": "find", "parameters": {…}}}'


class CountCache:
    """Counts texts by `count`, each once while it is remembered. Safe to share by threads.

    A context is mostly made of what the one before it was made of. What is kept is a keyed digest of each text, 128
    bits with a key of this object alone: no word of a user may stay in memory after it was erased.
    """

    def __init__(self, count: Callable[[str], int]) -> None:
        self._count = count
        self._keyed = blake2b(key=os.urandom(32), digest_size=16)  # copied for each text: a third sooner than made anew
        self._counts: dict[bytes, int] = {}
        self._older: dict[bytes, int] = {}

    def __call__(self, text: str) -> int:
        """Return the number of tokens of a text, tokenized only where that is not known."""
        keyed = self._keyed.copy()
        keyed.update(text.encode("utf-8", "surrogatepass"))
        digest = keyed.digest()
        known = self._counts.get(digest)
        return self._learn(digest, text) if known is None else known

    def _learn(self, digest: bytes, text: str) -> int:
        older = self._older.get(digest)
        count = self._count(text) if older is None else older
        if len(self._counts) >= MAX_COUNTS:
            self._older, self._counts = self._counts, {}
        self._counts[digest] = count
        return count


def texts(message: Mapping[str, Any]) -> Iterator[str]:
    """Yield every value of a message as the text that is counted for it.

    A string is itself, None nothing, the parts of a list under "content" their texts; every other value (other parts,
    tool calls) is its compact JSON. Raises InvalidInput for a value that has no JSON.
    """
    for key, value in message.items():
        if value is None:
            continue
        if isinstance(value, str):
            yield value
        elif key == "content" and isinstance(value, list | tuple):
            yield from map(part_text, value)
        else:
            yield as_json(value)


def part_text(part: object) -> str:
    """Return what is counted of a part of a message; of one with more than its text, such as annotations, all of it."""
    if isinstance(part, str):
        return part
    if not isinstance(part, Mapping) or part.keys() != {"type", "text"} or not _is_text(part):
        return as_json(part)
    return str(part["text"])


def only_text(messages: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether all that these messages hold is text: what an image or a sound costs, no text of theirs says."""
    return not any(message.get("images") or message.get("audio") or _other_parts(message) for message in messages)


def _other_parts(message: Mapping[str, Any]) -> bool:
    content = message.get("content")
    parts = content if isinstance(content, list | tuple) else ()
    return any(not isinstance(part, str) and not _is_text(part) for part in parts)


def _is_text(part: object) -> bool:
    return isinstance(part, Mapping) and part.get("type") in TEXT_PARTS and isinstance(part.get("text"), str)


def as_json(value: object, indent: int | None = None) -> str:
    """Return the JSON of a value, compact or indented by so many blanks; raise InvalidInput where it has none."""
    try:
        return json.dumps(value, ensure_ascii=False, separators=None if indent else (",", ":"), indent=indent)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInput(f"A message holds a value that has no JSON, so it cannot be counted: {error}") from error


def check_tools(tools: object) -> None:
    """Raise InvalidInput for what is no list of definitions of tools, in whatever shape a model takes them."""
    if not isinstance(tools, list | tuple) or not all(isinstance(tool, Mapping) for tool in tools):
        raise InvalidInput(f"tools={tools!r:.60}: give a list of definitions, such as {_TOOL}.")
