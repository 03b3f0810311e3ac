"""Sessions of Claude Code and Codex, as both write them to disk: JSON Lines that only grow.

    ~/.claude/projects/PROJECT/SESSION.jsonl      {"type": "user", "uuid", "sessionId", "cwd", "timestamp", "message"}
    ~/.codex/sessions/2026/11/24/rollout-….jsonl  {"type": "response_item", "timestamp", "payload": {"type": "message"}}

A session is a conversation, named by its id and titled by its folder. Its messages are those of the person and of the
assistant. Ignored and counted: calls of tools and their results, thoughts, messages of subagents, summaries of a
session that became too long, copies that Claude Code's /branch made, and notices that the programs put into messages
of the person, such as reminders, output of commands and AGENTS.md. No line ever changes, so a file that grew adds only
new messages.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from .base import IgnoredContent, Importer, ImportItem, Message, make_storable, time_or_none
from .files import OpenFile
from .openai import content_text

NOTICES = IgnoredContent("notices of the program")
SUBAGENTS = IgnoredContent("messages of subagents")
SUMMARIES = IgnoredContent("summaries of the session")
ROLES = ("user", "assistant")
_KEYS = ("sessionId", "leafUuid", "messageId")  # every line of Claude Code has one of them
# Notices in a message of a person, each from the beginning of a line, or from the end of another one.
_ELEMENT = re.compile(
    r"(?:^|(?<=>))[ \t]*<(system-reminder|user-prompt-submit-hook|task-notification|"
    r"(?:local-command|command|bash)-[a-z]+|ide_[a-z_]+|environment_context|user_instructions|INSTRUCTIONS|turn_aborted|user_shell_command|user_action|"
    r"subagent_notification|skill)\b[^>\n]*>",
    re.MULTILINE,
)
_LINE = re.compile(
    r"^(?:\[Request interrupted by user[^\]\n]*\]|# AGENTS\.md instructions for .*|"
    r"Caveat: The messages below were .*)$",
    re.MULTILINE,
)
_EDITOR = re.compile(
    r"\A# (?:Context from my IDE setup|Files mentioned by the user):\n.*?^## My request for Codex:", re.S | re.M
)


class ClaudeCode(Importer):
    """Sessions of Claude Code."""

    name = "claude-code"
    advice = "it may still be written: import it again"
    files = re.compile(r"(?:.*/)?[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\.jsonl")  # not agent-….jsonl

    @staticmethod
    def recognizes(value: Any) -> bool:
        """Return whether a value is a line of a session."""
        return isinstance(value, dict) and "type" in value and not value.keys().isdisjoint(_KEYS)

    def convert(self, value: dict[str, Any], where: str) -> Iterator[ImportItem]:
        """Yield the message of a line, or what of it is ignored."""
        role, said, queued = value.get("type"), value.get("message") or {}, value.get("attachment") or {}
        if queued.get("type") == "queued_command" and queued.get("commandMode", "prompt") == "prompt":
            role, said = "user", {"content": queued.get("prompt")}  # typed while the assistant worked
        origin = value.get("origin") or queued.get("origin") or {}
        if value.get("isSidechain"):
            yield SUBAGENTS
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
            messages, said_at = _convert(role, said.get("content"), value["uuid"]), time_or_none(value.get("timestamp"))
            title = value.get("cwd")
            yield from self.records(messages, where, value["sessionId"], said_at, title=title, channel=self.name)


class Codex(Importer):
    """Sessions of Codex. Messages are known by their place: lines of older versions have no ids."""

    name = "codex"
    advice = ClaudeCode.advice
    files = re.compile(r"(?:.*/)?rollout-[^/]*\.jsonl")

    @staticmethod
    def recognizes(value: Any) -> bool:
        """Return whether a value is the line with which a session begins."""
        return isinstance(value, dict) and value.get("type") == "session_meta" and "payload" in value

    def read_file(self, file: OpenFile) -> Iterator[ImportItem]:
        """Yield what one session holds."""
        self._session: dict[str, Any] = {}
        self._messages = 0
        yield from super().read_file(file)

    def convert(self, value: dict[str, Any], where: str) -> Iterator[ImportItem]:
        """Yield the message of a line, or what of it is ignored."""
        item = value.get("payload") or {}
        kind = str(item.get("type"))
        if value["type"] == "session_meta":
            self._session = self._session or item  # in a fork those of other sessions follow
        elif value["type"] != "response_item":
            yield NOTICES
        elif kind == "message":
            self._messages += 1
            session = self._session
            if isinstance(session.get("source"), dict):  # {"subagent": …}; of a person's it is a name, such as "cli"
                yield SUBAGENTS
            elif (value.get("metadata") or {}).get("compaction_output"):
                yield SUMMARIES
            elif item.get("role") not in ROLES:
                yield NOTICES
            else:
                key, said_at = f"message:{self._messages}", time_or_none(value.get("timestamp"))
                messages, title = _convert(item["role"], item.get("content"), key), session.get("cwd")
                yield from self.records(messages, where, session["id"], said_at, title=title, channel=self.name)
        elif kind == "reasoning":
            yield IgnoredContent("thoughts of the model")
        else:
            yield IgnoredContent("results of tools" if kind.endswith("_output") else "calls of tools")


def _convert(role: str, content: Any, external_id: str) -> Iterator[Message | IgnoredContent]:
    text, ignored = content_text(content)
    yield from ignored
    text, metadata = make_storable(_remove_notices(text) if role == "user" else text)
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
    return _LINE.sub("", _EDITOR.sub("", "".join([*kept, text[at:]])))
