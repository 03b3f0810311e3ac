"""Training data, a conversation a line or in a list: OpenAI's fine-tuning files, and ShareGPT.

    {"messages": [{"role", "content", …}], "tools": […]}          {"id", "conversations": [{"from": "human", "value"}]}

Neither knows times: all messages have that of the import, and `{"occurred_at": "imported"}` in their metadata. A
conversation is named by its id, which some files give twice, or by a digest of what it says; a message by its place.
Roles, names, calls of tools and system messages are kept; an image is "[image]"; definitions of tools are ignored.
ShareGPT's `function_call` and `observation` are kept as the texts that they are.

Other formats have messages, or their content, as OpenAI's API has them: `convert_message` and `content_text`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

from memstore.errors import InvalidInput
from memstore.tool_calls import arguments_text, name_of, stored_call

from .base import Found, Ignored, Importer, Message, count_seen, derive_name, make_storable
from .files import find_keys, printable

OPENAI_ROLES = ("system", "developer", "user", "assistant", "tool")
SHAREGPT_ROLES = {
    "human": "user",
    "user": "user",
    "gpt": "assistant",
    "chatgpt": "assistant",
    "bing": "assistant",
    "bard": "assistant",
    "model": "assistant",
    "assistant": "assistant",
    "function_call": "assistant",
    "system": "system",
    "tool": "tool",
    "observation": "tool",
    "function_response": "tool",
}
# Kinds that are no part of what was said, and what a report calls them.
_IGNORED = {
    "thinking": "thoughts of the model",
    "redacted_thinking": "thoughts of the model",
    "reasoning": "thoughts of the model",
    "tool_use": "calls of tools",
    "tool_call": "calls of tools",
    "server_tool_use": "calls of tools",
    "tool_result": "results of tools",
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


def content_text(content: Any) -> tuple[str, list[Ignored]]:
    """Return the text of a content, which is a text, a list of texts and parts, or nothing; and what of it is ignored.

    An image is "[image]". Raises `InvalidInput` for what is no content.
    """
    if content is None or isinstance(content, str):
        return content or "", []
    if not isinstance(content, list):
        raise InvalidInput(f"its content is neither a text nor a list of parts but {printable(str(content))}")
    parts = list(_parts(content))
    texts = [part for part in parts if isinstance(part, str) and part.strip()]
    return "\n\n".join(texts), [part for part in parts if isinstance(part, Ignored)]


def _parts(content: list[Any]) -> Iterator[str | Ignored]:
    for part in content:
        if isinstance(part, str):
            yield part
        elif (kind := part.get("type")) in _IGNORED:
            yield Ignored(_IGNORED[kind])
        elif isinstance(text := part.get("text", part.get("refusal")), str):
            yield text
        else:
            yield f"[{_KINDS.get(kind, kind)}]"


def convert_message(role: str, given: dict[str, Any], external_id: str) -> Iterator[Message | Ignored]:
    """Yield a message without its time, unless it says nothing; and what of it is ignored.

    `given` has `content` (a text or parts), `name`, `tool_calls` as OpenAI or LangChain write them, `tool_call_id`.
    """
    text, ignored = content_text(given.get("content"))
    text, metadata = make_storable(text)
    calls = [_call(call) for call in given.get("tool_calls") or ()]
    if not text.strip() and not calls:
        yield from ignored or [Ignored("empty messages")]
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


class OpenAI(Importer):
    """OpenAI's fine-tuning files: `key` is that of the list of messages, `known_keys` are those that a file has."""

    name = "openai"
    again = 'write each conversation as one JSON object on a line of its own, {"messages": […]}'
    key = "messages"
    known_keys: ClassVar[tuple[str, ...]] = ("messages", "role")
    message_unit = "message"

    @classmethod
    def likeness(cls, head: bytes) -> float:
        """Return 0.8 for objects with the keys of the format."""
        return 0.8 if head[:1] in (b"{", b"[") and find_keys(head).issuperset(cls.known_keys) else 0.0

    def convert(self, value: dict[str, Any], where: str) -> Iterator[Found]:
        """Yield the messages of a conversation."""
        messages = value[self.key]
        if value.get("tools"):
            yield Ignored("definitions of tools")
        name = self._conversation_name(value)
        if isinstance(value.get("system"), str):
            messages = [{"from": "system", "role": "system", "value": value["system"]}, *messages]
        for number, message in enumerate(messages, 1):
            at = f"{where}, {self.message_unit} {number}"
            yield from self.records(self._convert_message(message, f"turn:{number}"), at, name)

    def _conversation_name(self, value: dict[str, Any]) -> str:
        return derive_name(value["messages"], "training", self.seen)

    def _convert_message(self, message: dict[str, Any], external_id: str) -> Iterator[Message | Ignored]:
        role = message.get("role")
        if role not in OPENAI_ROLES:
            raise InvalidInput(f"its role ({printable(str(role))}) is none of {', '.join(OPENAI_ROLES)}")
        yield from convert_message(role, message, external_id)


class ShareGPT(OpenAI):
    """ShareGPT's conversations."""

    name = "sharegpt"
    key = "conversations"
    known_keys = ("conversations", "from", "value")
    message_unit = "turn"
    again = 'write each conversation as {"id": …, "conversations": [{"from": "human", "value": "…"}]}'

    def _conversation_name(self, value: dict[str, Any]) -> str:
        if value.get("id") in (None, ""):
            return derive_name(value["conversations"], "sharegpt", self.seen)
        key = str(value["id"])
        count = count_seen(f"id {key}", self.seen)
        return key if count == 1 else f"{key}-{count}"

    def _convert_message(self, message: dict[str, Any], external_id: str) -> Iterator[Message | Ignored]:
        sender = message.get("from", message.get("role"))
        if sender not in SHAREGPT_ROLES:
            raise InvalidInput(f"it is from nobody known ({printable(str(sender))}) but {', '.join(SHAREGPT_ROLES)}")
        text = message.get("value", message.get("content"))
        yield from convert_message(SHAREGPT_ROLES[sender], {"content": text}, external_id)
