"""Messages of LangChain: a list of them, or one after the other.

A message is what `messages_to_dict` writes (`{"type": "human", "data": {…}}`), what `dumpd` writes (`{"lc": 1, "id":
[…, "HumanMessage"], "kwargs": {…}}`), or a message's own fields and its type. A list may stand in `messages`. A message
is known by its id, else by its place in the conversation: a session's next list goes on, unless it begins with all that
came before.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from memstore.errors import InvalidInput

from .base import IgnoredContent, Importer, ImportItem, Message, digest, make_storable
from .files import OpenFile, printable
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
    name = "langchain"
    advice = "write it anew with messages_to_dict or dumpd, as JSON"

    def read_file(self, file: OpenFile) -> Iterator[ImportItem]:
        # The number of messages of each conversation, and their digest.
        self._read: dict[str, tuple[int, str]] = {}
        self._unnamed_lists = 0
        yield from super().read_file(file)

    @staticmethod
    def recognizes(value: Any) -> bool:
        pairs = map(_kind_and_fields, _messages(value) or ())
        return any(kind in ("human", "ai") and "content" in fields for kind, fields in pairs)

    def convert(self, value: Any, where: str) -> Iterator[ImportItem]:
        messages, about = _messages(value), value if isinstance(value, dict) else {}
        if messages is None:
            raise InvalidInput(f"it is no message, and holds no list of them; {self.advice}")
        is_list = len(messages) > 1 or "messages" in about or isinstance(value, list)
        conversation = self._name(about, is_list=is_list)
        count, before = self._read.get(conversation, (0, digest([])))
        if is_list and digest(messages[:count]) == before:
            count = 0  # a later state of the same list
        self._read[conversation] = count + len(messages), "" if count else digest(messages)
        for place, message in enumerate(messages, 1):
            at = where if len(messages) == 1 else f"{where}, message {place}"
            kind, fields = _kind_and_fields(message)
            key = str(fields.get("id") or f"turn:{count + place}")
            yield from self.records(_convert(kind, fields, key), at, conversation)

    def _name(self, about: dict[str, Any], *, is_list: bool) -> str:
        names = [about[key] for key in ("thread_id", "session_id") if about.get(key) not in (None, "")]
        if names:
            return make_storable(str(names[0]))[0]
        self._unnamed_lists += is_list
        name = make_storable(self.path.name.split(".")[0])[0] or "langchain"
        return name if self._unnamed_lists <= 1 or not is_list else f"{name}-{self._unnamed_lists}"


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


def _kind_and_fields(message: Any) -> tuple[str, dict[str, Any]]:
    """Return the kind of a message, such as "human", and its fields, whichever way it was written."""
    if not isinstance(message, dict):
        return "", {}
    if message.get("kwargs") and isinstance(path := message.get("id"), list):
        kind, fields = path[-1:], message["kwargs"]
    else:
        kind, fields = [message.get("type", message.get("role"))], message.get("data") or message
    name = str(*kind).removesuffix("Chunk").removesuffix("Message").lower()
    return name, fields if isinstance(fields, dict) else {}
