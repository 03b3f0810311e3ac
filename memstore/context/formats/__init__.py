"""Formats: the selected content as a finished context, in the messages of a model's API or as one text. Pure.

parts: what every format is given, and what is remembered as text · then one module a format. Here are OpenAI's chat
format, which is the default, and the formats by name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from memstore.context.formats.anthropic import Anthropic
from memstore.context.formats.ollama import Ollama
from memstore.context.formats.parts import (
    ContentPart,
    Format,
    PromptContent,
    PromptPart,
    RenderedPrompt,
    content_parts,
    memory_text,
    name_speakers,
    turn_parts,
)
from memstore.context.formats.text import PlainText
from memstore.context.strategies.base import Entry
from memstore.errors import InvalidInput
from memstore.models import Hit, Json
from memstore.tool_calls import arguments_text

_NOT_IN_NAMES = re.compile(r"[\s<|\\/>]+")
LONGEST_NAME = 64


@dataclass(frozen=True, slots=True)
class OpenAI:
    """Chat messages as OpenAI's API takes them, and most servers that speak its language."""

    name: ClassVar[str] = "openai"

    def render(self, content: PromptContent) -> RenderedPrompt:
        """Return the context as messages."""
        return RenderedPrompt([as_openai(part) for part in name_speakers(content.parts, users=False)])

    def read(self, message: Mapping[str, Any]) -> list[Json]:
        """Return a message of this format, such as a model's answer, as `add_many` takes it."""
        kept = ("role", "content", "name", "tool_calls", "tool_call_id")
        return [{key: message[key] for key in kept if message.get(key) is not None}]


def as_openai(part: PromptPart) -> Json:
    """Return a message as it was stored, changed where OpenAI refuses it.

    A name has no blanks there, arguments are a text, and thoughts are left out.
    """
    message = part.message
    changed: Json = {}
    if name := message.get("name"):
        changed["name"] = _NOT_IN_NAMES.sub("_", name)[:LONGEST_NAME]
    if calls := message.get("tool_calls"):
        changed["tool_calls"] = [_call(call) for call in calls]
    if isinstance(message.get("content"), list):
        parts = [_part(piece) for piece in content_parts(message["content"]) if piece.kind != "thought"]
        changed["content"] = parts or (None if calls else "")
    return message | changed if changed else message


def _call(call: Json) -> Json:
    function = call.get("function")
    if not isinstance(function, dict) or (isinstance(function.get("arguments"), str) and "type" in call):
        return call
    return call | {"type": "function", "function": function | {"arguments": arguments_text(call)}}


def _part(piece: ContentPart) -> Json:
    if piece.kind == "image" and piece.raw.get("type") == "image":
        url = f"data:{piece.media};base64,{piece.data}" if piece.data else piece.url
        return {"type": "image_url", "image_url": {"url": url}}
    if piece.raw.get("type") == "document":
        if not piece.data:
            return {"type": "text", "text": piece.placeholder}
        file = {"filename": piece.text or "document", "file_data": f"data:{piece.media};base64,{piece.data}"}
        return {"type": "file", "file": file}
    return piece.raw


OPENAI = OpenAI()
FORMATS: dict[str, Format] = {format.name: format for format in (OPENAI, Ollama(), Anthropic(), PlainText())}


def get_format(format: str | Format) -> Format:
    """Return the format of this name; a format is returned as it is. Raise `InvalidInput` for anything else."""
    if isinstance(format, str):
        if format in FORMATS:
            return FORMATS[format]
    elif callable(getattr(format, "render", None)) and isinstance(getattr(format, "name", None), str):
        return format
    names = ", ".join(FORMATS)
    raise InvalidInput(f"format={format!r:.60}: give one of {names}, or an object with `name` and `render`.")


def turn_messages(turns: Iterable[Entry]) -> list[Json]:
    """Return the messages of turns in OpenAI's format; adjacent blocks are one system message."""
    return [as_openai(part) for part in name_speakers(turn_parts(turns), users=False)]


def memory_messages(facts: Sequence[Hit], hits: Sequence[Hit]) -> list[Json]:
    """Return facts and hits as one system message; none for none."""
    text = memory_text(facts, hits)
    return [{"role": "system", "content": text}] if text else []
