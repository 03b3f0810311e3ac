"""The export of ChatGPT: its zip, or a `conversations.json` (`conversations-000.json`, …) out of it.

A conversation is kept there as a tree, for every edit and every second try is a branch. What is imported is what its
owner last saw: the way from `current_node` up to the root, and on it what user and assistant said to each other.
Left out without a word, because the format itself hides it: other branches, system and tool messages, calls of tools,
custom instructions, the model's thoughts, empty messages, and whatever is marked hidden or has a weight of 0.
An image is imported as "[image]", a recording as its transcription.

The file names no user. Many messages have no time: such a one has the time of the message before it, or of the
conversation, and `{"occurred_at": "inherited"}` in its metadata. Characters that no database can keep become U+FFFD,
with `{"replaced": count}`: nobody can be asked to mend an export by hand.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, TypeGuard

from memstore.errors import InvalidInput
from memstore.ingest.check import UNSTORABLE

from .files import HEAD, READ_ERRORS, ZIP, ByteStream, array_elements, check_file, head, parts, take
from .records import EPOCH, Record, Skipped, moment, shown

AGAIN = "ask ChatGPT for the export again, and import the zip as it comes"
GIVEN_UP = "the rest of the file was not read"

_MEMBER = re.compile(r"(?!__MACOSX/)(?:.*/)?conversations(?:[-_]?[0-9]{1,9})?\.json")
_HIDDEN_ROLES = ("system", "developer", "tool")
_HIDDEN_CONTENT = ("thoughts", "reasoning_recap", "user_editable_context", "model_editable_context")
_POINTERS = {
    "image_asset_pointer": "[image]",
    "audio_asset_pointer": "[audio]",
    "real_time_user_audio_video_asset_pointer": "[audio]",
    "video_container_asset_pointer": "[video]",
}
# What the assistant's text refers to stands between private-use characters: a kind, then its fields.
_REFERENCE = re.compile("( ?)\ue200([a-z_]*)\ue202?([^\ue201\n]*)\ue201")
_MARKS = re.compile("[\ue200-\ue206]")


@dataclass(frozen=True, slots=True)
class ChatGPT:
    """Reads the export of ChatGPT, one conversation after the other."""

    max_conversation: int = 256 * 1024 * 1024
    max_unpacked: int = 8 * 1024**3

    @property
    def name(self) -> str:
        """What `--format` calls it."""
        return "chatgpt"

    def sniff(self, path: Path) -> float:
        """Give 0.9 for a list of trees, less where only the names of things fit."""
        try:
            with closing(parts(path, _MEMBER, limit=1 << 64)) as files:
                start = take(next(files)[1], HEAD).removeprefix(b"\xef\xbb\xbf").lstrip()
        except InvalidInput:
            return 0.0
        except READ_ERRORS:
            # Of a zip that is cut off nobody can say what it held; reading it says what is wrong.
            return 0.1 if head(path, 4) in ZIP else 0.0
        if not start.startswith(b"["):
            return 0.0
        if b'"mapping"' in start:
            return 0.9
        return 0.3 if b'"current_node"' in start or start[1:].strip() == b"]" else 0.0

    def read(self, path: Path) -> Iterator[Record | Skipped]:
        """Give the messages of all conversations, each from its beginning."""
        check_file(path)
        try:
            for name, stream in parts(path, _MEMBER, self.max_unpacked):
                yield from self._conversations(name, stream)
        except InvalidInput as error:
            yield Skipped(shown(path.name), str(error))
        except READ_ERRORS as error:
            yield Skipped(shown(path.name), f"the file is damaged or locked ({shown(str(error), 200)}); {AGAIN}")

    def _conversations(self, name: str, stream: ByteStream) -> Iterator[Record | Skipped]:
        number = 0
        try:
            for number, given in enumerate(array_elements(stream, self.max_conversation), 1):
                yield from _conversation(given, name, number)
        except InvalidInput as error:
            yield Skipped(f"{name}, after conversation {number}", f"{error}; {GIVEN_UP}; {AGAIN}")


def _conversation(given: object, name: str, number: int) -> Iterator[Record | Skipped]:
    """Give the messages of one conversation, and what is wrong with it."""
    where = f"{name}, conversation {number}"
    if not isinstance(given, dict):
        yield Skipped(where, f"it is not an object; {AGAIN}")
        return
    title, key = given.get("title"), given.get("conversation_id") or given.get("id")
    title = _storable(title)[0] if isinstance(title, str) else None
    if not _is_id(key):
        yield Skipped(where, f"it has no id that can be kept; {AGAIN}")
        return
    where = f"{name}, conversation '{shown(title or '')}' ({shown(key)})"
    mapping = given.get("mapping")
    if not isinstance(mapping, dict):
        yield Skipped(where, f"its messages (mapping) are missing; {AGAIN}")
        return
    nodes, problems = _thread(mapping, given.get("current_node"))
    for problem in problems:
        yield Skipped(where, problem)
    for message, at in _messages(nodes, _time(given.get("create_time")), where):
        if isinstance(message, str):
            yield Skipped(at, message)
        else:
            yield Record(user=None, conversation=key, message=message, title=title, channel="chatgpt", where=at)


def _thread(mapping: dict[str, Any], current: object) -> tuple[list[tuple[str, dict[str, Any]]], list[str]]:
    """Give the nodes from the root to the current one, and what is wrong on that way."""
    problems: list[str] = []
    here: object = current
    if not (isinstance(current, str) and isinstance(mapping.get(current), dict)):
        here = _newest_leaf(mapping)
        if current is not None and here is not None:
            problems.append("its current message is not in the file; the branch with the newest one was taken")
    if here is None and mapping:
        problems.append(f"none of its messages is the last one; {AGAIN}")
    way: dict[str, dict[str, Any]] = {}
    while here is not None:
        node = mapping.get(here) if isinstance(here, str) else None
        if not isinstance(here, str) or not isinstance(node, dict):
            problems.append(f"the message '{_word(here)}' is missing, and all that was said before it; {AGAIN}")
            break
        if here in way:
            problems.append(f"its messages go in a circle at '{shown(here)}'; each was taken once; {AGAIN}")
            break
        way[here] = node
        here = node.get("parent")
    return list(reversed(way.items())), problems


def _newest_leaf(mapping: dict[str, Any]) -> str | None:
    """Give the newest message that none follows; of equally new ones, the one that stands last."""
    nodes = {key: node for key, node in mapping.items() if isinstance(node, dict)}
    parents = [node.get("parent") for node in nodes.values()]
    followed = {parent for parent in parents if isinstance(parent, str)}

    def age(key: str) -> datetime:
        message = nodes[key].get("message")
        return (_time(message.get("create_time")) if isinstance(message, dict) else None) or EPOCH

    return max((key for key in reversed(nodes) if key not in followed), key=age, default=None)


def _messages(
    nodes: list[tuple[str, dict[str, Any]]], last: datetime | None, where: str
) -> Iterator[tuple[dict[str, Any] | str, str]]:
    """Give what was said, or for a malformed message the reason, each with its place."""
    for key, node in nodes:
        at, message = f"{where}, message {shown(key)}", node.get("message")
        if message is None:
            continue
        if not isinstance(message, dict):
            yield f"it is not an object; {AGAIN}", at
            continue
        own = _time(message.get("create_time"))
        last = own or last
        try:
            said = _said(message, key)
        except InvalidInput as error:
            yield str(error), at
            continue
        if said is not None:
            metadata = said["metadata"] if own else said["metadata"] | {"occurred_at": "inherited"}
            yield said | {"metadata": metadata} | ({"occurred_at": last} if last else {}), at


def _said(message: dict[str, Any], key: str) -> dict[str, Any] | None:
    """Give a message in the pivot's words, but for its time; None where the format hides it."""
    author, metadata = message.get("author"), message.get("metadata")
    author = author if isinstance(author, dict) else {}
    metadata = metadata if isinstance(metadata, dict) else {}
    role = author.get("role")
    if role in _HIDDEN_ROLES or message.get("recipient") not in (None, "all") or message.get("weight", 1) == 0:
        return None
    if metadata.get("is_visually_hidden_from_conversation"):
        return None
    if role not in ("user", "assistant"):
        raise InvalidInput(f"its author's role ({_word(role)}) is not known; {AGAIN}")
    text, replaced = _storable(_text(message.get("content"), role))
    if not text.strip():
        return None
    external_id = message.get("id") or key
    if not _is_id(external_id):
        raise InvalidInput(f"it has no id that can be kept; {AGAIN}")
    kept: dict[str, Any] = {"replaced": replaced} if replaced else {}
    if _is_id(metadata.get("model_slug")):
        kept["model"] = metadata["model_slug"]
    name = {"name": author["name"]} if _is_id(author.get("name")) else {}
    return {"role": role, "content": text, "external_id": external_id, "metadata": kept} | name


