"""The export of ChatGPT: its zip, its folder, or a `conversations.json` (`conversations-000.json`, …) out of it.

Characters that no database can keep become U+FFFD, with `{"replaced": count}` in the metadata: nobody can be asked to
mend an export by hand. `TreeImporter` is for Claude's export too: in both a conversation is a tree, because every edit
and every second try is a branch. The active branch is imported, from the first message to the one that was seen last. A
message without a time inherits that of its parent, or of the conversation.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, ClassVar, NamedTuple

from memstore.errors import InvalidInput
from memstore.ingest.validation import check_name
from memstore.language import LETTERS
from memstore.models import ImportedMemory

from .base import EPOCH, IgnoredContent, Importer, ImportItem, Message, make_storable, placeholder, time_or_none
from .files import ImportProblem, printable
from .memories import SavedMemories

# What the format hides, by role or by kind of content, and what a report calls it.
_HIDDEN = {
    "system": "system messages",
    "developer": "system messages",
    "tool": "results of tools",
    "thoughts": "thoughts of the model",
    "reasoning_recap": "thoughts of the model",
    "user_editable_context": "custom instructions",
    "model_editable_context": "custom instructions",
}
# What the assistant's text refers to stands between private-use characters: a kind, then its fields. The older form,
# and that for files: 【3:4†source】, 【12†L3-L9】, 【12†the name of a page】.
_REFERENCE = re.compile(
    "( ?)(?:\ue200([a-z_]{0,40})\ue202?([^\ue200\ue201\n]*)\ue201"
    "|【[0-9]{1,6}(?::[0-9]{1,6})?†(?:source|L[0-9]+(?:-L?[0-9]+)?|([^【】\n]{0,200}))】)|[\ue200-\ue206]"
)


class MessageNode(NamedTuple):
    """A message in its tree: the parent's id, None for a first one."""

    parent: str | None
    time: datetime | None
    message: Any


class TreeImporter(Importer):
    """An export of conversations that are trees.

    `_nodes` returns a conversation's messages by id; `_convert_message` yields a message without its time, and ignored
    content. Both raise for what they cannot read. A memory is added to `memories`.
    """

    # One file, or from some size on several: `conversations-000.json`, …
    files: ClassVar[tuple[str, ...]] = ("conversations.json", "conversations[-_0-9]*.json")
    unit = "conversation"
    # Of its id, its title, when it began, and its current message.
    keys: ClassVar[tuple[str, str, str, str]]

    def read(self) -> Iterator[ImportItem]:
        self.memories = SavedMemories(self.name)
        yield from super().read()
        yield from self.memories.by_time()

    def _nodes(self, conversation: dict[str, Any]) -> dict[str, MessageNode]:
        raise NotImplementedError

    def _convert_message(
        self, message: dict[str, Any], key: str, where: str, time: datetime | None
    ) -> Iterator[Message | IgnoredContent]:
        raise NotImplementedError

    def convert(self, value: dict[str, Any], where: str) -> Iterator[ImportItem]:
        id_key, title_key, begun_key, current_key = self.keys
        key: Any = value.get(id_key) or value.get("id")
        check_name(key, "conversation")
        title = make_storable(value.get(title_key) or "")[0]
        where = f"{where.rpartition(', ')[0]}, conversation '{printable(title)}' ({printable(key)})"
        nodes, begun = self._nodes(value), time_or_none(value.get(begun_key))
        branch, missing = _active_branch(nodes, value.get(current_key))
        if missing is not None:
            reason = f"the message '{printable(missing)}' is missing, and all that was said before it; {self.advice}"
            yield ImportProblem(where, reason)
        other_messages = [name for name in nodes.keys() - branch if nodes[name].message is not None]
        if other_messages:
            yield IgnoredContent("messages of other branches", len(other_messages))
        inherited = begun
        for name in branch:
            node = nodes[name]
            if node.message is not None:
                at = f"{where}, message {printable(name)}"
                about = {"title": title.strip() or None, "channel": self.name}
                messages = self._convert_message(node.message, name, at, node.time or inherited)
                yield from self.records(messages, at, key, node.time, inherited, **about)
            inherited = node.time or inherited


def _active_branch(nodes: Mapping[str, MessageNode], current: str | None) -> tuple[list[str], str | None]:
    """Return the messages up to the current one, or to the newest leaf; and a missing parent, if any."""
    if current not in nodes:
        followed = {node.parent for node in nodes.values()}
        leaves = (key for key in reversed([*nodes]) if key not in followed)
        current = max(leaves, key=lambda key: nodes[key].time or EPOCH, default=None)
    path: dict[str, None] = {}
    while current is not None and current in nodes and current not in path:
        path[current] = None
        current = nodes[current].parent
    return [*reversed(path)], None if current in nodes else current


