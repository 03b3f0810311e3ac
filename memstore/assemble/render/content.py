"""The content of a message: a text, or parts of it in the shapes of OpenAI and of Anthropic, read as one kind. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

from memstore.models import Json

_DATA = re.compile(r"data:([\w.+/-]+)(?:;[^,;]*)*;base64,(.*)", re.DOTALL)
_TEXTS = ("text", "input_text", "output_text", "refusal")
_FILES = ("file", "input_file", "document")
_IMAGES = ("image_url", "input_image", "image")
_THOUGHTS = ("thinking", "redacted_thinking")


@dataclass(frozen=True, slots=True)
class ContentPart:
    """A part of a content. `data` is in base64, of the kind `media`; `raw` is the part as it was stored."""

    kind: Literal["text", "image", "file", "thought", "other"]
    raw: Json
    text: str = ""
    media: str = ""
    data: str = ""
    url: str = ""

    @property
    def placeholder(self) -> str:
        """What stands for it in a format that has no place for it."""
        name = self.url or self.text or self.raw.get("type") or "?"
        label = self.kind if self.kind in ("image", "file") else str(self.raw.get("type") or "part")
        return f"[{label}]" if name == label else f"[{label}: {' '.join(str(name).split())}]"


def content_parts(content: object) -> list[ContentPart]:
    """Give the parts of a content, which may be a text, a list, or nothing."""
    if isinstance(content, str):
        return [ContentPart("text", {"type": "text", "text": content}, content)]
    return [_content_part(part) for part in content if isinstance(part, dict)] if isinstance(content, list) else []


def _content_part(part: Json) -> ContentPart:
    kind = part.get("type")
    if kind in _TEXTS:
        return ContentPart("text", part, str(part.get("text") or part.get("refusal") or ""))
    if kind in _THOUGHTS:
        return ContentPart("thought", part, str(part.get("thinking") or ""))
    if kind in _IMAGES:
        given = part.get("image_url")
        url = given.get("url") if isinstance(given, dict) else given
        return ContentPart("image", part, **_held(part.get("source"), url))
    if kind in _FILES:
        file = part.get("file") if isinstance(part.get("file"), dict) else part
        assert isinstance(file, dict)
        name = str(file.get("filename") or file.get("title") or "")
        return ContentPart("file", part, name, **_held(part.get("source"), file.get("file_data")))
    return ContentPart("other", part)


def _held(source: object, url: object) -> dict[str, Any]:
    """Give what a part holds: Anthropic's source, or a URL, which may itself be the data."""
    if isinstance(source, dict):
        if source.get("type") == "base64":
            return {"media": str(source.get("media_type") or ""), "data": str(source.get("data") or "")}
        url = source.get("url")
    found = _DATA.fullmatch(url) if isinstance(url, str) else None
    if found:
        return {"media": found[1], "data": found[2]}
    return {"url": url if isinstance(url, str) else ""}


def plain_text(found: Iterable[ContentPart]) -> str:
    """Give the texts of parts, and what stands for the others, thoughts aside, each from a line of its own."""
    return "\n".join(one.text if one.kind == "text" else one.placeholder for one in found if one.kind != "thought")


def prefixed(content: Any, prefix: str) -> Any:
    """Give a content with a text put before it."""
    if isinstance(content, list):
        first = content[0] if content else None
        if isinstance(first, dict) and first.get("type") in _TEXTS[:2] and isinstance(first.get("text"), str):
            return [first | {"text": prefix + first["text"]}, *content[1:]]
        return [{"type": "text", "text": prefix.rstrip()}, *content]
    return prefix + (content or "")
