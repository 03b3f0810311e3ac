"""The export of ChatGPT: its zip, its folder, or a `conversations.json` (`conversations-000.json`, …) out of it.

Ignored and counted, because the format itself hides it: system and tool messages, calls of tools, custom instructions,
the model's thoughts, empty messages, and whatever is marked hidden or has a weight of 0. An image is imported as
"[image]", a recording as its transcription. Characters that no database can keep become U+FFFD, with
`{"replaced": count}` in the metadata: nobody can be asked to mend an export by hand.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from memstore.errors import InvalidInput

from .base import Ignored, Message, make_storable, time_or_none
from .files import find_keys, printable
from .message_tree import Node, TreeImporter

_HIDDEN_ROLES = {
    "system": "system messages",
    "developer": "system messages",
    "tool": "results of tools",
}
_HIDDEN_CONTENT = {
    "thoughts": "thoughts of the model",
    "reasoning_recap": "thoughts of the model",
    "user_editable_context": "custom instructions",
    "model_editable_context": "custom instructions",
}
_POINTERS = {
    "image_asset_pointer": "[image]",
    "audio_asset_pointer": "[audio]",
    "real_time_user_audio_video_asset_pointer": "[audio]",
    "video_container_asset_pointer": "[video]",
}
# What the assistant's text refers to stands between private-use characters: a kind, then its fields.
_REFERENCE = re.compile("( ?)\ue200([a-z_]{0,40})\ue202?([^\ue200\ue201\n]*)\ue201")
_MARKS = re.compile("[\ue200-\ue206]")


class ChatGPT(TreeImporter):
    """ChatGPT's export."""

    name = "chatgpt"
    again = "ask ChatGPT for the export again, and import the zip as it comes"
    keys = ("conversation_id", "title", "create_time", "current_node")

    @staticmethod
    def likeness(head: bytes) -> float:
        """Return 0.9 for a list of trees, less where only the names of things fit."""
        keys = find_keys(head) if head.startswith(b"[") else set()
        if "mapping" in keys and "chat_messages" not in keys:
            return 0.9
        return 0.3 if "current_node" in keys or head[1:].strip() == b"]" else 0.0

    def nodes(self, conversation: dict[str, Any]) -> dict[str, Node]:
        """Return the messages of a conversation by id."""
        nodes = {}
        for key, node in conversation["mapping"].items():
            message = node.get("message") or None
            time = time_or_none(message.get("create_time")) if message else None
            nodes[key] = Node(node.get("parent"), time, message)
        return nodes

    def convert_message(self, message: dict[str, Any], key: str) -> Iterator[Message | Ignored]:
        """Yield what user and assistant said to each other."""
        author, metadata = message["author"], message.get("metadata") or {}
        role = author["role"]
        if hidden := _why_hidden(role, message, metadata):
            yield Ignored(hidden)
            return
        if role not in ("user", "assistant"):
            raise InvalidInput(f"its author's role ({printable(str(role))}) is not known")
        text, kept = make_storable(_text(message["content"], role))
        if not text.strip():
            yield Ignored("empty messages")
            return
        if metadata.get("model_slug"):
            kept["model"] = metadata["model_slug"]
        name = {"name": author["name"]} if author.get("name") else {}
        yield {"role": role, "content": text, "external_id": message.get("id") or key, "metadata": kept} | name


def _why_hidden(role: str, message: dict[str, Any], metadata: dict[str, Any]) -> str | None:
    if role in _HIDDEN_ROLES:
        return _HIDDEN_ROLES[role]
    if message.get("recipient") not in (None, "all"):
        return "calls of tools"
    if message.get("weight", 1) == 0 or metadata.get("is_visually_hidden_from_conversation"):
        return "hidden messages"
    return _HIDDEN_CONTENT.get(message["content"].get("content_type"))


def _text(content: dict[str, Any], role: str) -> str:
    found = content.get("parts")
    if isinstance(found, list):
        texts = [text for part in found if (text := _part_text(part))]
        # A recording stands beside its transcription.
        texts = [text for text in texts if text != "[audio]"] or texts[:1]
    else:
        texts = [content[key] for key in ("text", "result") if isinstance(content.get(key), str)][:1]
        if not texts:
            kind = printable(str(content.get("content_type")))
            raise InvalidInput(f"its kind of content ({kind}) is not known; report it, if it should be")
    text = "\n\n".join(texts)
    return _MARKS.sub("", _REFERENCE.sub(_visible, text)) if role == "assistant" else text


def _part_text(part: Any) -> str:
    if part is None or isinstance(part, str):
        return part or ""
    kind, text = part.get("content_type"), part.get("text")
    return text if isinstance(text, str) else _POINTERS.get(kind, f"[{kind}]")


def _visible(reference: re.Match[str]) -> str:
    """Return what a reader sees of a reference: a thing's or a link's name, and of a citation nothing."""
    space, kind, fields = reference.groups()
    if kind == "entity":
        try:
            return f"{space}{json.loads(fields)[1]}"
        except (ValueError, LookupError, TypeError):
            return space + fields
    return space + fields.split("\ue202")[0] if kind in ("url", "link_title") else ""
