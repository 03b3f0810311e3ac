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
    Skipped,
    describe,
    is_id,
    make_storable,
    time_or_none,
    with_time,
)
from .chat_messages import convert_message
from .external_sort import Occurrences, digest, in_order
from .files import ONE_FILE, first_head, read_parts
from .json_stream import find_keys, numbered_values

AGAIN = "write it anew with messages_to_dict or dumpd, as JSON"
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
    "conversation_id",
    "configurable.thread_id",
    "config.configurable.thread_id",
    "checkpoint.thread_id",
    "metadata.thread_id",
)
_STATES = {"values", "checkpoint", "channel_values"}
_TIMES = ("ts", "created_at", "checkpoint.ts")


def sniff(path: Path) -> float:
    """Return 0.85 for messages with LangChain's types."""
    start = first_head(path, ONE_FILE)
    keys = find_keys(start)
    if start[:1] not in (b"{", b"[") or "type" not in keys:
        return 0.0
    marks = any(f'"{kind}"'.encode() in start for kind in ("human", "ai", "HumanMessage", "AIMessage"))
    return 0.85 if marks and ({"data", "kwargs", "content", "messages"} & keys) else 0.0


def read(path: Path, options: ImportOptions = DEFAULTS) -> Iterator[Found]:
    """Yield the messages, of states the oldest first."""
    rows = _rows(read_parts(path, ONE_FILE, options, partial(numbered_values, again=AGAIN), AGAIN))
    with Occurrences() as seen:
        for _, (where, given, reason) in in_order(rows):
            if reason is not None:
                yield Skipped(where, reason)
            else:
                yield from _messages(given, where, path.name.split(".")[0] or "langchain", seen)


def _rows(found: Iterator[tuple[str, Any] | Skipped]) -> Iterator[tuple[str, Any]]:
    """Yield lists of messages under the time of their state, or why there is none; single messages are one list."""
    number = 0
    for one in found:
        if isinstance(one, Skipped):
            yield "", (one.where, None, one.reason)
            continue
        where, given = one
        if _is_message(given):
            yield "", (where, {"messages": [given], "first": number}, None)
            number += 1
            continue
        when = time_or_none(_at(given, _TIMES))
        state = {"messages": given} if isinstance(given, list) else given
        yield (when.isoformat() if when else ""), (where, state, None)


def _messages(state: Any, where: str, otherwise: str, seen: Occurrences) -> Iterator[Found]:
    """Yield the messages of one list or state that no earlier one had."""
    messages = _at(state, _LISTS)
    if messages is None and isinstance(state, dict) and _STATES & state.keys():
        return  # the first state of a thread, where nothing is said yet
    if not isinstance(messages, list):
        yield Skipped(where, f"it is no message, and holds no list of them; {AGAIN}")
        return
    thread = _at(state, _THREADS)
    conversation = thread if is_id(thread) else make_storable(otherwise)[0]
    when, first = time_or_none(_at(state, _TIMES)), state.get("first", 0)
    for number, given in enumerate(messages, first + 1):
        at = where if len(messages) == 1 else f"{where}, message {number}"
        try:
            message, ignored = _message(given, f"turn:{number}")
        except InvalidInput as error:
            yield Skipped(at, str(error))
            continue
        known = [conversation, message and message["external_id"], digest(given)]
        if seen.count(digest(known)) > 1:
            continue
        yield from ignored
        if message is not None:
            yield Record(conversation=conversation, message=with_time(message, None, when), where=at)


def _message(given: Any, place: str) -> tuple[dict[str, Any] | None, list[Ignored]]:
    kind, fields = _kind_and_fields(given)
    if kind == "remove":
        return None, [Ignored("messages that remove others")]
    kind = describe(fields.get("role")).lower() if kind == "chat" else kind
    if kind not in ROLES:
        raise InvalidInput(f"its type ({kind}) is none of {', '.join(ROLES)}; {AGAIN}")
    own = fields.get("id")
    return convert_message(ROLES[kind], fields, own if is_id(own) else place)


def _kind_and_fields(given: Any) -> tuple[str, dict[str, Any]]:
    """Return the kind of a message, such as "human", and its fields, whichever way it was written."""
    if not isinstance(given, dict):
        raise InvalidInput(f"it is no object but {describe(given)}; {AGAIN}")
    if isinstance(given.get("kwargs"), dict) and isinstance(given.get("id"), list):
        name = describe(given["id"][-1] if given["id"] else None)
        return name.removesuffix("Chunk").removesuffix("Message").lower(), given["kwargs"]
    fields = given["data"] if isinstance(given.get("data"), dict) else given
    kind = describe(given.get("type", given.get("role")))
    return kind.removesuffix("Chunk").removesuffix("Message").lower(), fields


def _is_message(given: Any) -> bool:
    try:
        kind, _ = _kind_and_fields(given)
    except InvalidInput:
        return False
    return kind in ROLES or kind in ("chat", "remove")


def _at(given: Any, places: tuple[str, ...]) -> Any:
    """Return what stands in the first of these places that there is."""
    for place in places:
        here = given
        for key in place.split("."):
            here = here.get(key) if isinstance(here, dict) else None
        if here is not None:
            return here
    return None


LANGCHAIN = Importer("langchain", sniff, read)
