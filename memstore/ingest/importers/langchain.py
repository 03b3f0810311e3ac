"""Dumps of LangChain and LangGraph: lists of messages, one after the other, or the states and checkpoints of threads.

A message is what `messages_to_dict` writes (`{"type": "human", "data": {…}}`), what `dumpd` writes (`{"lc": 1, "id":
[…, "HumanMessage"], "kwargs": {…}}`), or a message's own fields beside its type. Lists of them may stand in `messages`,
also in a state's `values` or in `channel_values` of a checkpoint, beside the thread's id and the time of the state.

- The conversation is the thread, and where none is named, the file (`history.json`: "history").
- A message has no time: it has that of the first state that it is in, marked as inherited, else that of the import.
- A message is known by its id, else by its place in the list. States repeat their messages: each comes once.
- Content that is not text is named by its kind ("[image]"); thoughts and messages that only remove others are ignored.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from memstore.errors import InvalidInput

from .base import (
    DEFAULTS,
    Found,
    Ignored,
    Importer,
    ImportOptions,
    Message,
    count_seen,
    digest,
    make_storable,
    time_or_none,
)
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
# Where lists of messages, the thread and the time stand; the first of these places that there is counts.
_LISTS = ("messages", "values.messages", "channel_values.messages", "checkpoint.channel_values.messages")
_THREADS = (
    "thread_id",
    "session_id",
    "config.configurable.thread_id",
    "checkpoint.thread_id",
    "metadata.thread_id",
)
_STATES = {"values", "checkpoint", "channel_values"}
_TIMES = ("ts", "created_at", "checkpoint.ts")


class LangChain(Importer):
    """Dumps of LangChain and LangGraph."""

    name = "langchain"
    again = "write it anew with messages_to_dict or dumpd, as JSON"

    def __init__(self, path: Path, options: ImportOptions = DEFAULTS) -> None:
        super().__init__(path, options)
        self._states: list[tuple[str, str, Any]] = []  # time, place, and what holds messages
        self._single = 0  # messages that stand by themselves: together they are one list

    @staticmethod
    def likeness(head: bytes) -> float:
        """Return 0.85 for messages with LangChain's types."""
        keys = find_keys(head)
        if head[:1] not in (b"{", b"[") or "type" not in keys:
            return 0.0
        marks = any(f'"{kind}"'.encode() in head for kind in ("human", "ai", "HumanMessage", "AIMessage"))
        return 0.85 if marks and ({"data", "kwargs", "content", "messages"} & keys) else 0.0

    def read(self) -> Iterator[Found]:
        """Yield the messages, of states the oldest first: they are held until all are read."""
        yield from super().read()
        for _, where, state in sorted(self._states, key=lambda state: state[0]):
            yield from self.report_damage(self._messages(state, where), where)

    def convert(self, value: Any, where: str) -> Iterator[Found]:
        """Hold a state or a message until all are read."""
        if _kind_and_fields(value)[0] in (*ROLES, "chat", "remove"):
            value, self._single = {"messages": [value], "first": self._single}, self._single + 1
        when = time_or_none(_at(value, _TIMES))
        state = {"messages": value} if isinstance(value, list) else value
        self._states.append((when.isoformat() if when else "", where, state))
        yield from ()

    def _messages(self, state: dict[str, Any], where: str) -> Iterator[Found]:
        """Yield the messages of one list or state that no earlier one had."""
        messages = _at(state, _LISTS)
        if messages is None:
            if _STATES & state.keys():
                return  # the first state of a thread, where nothing is said yet
            raise InvalidInput("it is no message, and holds no list of them")
        conversation = make_storable(_at(state, _THREADS) or self.path.name.split(".")[0] or "langchain")[0]
        when = time_or_none(_at(state, _TIMES))
        for number, given in enumerate(messages, state.get("first", 0) + 1):
            at = where if len(messages) == 1 else f"{where}, message {number}"
            kind, fields = _kind_and_fields(given)
            key = fields.get("id") or f"turn:{number}"
            if count_seen(digest([conversation, key, given]), self.seen) == 1:
                yield from self.records(_convert(kind, fields, key), at, conversation, None, when)


def _convert(kind: str, fields: dict[str, Any], key: str) -> Iterator[Message | Ignored]:
    if kind == "remove":
        yield Ignored("messages that remove others")
        return
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


def _at(given: Any, places: tuple[str, ...]) -> Any:
    """Return what stands in the first of these places that there is."""
    for place in places:
        here = given
        for key in place.split("."):
            here = here.get(key) if isinstance(here, dict) else None
        if here is not None:
            return here
    return None