def _text(content: object, role: str) -> str:
    """Give what a message's content says; nothing where it is of a kind that is never shown."""
    if not isinstance(content, dict):
        raise InvalidInput(f"its content is missing; {AGAIN}")
    kind, found = content.get("content_type"), content.get("parts")
    if kind in _HIDDEN_CONTENT:
        return ""
    if isinstance(found, list):
        texts = [text for part in found if (text := _part(part))]
        # A recording stands beside its transcription.
        texts = [text for text in texts if text != "[audio]"] or texts[:1]
    else:
        texts = [content[key] for key in ("text", "result") if isinstance(content.get(key), str)][:1]
        if not texts:
            raise InvalidInput(f"its kind of content ({_word(kind)}) is not known; report it, if it should be")
    text = "\n\n".join(texts)
    return _MARKS.sub("", _REFERENCE.sub(_visible, text)) if role == "assistant" else text


def _part(part: object) -> str:
    if part is None or isinstance(part, str):
        return part or ""
    if not isinstance(part, dict):
        raise InvalidInput(f"a part of its content is neither a text nor an object; {AGAIN}")
    if isinstance(part.get("text"), str):
        return str(part["text"])
    kind = _word(part.get("content_type"))
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


def _storable(text: str) -> tuple[str, int]:
    return UNSTORABLE.subn("\ufffd", text)


def _word(value: object) -> str:
    # Not str(): of something nested a thousand deep it fails.
    return shown(value) if isinstance(value, str) else type(value).__name__


def _is_id(value: object) -> TypeGuard[str]:
    return isinstance(value, str) and bool(value.strip()) and not UNSTORABLE.search(value)


def _time(value: object) -> datetime | None:
    """Give a time, or None for what is none: a message is worth more than its time."""
    try:
        return moment(value)
    except InvalidInput:
        return None
