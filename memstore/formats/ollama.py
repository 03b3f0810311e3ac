"""Ollama's chat format: contents are texts, images stand apart, and arguments of tools are objects. Pure.

Ollama's own client for Python (0.6) drops the ids of calls and of results without a word, and its server pairs them
then by the tool's name and by their order. So each result names its tool, and results stand in the order of the calls.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Any, ClassVar

from memstore.formats import parts
from memstore.formats.parts import PartKind, PromptContent, PromptPart, RenderedPrompt
from memstore.models import Json, Role
from memstore.text import escape_control_tokens
from memstore.tool_calls import arguments_of, name_of, stored_call


@dataclass(frozen=True, slots=True)
class Ollama:
    """Chat messages as Ollama's `/api/chat` takes them.

    The message of a user who has a name begins with it, as "Alice: ", because the format has no field for names.
    """

    name: ClassVar[str] = "ollama"

    def render(self, content: PromptContent) -> RenderedPrompt:
        """Return the context as messages."""
        return RenderedPrompt(list(_name_results(map(_escape, parts.name_speakers(content.parts, users=True)))))

    def read(self, message: Mapping[str, Any]) -> list[Json]:
        """Return a model's answer as `add_many` takes it: its text and its calls."""
        called = message.get("tool_calls") or ()
        calls = [stored_call(call.get("id"), name_of(call), arguments_of(call)) for call in called]
        return [{"role": message["role"], "content": message.get("content") or "", "tool_calls": calls or None}]


def _escape(part: PromptPart) -> Json:
    """Return a message without control tokens of a chat template: the server would read them as its own frame.

    The system prompt is the application's, and may have them.
    """
    return part.message if part.kind is PartKind.SYSTEM else parts.map_texts(part.message, escape_control_tokens)


def _name_results(messages: Iterable[Json]) -> Iterator[Json]:
    """Yield the messages; results in the order of the calls before them, each with the name of its tool."""
    calls: list[Json] = []
    for are_results, group in groupby(messages, key=lambda message: message["role"] == Role.TOOL):
        if not are_results:
            talk = list(group)
            calls = talk[-1].get("tool_calls") or []
            yield from map(_message, talk)
            continue
        places = {call.get("id"): place for place, call in reversed(list(enumerate(calls)))}
        for result in sorted(group, key=lambda message: places.get(message.get("tool_call_id"), len(calls))):
            place = places.get(result.get("tool_call_id"))
            name = result.get("name") if place is None else name_of(calls[place])
            yield _message(result) | ({"tool_name": name} if name else {})


def _message(message: Json) -> Json:
    pieces = parts.content_parts(message.get("content"))
    images = [piece.data for piece in pieces if piece.kind == "image" and piece.data]
    thoughts = "\n".join(piece.text for piece in pieces if piece.kind == "thought" and piece.text)
    role = Role.SYSTEM if message["role"] == Role.DEVELOPER else message["role"]
    text = parts.plain_text(piece for piece in pieces if not (piece.kind == "image" and piece.data))
    more = {
        "thinking": thoughts,
        "images": images,
        "tool_calls": [_call(call) for call in message.get("tool_calls") or ()],
        "tool_call_id": message.get("tool_call_id"),
    }
    return {"role": str(role), "content": text} | {key: value for key, value in more.items() if value}


def _call(call: Json) -> Json:
    id = {"id": call["id"]} if call.get("id") else {}
    return id | {"function": {"name": name_of(call), "arguments": arguments_of(call)}}
