"""OpenAI's fine-tuning files, a conversation a line or in a list: {"messages": [{"role", "content", …}], "tools": […]}

They know no times: all messages have that of the import, and `{"occurred_at": "imported"}` in their metadata. A
conversation is named by a digest of what it says, a message by its place. Roles, names, calls of tools and system
messages are kept; an image is "[image]"; definitions of tools are ignored.

Other formats have messages, or their content, as OpenAI's API has them: `convert_message` and `content_text`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from memstore.errors import InvalidInput
from memstore.tool_calls import arguments_text, name_of, stored_call

from .base import IgnoredContent, Importer, ImportItem, Message, derive_name, make_storable
from .files import find_keys, printable

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
_KINDS = {
    "image_url": "image",
    "input_image": "image",
    "audio_url": "audio",
    "input_audio": "audio",
    "video_url": "video",
    "input_file": "file",
    "document": "file",
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
        if isinstance(part, str):
            yield part
        elif (kind := part.get("type")) in _IGNORED:
            yield IgnoredContent(_IGNORED[kind])
        elif isinstance(text := part.get("text", part.get("refusal")), str):
            yield text
        else:
            yield f"[{_KINDS.get(kind, kind)}]"


def convert_message(role: str, given: dict[str, Any], external_id: str) -> Iterator[Message | IgnoredContent]:
    """Yield a message without its time, unless it is empty, and its ignored parts.

    `given` has `content` (a text or parts), `name`, `tool_calls` as OpenAI or LangChain write them, `tool_call_id`.
    """
    text, ignored = content_text(given.get("content"))
    text, metadata = make_storable(text)
    calls = [_call(call) for call in given.get("tool_calls") or ()]
    if not text.strip() and not calls:
        yield from ignored or [IgnoredContent("empty messages")]
        return
    message: Message = {"role": role, "content": text if text.strip() else None, "external_id": external_id}
    if calls:
        message["tool_calls"] = calls  # which some write among the content, too
        ignored = [one for one in ignored if one.what != _IGNORED["tool_use"]]
    message |= {key: given[key] for key in ("name", "tool_call_id") if given.get(key)}
    yield from ignored
    yield message | {"metadata": metadata}


def _call(call: dict[str, Any]) -> dict[str, Any]:
    if "args" in call and "arguments" not in call and "function" not in call:
        call = call | {"arguments": call["args"]}
    return stored_call(call.get("id"), name_of(call), arguments_text(call))


class OpenAIChats(Importer):
    """OpenAI's fine-tuning files."""

    name = "openai"
    advice = 'write each conversation as one JSON object on a line of its own, {"messages": […]}'

    @staticmethod
    def rate_head(head: bytes) -> float:
        """Return 0.8 for objects with the keys of the format."""
        return 0.8 if head[:1] in (b"{", b"[") and find_keys(head).issuperset(("messages", "role")) else 0.0

    def convert(self, value: dict[str, Any], where: str) -> Iterator[ImportItem]:
        """Yield the messages of a conversation."""
        messages = value["messages"]
        if value.get("tools"):
            yield IgnoredContent("definitions of tools")
        name = derive_name(messages, "training", self.equal_counts)
        for number, message in enumerate(messages, 1):
            yield from self.records(_convert(message, f"turn:{number}"), f"{where}, message {number}", name)


def _convert(message: dict[str, Any], external_id: str) -> Iterator[Message | IgnoredContent]:
    role = message.get("role")
    if role not in ROLES:
        raise InvalidInput(f"its role ({printable(str(role))}) is none of {', '.join(ROLES)}")
    yield from convert_message(role, message, external_id)
