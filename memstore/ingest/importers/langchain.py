"""Messages of LangChain: a list of them, or one after the other.

A message is what `messages_to_dict` writes (`{"type": "human", "data": {…}}`), what `dumpd` writes (`{"lc": 1, "id":
[…, "HumanMessage"], "kwargs": {…}}`), or a message's own fields and its type. A list may stand in `messages`.

- The conversation is `session_id` or `thread_id`, and where none is named, the file (`history.json`: "history").
- A message has no time: it has that of the import. It is known by its id, else by its place in the list.
- Content that is not text is named by its kind ("[image]"); thoughts are ignored.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from memstore.errors import InvalidInput

from .base import DEFAULTS, IgnoredContent, Importer, ImportItem, ImportOptions, Message, make_storable
from .files import printable
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

KINDS = (*ROLES, "chat")


class LangChain(Importer):
    """Messages of LangChain."""

    name = "langchain"
    advice = "write it anew with messages_to_dict or dumpd, as JSON"

    def __init__(self, path: Path, options: ImportOptions = DEFAULTS) -> None:
        super().__init__(path, options)
        self._single: Counter[Any] = Counter()  # of each conversation the messages that stand by themselves

    @staticmethod
    def recognizes(value: Any) -> bool:
        """Return whether a value is a message, a list of them, or has some."""
        found = map(_kind_and_fields, _messages(value) or ())
        return any(kind in ("human", "ai") and "content" in fields for kind, fields in found)

    def convert(self, value: Any, where: str) -> Iterator[ImportItem]:
        """Yield a message, or those of a list."""
        messages, about = _messages(value), value if isinstance(value, dict) else {}
        if messages is None:
            raise InvalidInput(f"it is no message, and holds no list of them; {self.advice}")
        named, first = about.get("thread_id") or about.get("session_id"), 1
        if len(messages) == 1 and "messages" not in about and isinstance(value, dict):
            self._single[named] += 1
            first = self._single[named]
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


def _messages(value: Any) -> list[Any] | None:
    """Return the messages of a value: of a list, of `messages`, of a table's row, or itself."""
    if isinstance(value, dict):
        kept = value.get("messages", value.get("message"))
        if isinstance(kept, dict) and _kind_and_fields(kept)[0] in KINDS:
            return [kept]
        if kept is None and _kind_and_fields(value)[0] in KINDS:
            return [value]
        value = kept
    return value if isinstance(value, list) else None


def _kind_and_fields(given: Any) -> tuple[str, dict[str, Any]]:
    """Return the kind of a message, such as "human", and its fields, whichever way it was written."""
    if not isinstance(given, dict):
        return "", {}
    if given.get("kwargs") and isinstance(path := given.get("id"), list):
        kind, fields = path[-1:], given["kwargs"]
    else:
        kind, fields = [given.get("type", given.get("role"))], given.get("data") or given
    name = str(*kind).removesuffix("Chunk").removesuffix("Message").lower()
    return name, fields if isinstance(fields, dict) else {}
