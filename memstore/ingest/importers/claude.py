"""The export of Claude: its zip, its folder, or a `conversations.json` out of it.

Exports of before 2025 name no parents: each message follows the one before it. A message has the texts of its
`content`, or without any its `text`. Attachments follow under the file's name, since one human message in ten is
nothing else. Each paragraph of `memories.json` is a memory, so that a change of one leaves the others known.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from memstore.models import ImportedMemory

from .base import IgnoredContent, ImportItem, Message, make_storable, time_or_none
from .chatgpt import MessageNode, TreeImporter
from .openai import content_text

_MEMORY = "conversations_memory"


class Claude(TreeImporter):
    name = "claude"
    files = (*TreeImporter.files, "memories.json", "memories/*.json")
    advice = "ask Claude for the export again, and import the zip as it comes"
    keys = ("uuid", "name", "created_at", "current_leaf_message_uuid")

    @staticmethod
    def recognizes(value: Any) -> bool:
        return isinstance(value, dict) and (isinstance(value.get("chat_messages"), list) or _MEMORY in value)

    def convert(self, value: dict[str, Any], where: str) -> Iterator[ImportItem]:
        if _MEMORY not in value:
            yield from super().convert(value, where)
            return
        texts: list[tuple[str | None, ImportedMemory]] = [(value[_MEMORY], "saved memory")]
        texts += [(text, "project") for text in (value.get("project_memories") or {}).values()]
        for text, kind in texts:
            for paragraph in re.split(r"\n\s*\n", text or ""):
                if not _is_heading(paragraph.strip()):
                    self.memories.add(paragraph, kind, where, None)

    def _nodes(self, conversation: dict[str, Any]) -> dict[str, MessageNode]:
        nodes: dict[str, MessageNode] = {}
        before = None
        for message in filter(None, conversation["chat_messages"]):
            key, parent = message["uuid"], message.get("parent_message_uuid", before)
            time = time_or_none(message.get("created_at"))
            # The parent of a first message is no message.
            is_first = parent == "00000000-0000-4000-8000-000000000000"
            nodes.setdefault(key, MessageNode(None if is_first else parent, time, message))
            before = key
        return nodes

    def _convert_message(
        self, message: dict[str, Any], key: str, where: str, time: datetime | None
    ) -> Iterator[Message | IgnoredContent]:
        role = {"human": "user", "assistant": "assistant"}[message["sender"]]
        text, ignored = content_text(message.get("content"))
        yield from ignored
        if not text.strip() and not ignored:
            text = message.get("text") or ""
        text, kept = make_storable("\n\n".join(part for part in (text, *_attached(message)) if part.strip()))
        if text.strip():
            yield {"role": role, "content": text, "external_id": key, "metadata": kept}
        elif not ignored:
            yield IgnoredContent("empty messages")


def _is_heading(paragraph: str) -> bool:
    is_bold = paragraph.startswith("**") and paragraph.endswith("**") and paragraph.count("*") == 4
    return "\n" not in paragraph and (paragraph.startswith("#") or is_bold or not paragraph.strip("-"))


def _attached(message: dict[str, Any]) -> Iterator[str]:
    names = set()
    for file in filter(None, [*(message.get("attachments") or ()), *(message.get("files") or ())]):
        name, content = file.get("file_name"), file.get("extracted_content")
        head = f"[file: {name}]" if name else "[file]"
        if content:
            yield f"{head}\n{content}"
        elif head not in names:
            yield head
        names.add(head)
