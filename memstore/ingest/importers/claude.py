"""The export of Claude: its zip, its folder, or a `conversations.json` out of it.

Exports of before 2025 name no parents: each message follows the one before it. A message says what the texts of its
`content` say, or without any its `text`; what was attached to it follows, under the file's name, for one human message
in ten is nothing else. Thoughts, calls of tools (artifacts are such) and their results are ignored and counted, and so
are empty messages; projects and users are not read.
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
    Skipped,
    describe,
    is_id,
    make_storable,
    printable,
    time_or_none,
)
from .chat_messages import content_text
from .files import first_head
from .json_stream import find_keys
from .message_tree import CONVERSATIONS, Node, Tree, TreeFormat, read_conversations

AGAIN = "ask Claude for the export again, and import the zip as it comes"
ROOT = "00000000-0000-4000-8000-000000000000"  # the parent of a first message
ROLES = {"human": "user", "assistant": "assistant"}


def sniff(path: Path) -> float:
    """Return 0.95 for a list of conversations with `chat_messages`."""
    start = first_head(path, CONVERSATIONS)
    return 0.95 if start.startswith(b"[") and "chat_messages" in find_keys(start) else 0.0


def read(path: Path, options: ImportOptions = DEFAULTS) -> Iterator[Found]:
    """Yield the messages of all conversations, each from its beginning."""
    return read_conversations(path, options, FORMAT)


def _parse(given: dict[str, Any], where: str) -> Tree:
    if not isinstance(given.get("chat_messages"), list):
        raise InvalidInput(f"its messages (chat_messages) are missing; {AGAIN}")
    nodes: dict[str, Node] = {}
    skipped = []
    before = None
    for number, message in enumerate(given["chat_messages"], 1):
        at = f"{where}, message {number}"
        if not isinstance(message, dict):
            skipped.append(Skipped(at, f"it is not an object; {AGAIN}"))
        elif not is_id(key := message.get("uuid")):
            skipped.append(Skipped(at, f"it has no id that can be kept; {AGAIN}"))
        elif key in nodes:
            skipped.append(Skipped(at, f"its id ({printable(key)}) is that of an earlier one; {AGAIN}"))
        else:
            parent = message.get("parent_message_uuid", before)
            time = time_or_none(message.get("created_at"))
            nodes[key] = Node(None if parent == ROOT else parent, time, message)
            before = key
    current = given.get("current_leaf_message_uuid")
    return Tree(nodes, current, time_or_none(given.get("created_at")), skipped)


def _convert(message: dict[str, Any], key: str) -> Iterator[dict[str, Any] | Ignored]:
    role = ROLES.get(describe(message.get("sender")))
    if role is None:
        raise InvalidInput(f"its sender ({describe(message.get('sender'))}) is not known; {AGAIN}")
    try:
        text, ignored = content_text(message.get("content"))
    except InvalidInput as error:
        raise InvalidInput(f"{error}; {AGAIN}") from None
    yield from ignored
    if not text.strip() and not ignored and isinstance(message.get("text"), str):
        text = message["text"]
    text, kept = make_storable("\n\n".join(one for one in (text, *_attached(message)) if one.strip()))
    if text.strip():
        yield {"role": role, "content": text, "external_id": key, "metadata": kept}
    elif not ignored:
        yield Ignored("empty messages")


def _attached(message: dict[str, Any]) -> Iterator[str]:
    """Yield what was attached: its text under its name, or its name alone."""
    names = set()
    for key in ("attachments", "files"):
        files = message.get(key)
        for file in files if isinstance(files, list) else []:
            if not isinstance(file, dict):
                continue
            name, content = file.get("file_name"), file.get("extracted_content")
            head = f"[file: {name}]" if isinstance(name, str) and name.strip() else "[file]"
            if isinstance(content, str) and content.strip():
                yield f"{head}\n{content}"
            elif head not in names:
                yield head
            names.add(head)


FORMAT = TreeFormat(channel="claude", id_keys=("uuid",), title_key="name", parse=_parse, convert=_convert, again=AGAIN)
CLAUDE = Importer("claude", sniff, read)
