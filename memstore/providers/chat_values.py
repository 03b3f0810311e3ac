"""What of a chat message is counted: its values as texts, whatever shape they have. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from memstore.errors import InvalidInput
from memstore.tool_calls import describe_call, describe_result, name_of, raw_arguments

TEXT_PARTS = ("text", "input_text", "output_text")


def texts(message: Mapping[str, Any]) -> Iterator[str]:
    """Give every value of a message as the text that is counted for it.

    A string is itself, None nothing, the parts of a list under "content" their texts; every other value (other parts,
    tool calls) is its compact JSON. Raises InvalidInput for a value that has no JSON.
    """
    for key, value in message.items():
        if value is None:
            continue
        if isinstance(value, str):
            yield value
        elif key == "content" and isinstance(value, list | tuple):
            yield from map(_text_of, value)
        else:
            yield as_json(value)


def check_tools(tools: object) -> None:
    """Raise InvalidInput for what are no definitions of tools: a list of objects, each with a name or its own kind.

    A name stands where OpenAI's chat has it, under "function", or beside the type as others have it.
    """
    if not isinstance(tools, list | tuple):
        raise InvalidInput(f"tools={tools!r:.60}: give a list of definitions, such as {_TOOL}.")
    for tool in tools:
        if not (isinstance(tool, Mapping) and _is_tool(tool)):
            raise InvalidInput(f"tools has {tool!r:.60}, which is no definition of a tool; give such as {_TOOL}.")


_TOOL = '{"type": "function", "function": {"name": "find", "parameters": {…}}}'


def _is_tool(tool: Mapping[Any, Any]) -> bool:
    kind = tool.get("type", "function")
    inner = tool.get(kind, tool) if isinstance(kind, str) else tool
    name = inner.get("name") if isinstance(inner, Mapping) else None
    built_in = isinstance(kind, str) and kind not in ("", "function", "custom") and name is None
    return built_in or (isinstance(name, str) and bool(name))


def only_text(messages: Sequence[Mapping[str, Any]]) -> bool:
    """Tell whether all that these messages hold is text: what an image or a sound costs, no text of theirs says."""
    return not any(message.get("images") or message.get("audio") or _other_parts(message) for message in messages)


def _other_parts(message: Mapping[str, Any]) -> bool:
    content = message.get("content")
    parts = content if isinstance(content, list | tuple) else ()
    return any(not isinstance(part, str) and not _is_text(part) for part in parts)


def _is_text(part: object) -> bool:
    return isinstance(part, Mapping) and part.get("type") in TEXT_PARTS and isinstance(part.get("text"), str)


def _text_of(part: object) -> str:
    if isinstance(part, str):
        return part
    # A part with more than its text, such as annotations, is counted with all of it.
    if not isinstance(part, Mapping) or part.keys() != {"type", "text"} or not _is_text(part):
        return as_json(part)
    return str(part["text"])


def as_json(value: object, indent: int | None = None) -> str:
    """Give the JSON of a value, compact or indented by so many blanks; raise InvalidInput where it has none."""
    try:
        return json.dumps(value, ensure_ascii=False, separators=None if indent else (",", ":"), indent=indent)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInput(f"A message holds a value that has no JSON, so it cannot be counted: {error}") from error


def as_template(message: Mapping[str, Any]) -> dict[str, Any]:
    """Give a message as templates take it: text for content, objects for the arguments of tool calls."""
    made = {key: value for key, value in message.items() if value is not None}
    content = made.get("content", "")
    made["content"] = "\n".join(map(_text_of, content)) if isinstance(content, list | tuple) else content
    if isinstance(made.get("tool_calls"), list | tuple):
        made["tool_calls"] = [_with_object(call) for call in made["tool_calls"]]
    return made


def tools_in_words(messages: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Give messages as templates take them with calls of tools as texts of the assistant's, results as the user's."""
    told: list[dict[str, Any]] = []
    names: dict[Any, str] = {}
    for message in messages:
        said = {key: value for key, value in message.items() if key not in ("tool_calls", "tool_call_id")}
        calls = [call for call in message.get("tool_calls") or () if isinstance(call, Mapping)]
        names |= {call.get("id"): name_of(call) for call in calls}
        lines = [describe_call(name_of(call), as_json(raw_arguments(call) or {})) for call in calls]
        if said.get("role") == "tool":
            name = names.get(message.get("tool_call_id")) or message.get("name")
            said, lines = {"role": "user"}, [describe_result(name), str(message.get("content"))]
        elif lines:
            lines = [text for text in (str(said.get("content") or ""), *lines) if text]
        told.append(said | ({"content": "\n".join(lines)} if lines else {}))
    return told


def _with_object(call: Any) -> Any:
    """Give a tool call whose arguments are an object, as templates expect: OpenAI writes them as JSON in a string."""
    function = call.get("function") if isinstance(call, Mapping) else None
    if not isinstance(function, Mapping):
        return call
    given = raw_arguments(call)
    return {**call, "function": {**function, "arguments": {} if given is None else given}}
