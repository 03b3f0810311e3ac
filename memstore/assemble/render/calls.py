"""Calls of tools and their results, as the formats of chat need them: with ids, and with arguments read. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from memstore.models import Json, Message, Role

UNREAD = "arguments"  # the key under which arguments stand that are no object of JSON


def identified(messages: Sequence[Message]) -> list[Json]:
    """Give a turn's messages as they were stored; calls and results without an id get one, from the call's number.

    A server that gives no ids (Ollama's of old) pairs them by their order, and so is it done here.
    """
    found = [message.as_chat() for message in messages]
    calls = messages[0].tool_calls if messages else None
    if not calls:
        return found
    results = [one for one in found if one["role"] == Role.TOOL]
    if len(calls) != len(results):
        return found
    known = [call.get("id") for call in calls], [result.get("tool_call_id") for result in results]
    if None not in known[0] and None not in known[1]:
        return found
    fresh = [f"call_{messages[0].seq}_{number}" for number in range(1, len(calls) + 1)]
    ids = [call or result or new for call, result, new in zip(*known, fresh, strict=True)]
    found[0] = found[0] | {"tool_calls": [call | {"id": id} for call, id in zip(calls, ids, strict=True)]}
    for place, (result, id) in enumerate(zip(results, ids, strict=True), len(found) - len(results)):
        found[place] = result | {"tool_call_id": id}
    return found


def name_of(call: Json) -> str:
    """Give the name of the function that is called."""
    return str(_function(call).get("name") or call.get("name") or "?")


def arguments_of(call: Json) -> Json:
    """Give the arguments as an object. Those that are none stand under one key: a context does not fail for them."""
    given = _function(call).get("arguments")
    try:
        value: Any = json.loads(given) if isinstance(given, str) and given.strip() else given or {}
    except ValueError:
        value = given
    return dict(value) if isinstance(value, Mapping) else {UNREAD: value}


def arguments_text(call: Json) -> str:
    """Give the arguments as JSON: as they were stored, where that is what they were."""
    given = _function(call).get("arguments")
    return given if isinstance(given, str) else json.dumps({} if given is None else given, ensure_ascii=False)


def stored_call(id: object, name: object, arguments: object) -> Json:
    """Give a call as memstore stores it, which is OpenAI's way; an id that there is not is left out."""
    text = arguments if isinstance(arguments, str) else json.dumps(arguments or {}, ensure_ascii=False)
    call: Json = {} if id is None else {"id": id}
    return call | {"type": "function", "function": {"name": name, "arguments": text}}


def _function(call: Json) -> Json:
    function = call.get("function")
    return function if isinstance(function, dict) else {}
