"""The export of Claude: its zip, its folder, or a `conversations.json` out of it.

A conversation is a list of messages that is meant as a tree, where each names its parent; exports of before 2025 name
none, and are the list. What is imported is the way to `current_leaf_message_uuid`, or without one to the newest
message that none follows; with `all_branches` the rest comes too, as ChatGPT's does.
A message says what the texts of its `content` say, or without any its `text`; what was attached to it follows, under
the file's name, for one human message in ten is nothing else. Thoughts, calls of tools (artifacts are such) and their
results are left out and counted, and so are empty messages; projects and users are not read.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from memstore.errors import InvalidInput

from .content import blocks_text
from .conversations_json import MEMBER, read_conversations
from .files import first_head
from .json_stream import keys_in
from .reading import PLAINLY, Reading
from .records import Found, LeftOut, Record, Skipped, is_id, shown, storable, time_or_none, timed, word
from .trees import taken

AGAIN = "ask Claude for the export again, and import the zip as it comes"
ROOT = "00000000-0000-4000-8000-000000000000"  # the parent of a first message
ROLES = {"human": "user", "assistant": "assistant"}


@dataclass(frozen=True, slots=True)
class Claude:
    """Reads the export of Claude, one conversation after the other."""

    @property
    def name(self) -> str:
        """What `--format` calls it."""
        return "claude"

    def sniff(self, path: Path) -> float:
        """Give 0.95 for a list of conversations with `chat_messages`."""
        start = first_head(path, MEMBER)
        return 0.95 if start.startswith(b"[") and "chat_messages" in keys_in(start) else 0.0

    def read(self, path: Path, reading: Reading = PLAINLY) -> Iterator[Found]:
        """Give the messages of all conversations, each from its beginning."""
        return read_conversations(path, reading, _conversation, AGAIN)


def _conversation(given: object, file: str, where: str, all_branches: bool) -> Iterator[Found]:
    """Give the messages of one conversation, and what is wrong with it."""
    if not isinstance(given, dict):
        yield Skipped(where, f"it is not an object; {AGAIN}")
        return
    key, title = given.get("uuid"), given.get("name")
    if not is_id(key):
        yield Skipped(where, f"it has no id that can be kept; {AGAIN}")
        return
    title = storable(title)[0] if isinstance(title, str) and title.strip() else None
    where = f"{file}, conversation '{shown(title or '')}' ({shown(key)})"
    if not isinstance(given.get("chat_messages"), list):
        yield Skipped(where, f"its messages (chat_messages) are missing; {AGAIN}")
        return
    messages: dict[str, dict[str, Any]] = {}
    yield from _named(given["chat_messages"], messages, where)
    way, others, problems = _chosen(messages, given.get("current_leaf_message_uuid"), all_branches)
    yield from (Skipped(where, f"{problem}; {AGAIN}") for problem in problems)
    if others and not all_branches:
        yield LeftOut("messages of other branches", len(others))
    last = time_or_none(given.get("created_at"))
    for name in way:
        message, at = messages[name], f"{where}, message {shown(name)}"
        own = time_or_none(message.get("created_at"))
        for one in _said(message, name, at):
            if not isinstance(one, dict):
                yield one
                continue
            one["metadata"] |= {"branch": "other"} if name in others else {}
            said = timed(one, own, last)
            yield Record(user=None, conversation=key, message=said, title=title, channel="claude", where=at)
        last = own or last


def _named(given: list[object], messages: dict[str, dict[str, Any]], where: str) -> Iterator[Skipped]:
    """Put the messages under their ids, and tell of those that have none."""
    for number, message in enumerate(given, 1):
        at = f"{where}, message {number}"
        if not isinstance(message, dict):
            yield Skipped(at, f"it is not an object; {AGAIN}")
        elif not is_id(name := message.get("uuid")):
            yield Skipped(at, f"it has no id that can be kept; {AGAIN}")
        elif name in messages:
            yield Skipped(at, f"its id ({shown(name)}) is that of an earlier one; {AGAIN}")
        else:
            messages[name] = message


def _chosen(
    messages: dict[str, dict[str, Any]], current: object, all_branches: bool
) -> tuple[list[str], set[str], list[str]]:
    """Give the messages to take in their order, those that are on other branches, and what is wrong with the tree."""

    def age(name: str) -> datetime | None:
        return time_or_none(messages[name].get("created_at"))

    parents: dict[str, object] = {}
    before = None
    for name, message in messages.items():
        parent = message.get("parent_message_uuid", before)
        parents[name] = None if parent == ROOT else parent
        before = name
    way, others, problems = taken(parents, current, age, all_branches=all_branches)
    if messages and not way:
        problems.append("none of its messages is the last one")
    return way, others, problems


def _said(message: dict[str, Any], name: str, where: str) -> Iterator[dict[str, Any] | Skipped | LeftOut]:
    """Give a message in the pivot's words, but for its time, and what of it is left out."""
    role = ROLES.get(word(message.get("sender")))
    if role is None:
        yield Skipped(where, f"its sender ({word(message.get('sender'))}) is not known; {AGAIN}")
        return
    try:
        text, left_out = blocks_text(message.get("content"))
    except InvalidInput as error:
        yield Skipped(where, f"{error}; {AGAIN}")
        return
    yield from left_out
    if not text.strip() and not left_out and isinstance(message.get("text"), str):
        text = message["text"]
    text, kept = storable("\n\n".join(one for one in (text, *_attached(message)) if one.strip()))
    if text.strip():
        yield {"role": role, "content": text, "external_id": name, "metadata": kept}
    elif not left_out:
        yield LeftOut("empty messages")


def _attached(message: dict[str, Any]) -> Iterator[str]:
    """Give what was attached: its text under its name, or its name alone."""
    names = set()
    for key in ("attachments", "files"):
        found = message.get(key)
        for one in found if isinstance(found, list) else []:
            if not isinstance(one, dict):
                continue
            name, content = one.get("file_name"), one.get("extracted_content")
            head = f"[file: {name}]" if isinstance(name, str) and name.strip() else "[file]"
            if isinstance(content, str) and content.strip():
                yield f"{head}\n{content}"
            elif head not in names:
                yield head
            names.add(head)
