"""A call of a tool, as OpenAI's chat writes it and memstore stores it: its name, its arguments, and both in words.

    {"id": "call_1", "type": "function", "function": {"name": "find", "arguments": "{\"what\": \"ferry\"}"}}

Others write the name and the arguments (or "input") next to the id, or the arguments as an object; all are read. Pure.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from memstore.text import read_json


def name_of(call: Mapping[str, Any]) -> str:
    """Return the name of the function that is called, or that a definition of a tool is for; "?" without one."""
    return str(_function(call).get("name") or "?")


def raw_arguments(call: Mapping[str, Any]) -> object:
    """Return the arguments, JSON in a string being read; a text that is no JSON is itself, and none are None."""
    arguments = _stored_arguments(call)
    if not isinstance(arguments, str):
        return arguments
    try:
        return read_json(arguments) if arguments.strip() else None
    except ValueError:
        return arguments


def arguments_of(call: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments as an object. Those that are none stand under one key: a context does not fail for them."""
    arguments = raw_arguments(call) or {}
    return dict(arguments) if isinstance(arguments, Mapping) else {"arguments": arguments}


def arguments_text(call: Mapping[str, Any]) -> str:
    """Return the arguments as JSON: as they were stored, where that is what they were."""
    value = _stored_arguments(call)
    return value if isinstance(value, str) else json.dumps({} if value is None else value, ensure_ascii=False)


def stored_call(id: object, name: object, arguments: object) -> dict[str, Any]:
    """Return a call as memstore stores it, which is OpenAI's way; an id that there is not is left out."""
    text = arguments if isinstance(arguments, str) else json.dumps(arguments or {}, ensure_ascii=False)
    call: dict[str, Any] = {} if id is None else {"id": id}
    return call | {"type": "function", "function": {"name": name, "arguments": text}}


def describe_call(name: str, arguments: str) -> str:
    """Return a call as a line of text, for readers without calls: another assistant, a model without tools."""
    return f"[calls {name} {arguments}]"


def describe_result(tool: str | None) -> str:
    """Return the line that stands over the result of a tool."""
    return f"[result of {tool or 'a tool'}]"


def _function(call: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return where the name and the arguments stand."""
    function = call.get("function")
    return function if isinstance(function, Mapping) else call


def _stored_arguments(call: Mapping[str, Any]) -> object:
    function = _function(call)
    return function.get("arguments", function.get("input"))
