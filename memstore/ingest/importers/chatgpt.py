"""The export of ChatGPT: its zip, its folder, or a `conversations.json` (`conversations-000.json`, …) out of it.

A conversation is kept there as a tree, for every edit and every second try is a branch. What is imported is what its
owner last saw: the way from `current_node` up to the root, and on it what user and assistant said to each other. With
`all_branches` the rest comes too, in the order of its time, with `{"branch": "other"}` in its metadata.
Left out and counted, because the format itself hides it: system and tool messages, calls of tools, custom
instructions, the model's thoughts, empty messages, and whatever is marked hidden or has a weight of 0.
An image is imported as "[image]", a recording as its transcription.

The file names no user. Many messages have no time: such a one has the time of the message before it, or of the
conversation, and `{"occurred_at": "inherited"}` in its metadata. Characters that no database can keep become U+FFFD,
with `{"replaced": count}`: nobody can be asked to mend an export by hand.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from memstore.errors import InvalidInput

from .conversations_json import MEMBER, read_conversations
from .files import first_head, is_zip, names
from .json_stream import keys_in
from .reading import PLAINLY, Reading
from .records import Found, LeftOut, Record, Skipped, is_id, shown, storable, time_or_none, timed, word
from .trees import taken

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


@dataclass(frozen=True, slots=True)
class ChatGPT:
    """Reads the export of ChatGPT, one conversation after the other."""

    @property
    def name(self) -> str:
        """What `--format` calls it."""
        return "chatgpt"

    def sniff(self, path: Path) -> float:
        """Give 0.9 for a list of trees, less where only the names of things fit."""
        start = first_head(path, MEMBER)
        if not start.startswith(b"["):
            # Of a zip that is cut off nobody can say what it held; reading it says what is wrong.
            return 0.1 if is_zip(path) and not names(path) else 0.0
        keys = keys_in(start)
        if "mapping" in keys and "chat_messages" not in keys:
            return 0.9
        return 0.3 if "current_node" in keys or start[1:].strip() == b"]" else 0.0

    def read(self, path: Path, reading: Reading = PLAINLY) -> Iterator[Found]:
        """Give the messages of all conversations, each from its beginning."""
        return read_conversations(path, reading, _conversation, AGAIN)


def _conversation(given: object, file: str, where: str, all_branches: bool) -> Iterator[Found]:
    """Give the messages of one conversation, and what is wrong with it."""
    if not isinstance(given, dict):
        yield Skipped(where, f"it is not an object; {AGAIN}")
        return
    title, key = given.get("title"), given.get("conversation_id") or given.get("id")
    title = storable(title)[0] if isinstance(title, str) and title.strip() else None
    if not is_id(key):
        yield Skipped(where, f"it has no id that can be kept; {AGAIN}")
        return
    where = f"{file}, conversation '{shown(title or '')}' ({shown(key)})"
    mapping = given.get("mapping")
    if not isinstance(mapping, dict):
        yield Skipped(where, f"its messages (mapping) are missing; {AGAIN}")
        return
    nodes = {name: node for name, node in mapping.items() if isinstance(node, dict)}
    way, others, problems = _chosen(nodes, given.get("current_node"), all_branches)
    if mapping and not way:
        problems.append("none of its messages is the last one")
    yield from (Skipped(where, f"{problem}; {AGAIN}") for problem in problems)
    if others and not all_branches:
        yield LeftOut("messages of other branches", len(others))
    for message, at in _messages({name: nodes[name] for name in way}, others, given.get("create_time"), where):
        if isinstance(message, LeftOut):
            yield message
        elif isinstance(message, str):
            yield Skipped(at, message)
        else:
            yield Record(user=None, conversation=key, message=message, title=title, channel="chatgpt", where=at)


def _chosen(nodes: dict[str, Any], current: object, all_branches: bool) -> tuple[list[str], set[str], list[str]]:
    """Give the messages to take in their order, those that are on other branches, and what is wrong with the tree."""

    def age(key: str) -> datetime | None:
        message = nodes[key].get("message")
        return time_or_none(message.get("create_time")) if isinstance(message, dict) else None

    parents = {key: node.get("parent") for key, node in nodes.items()}
    way, others, problems = taken(parents, current, age, all_branches=all_branches)
    return way, {key for key in others if isinstance(nodes[key].get("message"), dict)}, problems


def _messages(
    nodes: dict[str, Any], others: set[str], begun: object, where: str
) -> Iterator[tuple[dict[str, Any] | LeftOut | str, str]]:
    """Give what was said, what of it is left out, or for a malformed message the reason, each with its place."""
    first = time_or_none(begun)
    times: dict[object, datetime | None] = {}
    for key, node in nodes.items():
        at, message, parent = f"{where}, message {shown(key)}", node.get("message"), node.get("parent")
        inherited = (times.get(parent) if isinstance(parent, str) else None) or first
        times[key] = inherited
        if message is None:
            continue
        if not isinstance(message, dict):
            yield f"it is not an object; {AGAIN}", at
            continue
        own = time_or_none(message.get("create_time"))
        times[key] = own or inherited
        try:
            said = _said(message, key)
        except InvalidInput as error:
            yield str(error), at
            continue
        if isinstance(said, LeftOut):
            yield said, at
            continue
        if key in others:
            said["metadata"] |= {"branch": "other"}
        yield timed(said, own, inherited), at


def _said(message: dict[str, Any], key: str) -> dict[str, Any] | LeftOut:
    """Give a message in the pivot's words, but for its time; or as what it is hidden by the format."""
    author, metadata = message.get("author"), message.get("metadata")
    author = author if isinstance(author, dict) else {}
    metadata = metadata if isinstance(metadata, dict) else {}
    role = author.get("role")
    if hidden := _hidden(role, message, metadata):
        return LeftOut(hidden)
    if role not in ("user", "assistant"):
        raise InvalidInput(f"its author's role ({word(role)}) is not known; {AGAIN}")
    text, kept = storable(_text(message["content"], role))
    if not text.strip():
        return LeftOut("empty messages")
    external_id = message.get("id") or key
    if not is_id(external_id):
        raise InvalidInput(f"it has no id that can be kept; {AGAIN}")
    if is_id(metadata.get("model_slug")):
        kept["model"] = metadata["model_slug"]
    name = {"name": author["name"]} if is_id(author.get("name")) else {}
    return {"role": role, "content": text, "external_id": external_id, "metadata": kept} | name


