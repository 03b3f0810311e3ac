"""Messages as chat APIs have them: the text of a content of many parts, calls of tools, what a result answers. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from memstore.errors import InvalidInput
from memstore.tool_calls import arguments_text, name_of, stored_call

from .base import Ignored, check_storable, describe, is_id, make_storable

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


def content_text(content: object) -> tuple[str, list[Ignored]]:
    """Return the text of a content, which is a text, a list of texts and parts, or nothing; and what of it is ignored.

    An image is "[image]". Raises `InvalidInput` for what is no content.
    """
    if content is None or isinstance(content, str):
        return content or "", []
    if not isinstance(content, list):
        raise InvalidInput(f"its content is neither a text nor a list of parts but {describe(content)}")
    parts = list(_parts(content))
    texts = [part for part in parts if isinstance(part, str) and part.strip()]
    return "\n\n".join(texts), [part for part in parts if isinstance(part, Ignored)]


def _parts(content: list[object]) -> Iterator[str | Ignored]:
    for part in content:
        if isinstance(part, str):
            yield part
        elif not isinstance(part, dict):
            raise InvalidInput(f"a part of its content is neither a text nor an object but {describe(part)}")
        elif describe(part.get("type")) in IGNORED:
            yield Ignored(IGNORED[describe(part.get("type"))])
        elif isinstance(text := part.get("text", part.get("refusal")), str):
            yield text
        else:
            kind = describe(part.get("type"))
            yield f"[{_KINDS.get(kind, kind)}]"


def convert_message(role: str, given: dict[str, Any], external_id: str) -> tuple[dict[str, Any] | None, list[Ignored]]:
    """Return a message without its time, None where it says nothing; and what of it is ignored.

    `given` has `content` (a text or parts), `name`, `tool_calls` as OpenAI or LangChain write them, `tool_call_id`.
    Raises `InvalidInput` where one of these is not what it should be.
    """
    text, ignored = content_text(given.get("content"))
    text, metadata = make_storable(text)
    calls = _calls(given)
    if not text.strip() and not calls:
        return None, ignored or [Ignored("empty messages")]
    message: dict[str, Any] = {"role": role, "content": text if text.strip() else None, "external_id": external_id}
    if calls:
        message["tool_calls"] = calls  # which some write among the content, too
        ignored = [one for one in ignored if one.what != IGNORED["tool_use"]]
    for key in ("name", "tool_call_id"):
        if given.get(key) not in (None, ""):
            if not is_id(given[key]):
                raise InvalidInput(f"its {key} is no text that can be kept but {describe(given[key])}")
            message[key] = given[key]
    return message | {"metadata": metadata}, ignored


def _calls(given: dict[str, Any]) -> list[dict[str, Any]]:
    calls = given.get("tool_calls")
    if calls is None and isinstance(given.get("function_call"), dict):
        calls = [{"function": given["function_call"]}]
    if calls is None:
        return []
    if not isinstance(calls, list) or not all(isinstance(call, dict) for call in calls):
        raise InvalidInput(f"its tool_calls are no list of objects but {describe(calls)}")
    check_storable(calls)
    return [_call(call) for call in calls]


def _call(call: dict[str, Any]) -> dict[str, Any]:
    if "args" in call and "arguments" not in call and "function" not in call:
        call = {"id": call.get("id"), "name": call.get("name"), "arguments": call["args"]}
    if not isinstance(call.get("id"), str | None):
        raise InvalidInput(f"the id of a call of a tool is no text but {describe(call['id'])}")
    return stored_call(call.get("id"), name_of(call), arguments_text(call))
