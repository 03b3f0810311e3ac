"""Sessions of Claude Code and Codex, as both write them to disk: JSON Lines that only grow.

    ~/.claude/projects/PROJECT/SESSION.jsonl      {"type": "user", "uuid", "sessionId", "cwd", "timestamp", "message"}
    ~/.codex/sessions/2026/11/24/rollout-….jsonl  {"type": "response_item", "timestamp", "payload": {"type": "message"}}

A session is a conversation, named by its id and titled by its folder; its scope is its project. Notices that programs
put into messages of the person are removed. No line ever changes, so a file that grew adds only new messages.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from memstore.hook import is_private
from memstore.models import ADDRESSEE, TRUST, UNTRUSTED, Json

from .base import IgnoredContent, Importer, ImportItem, Message, digest, make_storable, time_or_none
from .files import OpenFile, numbered_values
from .openai import content_text

NOTICES = IgnoredContent("notices of the program")
SUBAGENTS = IgnoredContent("messages of subagents")
SUMMARIES = IgnoredContent("summaries of the session")
ROLES = ("user", "assistant")
_NOTICE_LINES = (
    "[Request interrupted by user",
    "# AGENTS.md instructions for ",
    "Caveat: The messages below were ",
)
# Notices in a message of a person, each from the beginning of a line, or from the end of another one.
_ELEMENT = re.compile(
    r"(?:^|(?<=>))[ \t]*<(system-reminder|user-prompt-submit-hook|task-notification|"
    r"(?:local-command|command|bash)-[a-z]+|ide_[a-z_]+|environment_context|user_instructions|INSTRUCTIONS|turn_aborted|user_shell_command|user_action|"
    r"subagent_notification|skill)\b[^>\n]*>",
    re.MULTILINE,
)


class ClaudeCode(Importer):
    name = "claude-code"
    advice = "it may still be written: import it again"
    # A UUID; those of subagents are agent-….jsonl.
    files = ("????????-????-????-????-????????????.jsonl",)

    @staticmethod
    def recognizes(value: Any) -> bool:
        keys = {"sessionId", "leafUuid", "messageId"}
        return isinstance(value, dict) and "type" in value and not keys.isdisjoint(value)

    def read_file(self, file: OpenFile) -> Iterator[ImportItem]:
        # What was typed meanwhile, by each of two kinds of lines.
        self._queued: Counter[tuple[bool, str]] = Counter()
        self._private = PrivateSessions()
        self._replaced = _find_replaced(entry[1] for entry in numbered_values(file, "", "") if isinstance(entry, tuple))
        file.stream.seek(0)
        yield from super().read_file(file)

    def convert(self, value: dict[str, Any], where: str) -> Iterator[ImportItem]:
        role, said, queued = value.get("type"), value.get("message") or {}, value.get("attachment") or {}
        key = value.get("uuid")
        # Typed while the assistant worked; written once or twice.
        if content := _queued_prompt(value, queued):
            kind, text = role == "attachment", json.dumps(content)
            self._queued[kind, text] += 1
            count = self._queued[kind, text]
            role = "user" if count > self._queued[not kind, text] else None
            key, said = key or f"queued:{digest([text, count])}", {"content": content}
        origin = value.get("origin") or queued.get("origin") or {}
        if value.get("isSidechain"):
            yield SUBAGENTS
        elif key in self._replaced and role in ROLES:
            yield IgnoredContent("messages that were rewound")
        elif value.get("isCompactSummary"):
            yield SUMMARIES
        elif value.get("forkedFrom"):
            yield IgnoredContent("copies of another session")
        elif (
            role not in ROLES
            or value.get("isMeta")
            or value.get("isApiErrorMessage")
            or said.get("model") == "<synthetic>"
            or origin.get("kind", "human") != "human"
        ):
            yield NOTICES
        else:
            if key is None:
                raise KeyError("uuid")
            messages, said_at = _convert(role, said.get("content"), key), time_or_none(value.get("timestamp"))
            folder: Json = {"title": value.get("cwd"), "scope": find_project(value.get("cwd"))}
            session = value["sessionId"]
            messages = self._private.without(session, messages)
            yield from self.records(messages, where, session, said_at, **folder, channel=self.name)


class PrivateSessions:
    """Leaves out what is said in a session from a prompt on that begins or ends with #private."""

    def __init__(self) -> None:
        self._sessions: set[str] = set()

    def without(self, session: str, messages: Iterable[Message | IgnoredContent]) -> Iterator[Message | IgnoredContent]:
        for message in messages:
            if isinstance(message, dict) and message["role"] == "user" and is_private(message["content"]):
                self._sessions.add(session)
            yield IgnoredContent("private turns") if session in self._sessions else message


def find_project(folder: str | None) -> str | None:
    """Return the root of the repository that a folder lies in, or the folder where it lies in none on this machine."""
    if not folder:
        return None
    for root in (Path(folder), *Path(folder).parents):
        with suppress(OSError, ValueError):
            if (root / ".git").exists():
                return str(root)
    return folder


