"""Messages as chat APIs have them: the text of a content of many parts, calls of tools, what a result answers. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from memstore.errors import InvalidInput
from memstore.tool_calls import arguments_text, name_of, stored_call

from .base import Ignored, make_storable, printable

# Kinds that are no part of what was said, and what a report calls them.
IGNORED = {
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
        elif (kind := part.get("type")) in IGNORED:
            yield Ignored(IGNORED[kind])
        elif isinstance(text := part.get("text", part.get("refusal")), str):
            yield text
        else:
            yield f"[{_KINDS.get(kind, kind)}]"


def convert_message(role: str, given: dict[str, Any], external_id: str) -> Iterator[dict[str, Any] | Ignored]:
    """Yield a message without its time, unless it says nothing; and what of it is ignored.

    `given` has `content` (a text or parts), `name`, `tool_calls` as OpenAI or LangChain write them, `tool_call_id`.
    """
    text, ignored = content_text(given.get("content"))
    text, metadata = make_storable(text)
    calls = [_call(call) for call in given.get("tool_calls") or ()]
    if function_call := given.get("function_call"):
        calls = calls or [_call({"function": function_call})]
    if not text.strip() and not calls:
        yield from ignored or [Ignored("empty messages")]
        return
    message: dict[str, Any] = {"role": role, "content": text if text.strip() else None, "external_id": external_id}
    if calls:
        message["tool_calls"] = calls  # which some write among the content, too
        ignored = [one for one in ignored if one.what != IGNORED["tool_use"]]
    message |= {key: given[key] for key in ("name", "tool_call_id") if given.get(key)}
    yield from ignored
    yield message | {"metadata": metadata}


def _call(call: dict[str, Any]) -> dict[str, Any]:
    if "args" in call and "arguments" not in call and "function" not in call:
        call = call | {"arguments": call["args"]}
    return stored_call(call.get("id"), name_of(call), arguments_text(call))