class ChatGPT(TreeImporter):
    name = "chatgpt"
    advice = "ask ChatGPT for the export again, and import the zip as it comes"
    keys = ("conversation_id", "title", "create_time", "current_node")

    @staticmethod
    def recognizes(value: Any) -> bool:
        if not isinstance(value, dict) or not isinstance(tree := value.get("mapping", {}), dict):
            return False
        nodes = all(node is None or (isinstance(node, dict) and "message" in node) for node in tree.values())
        return nodes and not value.keys().isdisjoint(("mapping", "current_node"))

    def _nodes(self, conversation: dict[str, Any]) -> dict[str, MessageNode]:
        nodes = {}
        for key, node in conversation["mapping"].items():
            if node is None:
                continue
            message = node.get("message") or None
            time = time_or_none(message.get("create_time")) if message else None
            nodes[key] = MessageNode(node.get("parent"), time, message)
        return nodes

    def _convert_message(
        self, message: dict[str, Any], key: str, where: str, time: datetime | None
    ) -> Iterator[Message | IgnoredContent]:
        author, metadata = message["author"], message.get("metadata") or {}
        role = author["role"]
        memories = [memory for memory in _memories(role, message, metadata, time) if memory[0].strip()]
        for text, kind, saved_at in memories:
            self.memories.add(text, kind, where, saved_at)
        if memories:
            return
        if hidden := _why_hidden(role, message, metadata):
            yield IgnoredContent(hidden)
            return
        if role not in ("user", "assistant"):
            raise InvalidInput(f"its author's role ({printable(str(role))}) is not known; report it, if it should be")
        files = _attached(metadata) if role == "user" else ()
        text, kept = make_storable("\n\n".join(filter(None, (_text(message["content"], role), *files))))
        if not text.strip():
            yield IgnoredContent("empty messages")
            return
        if metadata.get("model_slug"):
            kept["model"] = metadata["model_slug"]
        name = {"name": author["name"]} if author.get("name") else {}
        yield {"role": role, "content": text, "external_id": message.get("id") or key, "metadata": kept} | name


def _memories(
    role: str, message: dict[str, Any], metadata: dict[str, Any], time: datetime | None
) -> Iterator[tuple[str, ImportedMemory, datetime | None]]:
    content, custom = message["content"], metadata.get("user_context_message_data") or {}
    if role == "assistant" and message.get("recipient") == "bio":
        text = _text(content, role)
        words = (word for word in LETTERS.findall(text.lower()) if word != "please")
        if next(words, "") != "forget":
            yield text, "saved memory", time
    elif listed := content.get("model_set_context"):
        # 1. [2024-05-01]. User lives in Porto.
        days_and_texts = re.split(r"^\s*\d+\. \[(\d{4}-\d\d-\d\d)\]\.? *", listed, flags=re.MULTILINE)[1:]
        for day, text in zip(days_and_texts[::2], days_and_texts[1::2], strict=True):
            yield text, "saved memory", time_or_none(f"{day}T00:00:00Z") or time
    elif custom or content.get("content_type") == "user_editable_context":
        about = custom.get("about_user_message") or _in_fence(content.get("user_profile"))
        instructions = custom.get("about_model_message") or _in_fence(content.get("user_instructions"))
        yield about, "about the user", time
        yield instructions, "instructions", time


def _in_fence(text: str | None) -> str:
    """Return the person's words, which stand in a fence behind ChatGPT's for the model."""
    _, fence, fenced = (text or "").partition("```")
    return fenced.partition("```")[0] if fence else text or ""


def _why_hidden(role: str, message: dict[str, Any], metadata: dict[str, Any]) -> str | None:
    if role in _HIDDEN:
        return _HIDDEN[role]
    if message.get("recipient") not in (None, "all"):
        return "calls of tools"
    if message.get("weight", 1) == 0 or metadata.get("is_visually_hidden_from_conversation"):
        return "hidden messages"
    return _HIDDEN.get(message["content"].get("content_type"))


def _text(content: dict[str, Any], role: str) -> str:
    parts = content.get("parts")
    if isinstance(parts, list):
        texts = [text for part in parts if (text := _part_text(part))]
        # A recording comes with its transcription.
        texts = [text for text in texts if text != "[audio]"] or texts[:1]
    else:
        texts = [content[key] for key in ("text", "result") if isinstance(content.get(key), str)][:1]
        if not texts:
            kind = printable(str(content.get("content_type")))
            raise InvalidInput(f"its kind of content ({kind}) is not known; report it, if it should be")
    text = "\n\n".join(texts)
    return _REFERENCE.sub(_visible, text) if role == "assistant" else text


def _attached(metadata: dict[str, Any]) -> Iterator[str]:
    """Yield the names of attached files; images stand in the text already."""
    for file in metadata.get("attachments") or ():
        if file and not str(file.get("mime_type") or file.get("mimeType")).startswith("image/"):
            yield f"[file: {file['name']}]" if file.get("name") else "[file]"


def _part_text(part: Any) -> str:
    if part is None or isinstance(part, str):
        return part or ""
    kind, text = part.get("content_type"), part.get("text")
    return text if isinstance(text, str) else placeholder(kind)


def _visible(reference: re.Match[str]) -> str:
    """Return the visible text of a reference: the name of a thing or a link, nothing of a citation."""
    space, kind, fields, source = reference.groups()
    if kind == "entity":
        try:
            return f"{space}{json.loads(fields)[1]}"
        except (ValueError, LookupError, TypeError):
            return space + fields
    if kind in ("url", "link_title"):
        return space + fields.split("\ue202")[0]
    return f"{space}{source}" if source else ""
