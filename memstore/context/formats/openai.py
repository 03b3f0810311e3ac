"""OpenAI's chat format: messages as they were stored, but for what the API refuses. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from memstore.context.formats.parts import (
    ContentPart,
    PromptContent,
    PromptPart,
    RenderedPrompt,
    add_days_and_speakers,
    content_parts,
)
from memstore.models import Json
from memstore.tool_calls import arguments_text

_NOT_IN_NAMES = re.compile(r"[\s<|\\/>]+")
LONGEST_NAME = 64


@dataclass(frozen=True, slots=True)
class OpenAI:
    """Chat messages as OpenAI's API takes them, and most servers that speak its language.

    With `dates` the first message of a user's on each day begins with that day, as "[8 May 2023]".
    """

    dates: bool = False

    @property
    def name(self) -> str:
        """The name in receipts."""
        return "openai"

    def render(self, content: PromptContent) -> RenderedPrompt:
        """Return the context as messages."""
        parts = add_days_and_speakers(content.parts, dates=self.dates, speakers=False)
        return RenderedPrompt([as_openai(part) for part in parts])

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
