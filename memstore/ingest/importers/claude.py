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

from .base import DEFAULTS, Found, Ignored, Importer, ImportOptions, make_storable, time_or_none
from .chat_messages import content_text
from .files import first_head
from .json_stream import find_keys
from .message_tree import CONVERSATIONS, Node, TreeFormat, read_conversations

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


def _nodes(given: dict[str, Any]) -> dict[str, Node]:
    nodes: dict[str, Node] = {}
    before = None
    for message in given["chat_messages"]:
        key, parent = message["uuid"], message.get("parent_message_uuid", before)
        time = time_or_none(message.get("created_at"))
        nodes.setdefault(key, Node(None if parent == ROOT else parent, time, message))
        before = key
    return nodes


def _convert(message: dict[str, Any], key: str) -> Iterator[dict[str, Any] | Ignored]:
    role = ROLES[message["sender"]]
    text, ignored = content_text(message.get("content"))
    yield from ignored
    if not text.strip() and not ignored:
        text = message.get("text") or ""
    text, kept = make_storable("\n\n".join(one for one in (text, *_attached(message)) if one.strip()))
    if text.strip():
        yield {"role": role, "content": text, "external_id": key, "metadata": kept}
    elif not ignored:
        yield Ignored("empty messages")


def _attached(message: dict[str, Any]) -> Iterator[str]:
    """Yield what was attached: its text under its name, or its name alone."""
    names = set()
    for file in [*(message.get("attachments") or ()), *(message.get("files") or ())]:
        name, content = file.get("file_name"), file.get("extracted_content")
        head = f"[file: {name}]" if name else "[file]"
        if content:
            yield f"{head}\n{content}"
        elif head not in names:
            yield head
        names.add(head)


FORMAT = TreeFormat(
    channel="claude",
    id_key="uuid",
    title_key="name",
    begun_key="created_at",
    current_key="current_leaf_message_uuid",
    nodes=_nodes,
    convert=_convert,
    again=AGAIN,
)
CLAUDE = Importer("claude", sniff, read)