def _queued_prompt(line: dict[str, Any], attachment: dict[str, Any]) -> Any:
    """Return what a person typed while the assistant worked; None for other lines."""
    if attachment.get("type") == "queued_command" and attachment.get("commandMode", "prompt") == "prompt":
        return attachment.get("prompt")
    is_taken = line.get("type") == "queue-operation" and line.get("reason") == "absorbed"
    return line.get("content") if is_taken else None


def _find_replaced(lines: Iterable[Any]) -> set[str]:
    """Return the ids of prompts that were rewound, another one put in their place, and of what followed them."""
    replaced: set[str] = set()
    # By session and the message before.
    prompts: dict[tuple[Any, Any], list[str]] = {}
    parents: dict[str, Any] = {}
    for line in lines:
        if isinstance(line, dict) and isinstance(key := line.get("uuid"), str):
            parents[key] = parent = line.get("parentUuid")
            if _is_prompt(line):
                prompts.setdefault((str(line.get("sessionId")), str(parent)), []).append(key)
    first = {key for keys in prompts.values() for key in keys[:-1]}
    # A line stands behind its parent.
    for key in parents:
        if key in first or (isinstance(parents[key], str) and parents[key] in replaced):
            replaced.add(key)
    return replaced


def _is_prompt(line: dict[str, Any]) -> bool:
    content = line["message"].get("content") if isinstance(line.get("message"), dict) else None
    if line.get("type") != "user" or any(line.get(mark) for mark in ("isMeta", "isSidechain", "isCompactSummary")):
        return False
    parts = content if isinstance(content, list) else [content]
    texts = [part.get("text") if isinstance(part, dict) else part for part in parts]
    return any(isinstance(text, str) and _remove_notices(text).strip() for text in texts)


class Codex(Importer):
    """Messages are known by their place: lines of older versions have no ids."""

    name = "codex"
    advice = ClaudeCode.advice
    files = ("rollout-*.jsonl",)

    @staticmethod
    def recognizes(value: Any) -> bool:
        return isinstance(value, dict) and value.get("type") == "session_meta" and "payload" in value

    def read_file(self, file: OpenFile) -> Iterator[ImportItem]:
        self._session: dict[str, Any] = {}
        self._private = PrivateSessions()
        self._messages = 0
        yield from super().read_file(file)

    def convert(self, value: dict[str, Any], where: str) -> Iterator[ImportItem]:
        item = value.get("payload") or {}
        kind = str(item.get("type"))
        if value["type"] == "session_meta":
            # In a fork those of other sessions follow.
            self._session = self._session or item
        elif value["type"] != "response_item":
            yield NOTICES
        elif kind == "message":
            self._messages += 1
            session = self._session
            # A subagent's is {"subagent": …}; of a person's session it is a name, such as "cli".
            if isinstance(session.get("source"), dict):
                yield SUBAGENTS
            elif (value.get("metadata") or {}).get("compaction_output"):
                yield SUMMARIES
            elif item.get("role") not in ROLES:
                yield NOTICES
            else:
                key, said_at = f"message:{self._messages}", time_or_none(value.get("timestamp"))
                messages = _convert(item["role"], item.get("content"), key)
                folder: Json = {"title": session.get("cwd"), "scope": find_project(session.get("cwd"))}
                messages = self._private.without(session["id"], messages)
                yield from self.records(messages, where, session["id"], said_at, **folder, channel=self.name)
        elif kind == "reasoning":
            yield IgnoredContent("thoughts of the model")
        else:
            yield IgnoredContent("results of tools" if kind.endswith("_output") else "calls of tools")


def _convert(role: str, content: Any, external_id: str) -> Iterator[Message | IgnoredContent]:
    text, ignored = content_text(content)
    yield from ignored
    # What a program wrote in the person's place: on a schedule, or of its own accord.
    by_program = ("[SYSTEM NOTIFICATION", "<scheduled-task", "<<autonomous-loop")
    is_program = role == "user" and text.lstrip().startswith(by_program)
    text, metadata = make_storable(_remove_notices(text) if role == "user" else text)
    if is_program:
        role, metadata = "system", metadata | {TRUST: UNTRUSTED}
    elif text.lstrip().startswith("@"):
        # A file, or a decorator that was pasted: these programs have nobody else whom a prompt could be for.
        metadata = metadata | {ADDRESSEE: []}
    if text.strip():
        yield {"role": role, "content": text.strip(), "external_id": external_id, "metadata": metadata}
    elif not ignored:
        yield NOTICES


def _remove_notices(text: str) -> str:
    """Return a person's message without notices; an element that never ends is the person's own."""
    kept, at, endless = [], 0, set[str]()
    for element in _ELEMENT.finditer(text):
        tag = f"</{element[1]}>"
        start = element.start()
        if start < at or (start > at and text[start - 1] == ">") or tag in endless:
            continue
        end = text.find(tag, element.end())
        if end < 0:
            endless.add(tag)
        else:
            kept.append(text[at:start])
            at = end + len(tag)
    text = "".join([*kept, text[at:]])
    if text.startswith(("# Context from my IDE setup:\n", "# Files mentioned by the user:\n")):
        text = text.partition("\n## My request for Codex:")[2] or text
    return "\n".join("" if line.startswith(_NOTICE_LINES) else line for line in text.split("\n"))
