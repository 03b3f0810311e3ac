"""Messages of LangChain: a list of them, or one after the other.

A message is what `messages_to_dict` writes (`{"type": "human", "data": {…}}`), what `dumpd` writes (`{"lc": 1, "id":
[…, "HumanMessage"], "kwargs": {…}}`), or a message's own fields and its type. A list may stand in `messages`.

- The conversation is `session_id` or `thread_id`, and where none is named, the file (`history.json`: "history").
- A message has no time: it has that of the import. It is known by its id, else by its place in the list.
- Content that is not text is named by its kind ("[image]"); thoughts are ignored.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from memstore.errors import InvalidInput

from .base import DEFAULTS, IgnoredContent, Importer, ImportItem, ImportOptions, Message, make_storable
from .files import find_keys, printable
from .openai import convert_message

ROLES = {
    "human": "user",
    "user": "user",
    "ai": "assistant",
    "assistant": "assistant",
    "system": "system",
    "developer": "developer",
    "tool": "tool",
    "function": "tool",
}


class LangChain(Importer):
    """Messages of LangChain."""

    name = "langchain"
    advice = "write it anew with messages_to_dict or dumpd, as JSON"

    def __init__(self, path: Path, options: ImportOptions = DEFAULTS) -> None:
        super().__init__(path, options)
        self._single = 0  # messages that stand by themselves: together they are one list

    @staticmethod
    def rate_head(head: bytes) -> float:
        """Return 0.85 for messages with LangChain's types."""
        keys = find_keys(head)
        if head[:1] not in (b"{", b"[") or "type" not in keys:
            return 0.0
        marks = any(f'"{kind}"'.encode() in head for kind in ("human", "ai", "HumanMessage", "AIMessage"))
        return 0.85 if marks and ({"data", "kwargs", "content", "messages"} & keys) else 0.0

    def convert(self, value: Any, where: str) -> Iterator[ImportItem]:
        """Yield a message, or those of a list."""
        first, about = 1, value if isinstance(value, dict) else {}
        messages: Any = value if isinstance(value, list) else about.get("messages")
        if _kind_and_fields(value)[0] in (*ROLES, "chat"):
            self._single += 1
            first, messages = self._single, [value]
        if not isinstance(messages, list):
            raise InvalidInput("it is no message, and holds no list of them")
        named = about.get("thread_id") or about.get("session_id")
        conversation = make_storable(named or self.path.name.split(".")[0] or "langchain")[0]
        for number, given in enumerate(messages, first):
            at = where if len(messages) == 1 else f"{where}, message {number}"
            kind, fields = _kind_and_fields(given)
            yield from self.records(_convert(kind, fields, fields.get("id") or f"turn:{number}"), at, conversation)


def _convert(kind: str, fields: dict[str, Any], key: str) -> Iterator[Message | IgnoredContent]:
    kind = str(fields.get("role")).lower() if kind == "chat" else kind
    if kind not in ROLES:
        raise InvalidInput(f"its type ({printable(kind)}) is none of {', '.join(ROLES)}")
    yield from convert_message(ROLES[kind], fields, key)


def _kind_and_fields(given: Any) -> tuple[str, dict[str, Any]]:
    """Return the kind of a message, such as "human", and its fields, whichever way it was written."""
    if not isinstance(given, dict):
        return "", {}
    if given.get("kwargs") and given.get("id"):
        kind, fields = given["id"][-1], given["kwargs"]
    else:
        kind, fields = given.get("type", given.get("role")), given.get("data") or given
    return str(kind).removesuffix("Chunk").removesuffix("Message").lower(), fields
