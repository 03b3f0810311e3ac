"""Conversations as OpenAI's API has them, a file, a line or in a list: {"messages": [{"role", "content", …}]}

A conversation is named by its `id`, else by a digest of what it says, a message by its place. Other formats have
messages, or their content, as OpenAI's API has them: `convert_message` and `content_text`.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from memstore.errors import InvalidInput
from memstore.tool_calls import arguments_text, name_of, stored_call

from .base import IgnoredContent, Importer, ImportItem, Message, derive_name, make_storable, parse_time, placeholder
from .files import ImportProblem, printable

ROLES = ("system", "developer", "user", "assistant", "tool")
# Kinds that are no part of what was said, and what a report calls them.
_IGNORED = {
    "thinking": "thoughts of the model",
    "redacted_thinking": "thoughts of the model",
    "reasoning": "thoughts of the model",
    "tool_use": "calls of tools",
    "tool_call": "calls of tools",
    "server_tool_use": "calls of tools",
    "tool_result": "results of tools",
    "web_search_tool_result": "results of tools",
}


def content_text(content: Any) -> tuple[str, list[IgnoredContent]]:
    """Return the text of a content (a text, a list of texts and parts, or nothing), and its ignored parts.

    An image is "[image]". Raises `InvalidInput` for what is no content.
    """
    if content is None or isinstance(content, str):
        return content or "", []
    if not isinstance(content, list):
        raise InvalidInput(f"its content is neither a text nor a list of parts but {printable(str(content))}")
    parts = list(_parts(content))
    texts = [part for part in parts if isinstance(part, str) and part.strip()]
    return "\n\n".join(texts), [part for part in parts if isinstance(part, IgnoredContent)]


def _parts(content: list[Any]) -> Iterator[str | IgnoredContent]:
    for part in content:
        if part is None:
            continue
        if isinstance(part, str):
            yield part
        elif (kind := part.get("type")) in _IGNORED:
            yield IgnoredContent(_IGNORED[kind])
        elif isinstance(text := part.get("text", part.get("refusal")), str):
            yield text
        else:
            yield placeholder(kind)


def convert_message(role: str, fields: dict[str, Any], external_id: str) -> Iterator[Message | IgnoredContent]:
    """Yield a message without its time, unless it is empty, and its ignored parts.

    `fields` hold `content` (a text or parts), `name`, `tool_calls` as OpenAI or LangChain write them, `tool_call_id`.
    """
    text, ignored = content_text(fields.get("content"))
    text, metadata = make_storable(text)
    calls = [_call(call) for call in fields.get("tool_calls") or ()]
    if not text.strip() and not calls:
        yield from ignored or [IgnoredContent("empty messages")]
        return
    message: Message = {"role": role, "content": text if text.strip() else None, "external_id": external_id}
    if calls:
        # Some write them among the content, too.
        message["tool_calls"] = calls
        ignored = [part for part in ignored if part.what != _IGNORED["tool_use"]]
    message |= {key: fields[key] for key in ("name", "tool_call_id") if fields.get(key)}
    yield from ignored
    yield message | {"metadata": metadata}


def _call(call: dict[str, Any]) -> dict[str, Any]:
    if "args" in call and "arguments" not in call and "function" not in call:
        call = call | {"arguments": call["args"]}
    return stored_call(call.get("id"), name_of(call), arguments_text(call))


class OpenAIChats(Importer):
    name = "openai"
    advice = 'write each conversation as one JSON object on a line of its own, {"messages": […]}'

    @staticmethod
    def recognizes(value: Any) -> bool:
        messages = _chat(value).get("messages")
        first = messages[0] if isinstance(messages, list) and messages else None
        return isinstance(first, dict) and first.get("role") in ROLES

    def convert(self, value: dict[str, Any], where: str) -> Iterator[ImportItem]:
        chat = _chat(value)
        messages, before = chat["messages"], None
        if chat.get("tools"):
            yield IgnoredContent("definitions of tools")
        name = str(value.get("id") or chat.get("id") or derive_name(messages, "training", self.equal_counts))
        title = make_storable(str(value.get("title") or chat.get("title") or ""))[0].strip() or None
        for number, message in enumerate(messages, 1):
            at = f"{where}, message {number}"
            for time in self.report_damage(_time(message), at):
                if isinstance(time, ImportProblem):
                    yield time
                else:
                    yield from self.records(_convert(message, f"turn:{number}"), at, name, time, before, title=title)
                    before = time or before


def _chat(value: Any) -> dict[str, Any]:
    """Return the conversation, which open-webui writes inside of `chat`."""
    chat = value.get("chat", value) if isinstance(value, dict) else None
    return chat if isinstance(chat, dict) else {}


def _time(message: dict[str, Any]) -> Iterator[datetime | None]:
    time = next(
        (message[key] for key in ("timestamp", "created_at", "occurred_at") if message.get(key) is not None), None
    )
    yield None if time is None else parse_time(time)


def _convert(message: dict[str, Any], external_id: str) -> Iterator[Message | IgnoredContent]:
    role = message.get("role")
    if role not in ROLES:
        raise InvalidInput(f"its role ({printable(str(role))}) is none of {', '.join(ROLES)}")
    yield from convert_message(role, message, external_id)
