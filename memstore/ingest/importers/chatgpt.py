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
from pathlib import Path
from typing import Any

from memstore.errors import InvalidInput

from .base import (
    DEFAULTS,
    Found,
    Ignored,
    Importer,
    ImportOptions,
    describe,
    is_id,
    make_storable,
    time_or_none,
)
from .files import first_head, is_zip, list_names
from .json_stream import find_keys
from .message_tree import CONVERSATIONS, Node, Tree, TreeFormat, read_conversations

AGAIN = "ask ChatGPT for the export again, and import the zip as it comes"

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


def sniff(path: Path) -> float:
    """Return 0.9 for a list of trees, less where only the names of things fit."""
    start = first_head(path, CONVERSATIONS)
    if not start.startswith(b"["):
        # Of a zip that is cut off nobody can say what it held; reading it says what is wrong.
        return 0.1 if is_zip(path) and not list_names(path) else 0.0
    keys = find_keys(start)
    if "mapping" in keys and "chat_messages" not in keys:
        return 0.9
    return 0.3 if "current_node" in keys or start[1:].strip() == b"]" else 0.0


def read(path: Path, options: ImportOptions = DEFAULTS) -> Iterator[Found]:
    """Yield the messages of all conversations, each from its beginning."""
    return read_conversations(path, options, FORMAT)


def _parse(given: dict[str, Any], where: str) -> Tree:
    if not isinstance(given.get("mapping"), dict):
        raise InvalidInput(f"its messages (mapping) are missing; {AGAIN}")
    nodes: dict[str, Node] = {}
    for key, node in given["mapping"].items():
        if isinstance(node, dict):
            message = node.get("message")
            time = time_or_none(message.get("create_time")) if isinstance(message, dict) else None
            nodes[key] = Node(node.get("parent"), time, message)
    if given["mapping"] and not nodes:
        raise InvalidInput(f"none of its messages is the last one; {AGAIN}")
    return Tree(nodes, given.get("current_node"), time_or_none(given.get("create_time")), [])


def _convert(message: dict[str, Any], key: str) -> Iterator[dict[str, Any] | Ignored]:
    author, metadata = message.get("author"), message.get("metadata")
    author = author if isinstance(author, dict) else {}
    metadata = metadata if isinstance(metadata, dict) else {}
    role = author.get("role")
    if hidden := _why_hidden(role, message, metadata):
        yield Ignored(hidden)
        return
    if role not in ("user", "assistant"):
        raise InvalidInput(f"its author's role ({describe(role)}) is not known; {AGAIN}")
    text, kept = make_storable(_text(message["content"], role))
    if not text.strip():
        yield Ignored("empty messages")
        return
    external_id = message.get("id") or key
    if not is_id(external_id):
        raise InvalidInput(f"it has no id that can be kept; {AGAIN}")
    if is_id(metadata.get("model_slug")):
        kept["model"] = metadata["model_slug"]
    name = {"name": author["name"]} if is_id(author.get("name")) else {}
    yield {"role": role, "content": text, "external_id": external_id, "metadata": kept} | name


def _why_hidden(role: object, message: dict[str, Any], metadata: dict[str, Any]) -> str | None:
    content = message.get("content")
    if isinstance(role, str) and role in _HIDDEN_ROLES:
        return _HIDDEN_ROLES[role]
    if message.get("recipient") not in (None, "all"):
        return "calls of tools"
    if message.get("weight", 1) == 0 or metadata.get("is_visually_hidden_from_conversation"):
        return "hidden messages"
    if not isinstance(content, dict):
        raise InvalidInput(f"its content is missing; {AGAIN}")
    return _HIDDEN_CONTENT.get(describe(content.get("content_type")))


def _text(content: dict[str, Any], role: str) -> str:
    found = content.get("parts")
    if isinstance(found, list):
        texts = [text for part in found if (text := _part_text(part))]
        # A recording stands beside its transcription.
        texts = [text for text in texts if text != "[audio]"] or texts[:1]
    else:
        texts = [content[key] for key in ("text", "result") if isinstance(content.get(key), str)][:1]
        if not texts:
            kind = describe(content.get("content_type"))
            raise InvalidInput(f"its kind of content ({kind}) is not known; report it, if it should be")
    text = "\n\n".join(texts)
    return _MARKS.sub("", _REFERENCE.sub(_visible, text)) if role == "assistant" else text


def _part_text(part: object) -> str:
    if part is None or isinstance(part, str):
        return part or ""
    if not isinstance(part, dict):
        raise InvalidInput(f"a part of its content is neither a text nor an object; {AGAIN}")
    if isinstance(part.get("text"), str):
        return str(part["text"])
    kind = describe(part.get("content_type"))
    return _POINTERS.get(kind, f"[{kind}]")


def _visible(reference: re.Match[str]) -> str:
    """Return what a reader sees of a reference: a thing's or a link's name, and of a citation nothing."""
    space, kind, fields = reference.groups()
    if kind == "entity":
        try:
            return f"{space}{json.loads(fields)[1]}"
        except (ValueError, LookupError, TypeError, RecursionError):
            return space + fields
    return space + fields.split("\ue202")[0] if kind in ("url", "link_title") else ""


FORMAT = TreeFormat(
    channel="chatgpt",
    id_keys=("conversation_id", "id"),
    title_key="title",
    parse=_parse,
    convert=_convert,
    again=AGAIN,
)
CHATGPT = Importer("chatgpt", sniff, read)