def _hidden(role: object, message: dict[str, Any], metadata: dict[str, Any]) -> str | None:
    """Give what a message is that the format never shows."""
    content = message.get("content")
    if isinstance(role, str) and role in _HIDDEN_ROLES:
        return _HIDDEN_ROLES[role]
    if message.get("recipient") not in (None, "all"):
        return "calls of tools"
    if message.get("weight", 1) == 0 or metadata.get("is_visually_hidden_from_conversation"):
        return "hidden messages"
    if not isinstance(content, dict):
        raise InvalidInput(f"its content is missing; {AGAIN}")
    return _HIDDEN_CONTENT.get(word(content.get("content_type")))


def _text(content: dict[str, Any], role: str) -> str:
    """Give what a message's content says."""
    found = content.get("parts")
    if isinstance(found, list):
        texts = [text for part in found if (text := _piece(part))]
        # A recording stands beside its transcription.
        texts = [text for text in texts if text != "[audio]"] or texts[:1]
    else:
        texts = [content[key] for key in ("text", "result") if isinstance(content.get(key), str)][:1]
        if not texts:
            kind = word(content.get("content_type"))
            raise InvalidInput(f"its kind of content ({kind}) is not known; report it, if it should be")
    text = "\n\n".join(texts)
    return _MARKS.sub("", _REFERENCE.sub(_visible, text)) if role == "assistant" else text


def _piece(part: object) -> str:
    if part is None or isinstance(part, str):
        return part or ""
    if not isinstance(part, dict):
        raise InvalidInput(f"a part of its content is neither a text nor an object; {AGAIN}")
    if isinstance(part.get("text"), str):
        return str(part["text"])
    kind = word(part.get("content_type"))
    return _POINTERS.get(kind, f"[{kind}]")


def _visible(reference: re.Match[str]) -> str:
    """Give what a reader sees of a reference: a thing's or a link's name, and of a citation nothing."""
    space, kind, fields = reference.groups()
    if kind == "entity":
        try:
            return f"{space}{json.loads(fields)[1]}"
        except (ValueError, LookupError, TypeError, RecursionError):
            return space + fields
    return space + fields.split("\ue202")[0] if kind in ("url", "link_title") else ""
