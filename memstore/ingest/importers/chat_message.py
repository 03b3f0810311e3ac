"""A message as chat APIs have it, in the pivot's words: its text, its calls of tools, what it answers. Pure."""

from __future__ import annotations

from typing import Any

from memstore.errors import InvalidInput
from memstore.tool_calls import arguments_text, name_of, stored_call

from .content import UNSAID, blocks_text
from .records import LeftOut, check_storable, is_id, storable, word


def chat_message(role: str, given: dict[str, Any], external_id: str) -> tuple[dict[str, Any] | None, list[LeftOut]]:
    """Give a message but for its time, None where it says nothing; and what of it is left out.

    `given` has `content` (a text or parts), `name`, `tool_calls` as OpenAI or LangChain write them, `tool_call_id`.
    InvalidInput where one of these is not what it should be.
    """
    text, left_out = blocks_text(given.get("content"))
    text, metadata = storable(text)
    calls = _calls(given)
    if not text.strip() and not calls:
        return None, left_out or [LeftOut("empty messages")]
    message: dict[str, Any] = {"role": role, "content": text if text.strip() else None, "external_id": external_id}
    if calls:
        message["tool_calls"] = calls  # which some write among the content, too
        left_out = [one for one in left_out if one.what != UNSAID["tool_use"]]
    for key in ("name", "tool_call_id"):
        if given.get(key) not in (None, ""):
            if not is_id(given[key]):
                raise InvalidInput(f"its {key} is no text that can be kept but {word(given[key])}")
            message[key] = given[key]
    return message | {"metadata": metadata}, left_out


def _calls(given: dict[str, Any]) -> list[dict[str, Any]]:
    calls = given.get("tool_calls")
    if calls is None and isinstance(given.get("function_call"), dict):
        calls = [{"function": given["function_call"]}]
    if calls is None:
        return []
    if not isinstance(calls, list) or not all(isinstance(call, dict) for call in calls):
        raise InvalidInput(f"its tool_calls are no list of objects but {word(calls)}")
    check_storable(calls)
    return [_call(call) for call in calls]


def _call(call: dict[str, Any]) -> dict[str, Any]:
    if "args" in call and "arguments" not in call and "function" not in call:
        call = {"id": call.get("id"), "name": call.get("name"), "arguments": call["args"]}
    if not isinstance(call.get("id"), str | None):
        raise InvalidInput(f"the id of a call of a tool is no text but {word(call['id'])}")
    return stored_call(call.get("id"), name_of(call), arguments_text(call))
