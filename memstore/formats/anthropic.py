"""Anthropic's format of messages: the system prompt apart, users and the assistant by turns, tools as blocks. Pure.

    system     the system prompt · instructions of the conversation · static sections, standing facts · its summaries
    messages   recent turns, records of shortened ones in their place │ other sections, facts and hits, the question

What changes with the question stands in the last message of the user's, so that a cached prefix stays good: Anthropic's
cache goes from the tools over `system` to the messages.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from string import ascii_letters, digits
from typing import Any, ClassVar

from memstore.formats import parts
from memstore.formats.parts import ContentPart, PartKind, PromptContent, PromptPart, RenderedPrompt
from memstore.models import INSTRUCTION_ROLES, Json, Role
from memstore.tool_calls import arguments_of, name_of, stored_call

_ORDER = (PartKind.SYSTEM, PartKind.MESSAGE, PartKind.STATIC_SECTION, PartKind.STANDING_FACTS, PartKind.SUMMARIES)


@dataclass(frozen=True, slots=True)
class Anthropic:
    """`system` and `messages` as Anthropic's API takes them.

    Instructions within the conversation (roles system and developer) go to `system`: in a user's turn anybody could
    forge them. The message of a user who has a name begins with it, as "Alice: ".
    """

    name: ClassVar[str] = "anthropic"

    def render(self, content: PromptContent) -> RenderedPrompt:
        """Return the context as a system prompt and messages."""
        above: list[PromptPart] = []
        below: list[PromptPart] = []
        for part in parts.name_speakers(content.parts, users=True):
            is_above = part.kind in _ORDER and part.role in INSTRUCTION_ROLES
            (above if is_above else below).append(part)
        above.sort(key=lambda part: _ORDER.index(part.kind))
        texts = [parts.plain_text(parts.content_parts(part.message.get("content"))) for part in above]
        system = "\n\n".join(text for text in texts if text.strip())
        return RenderedPrompt(_alternate(below), system or None)

    def read(self, message: Mapping[str, Any]) -> list[Json]:
        """Return a message of this format, such as a model's answer, as `add_many` takes it, each result apart."""
        content = message["content"]
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else [dict(block) for block in content]
        results = [_stored_result(block) for block in blocks if block["type"] == "tool_result"]
        uses = [block for block in blocks if block["type"] == "tool_use"]
        calls = [stored_call(use["id"], use["name"], use["input"]) for use in uses]
        rest = [block for block in blocks if block["type"] not in ("tool_use", "tool_result")]
        if not rest and not calls:
            return results
        stored: Json = {"role": message["role"], "content": _stored_content(rest)}
        return [*results, stored | ({"tool_calls": calls} if calls else {})]


def _alternate(below: Iterable[PromptPart]) -> list[Json]:
    """Return messages of users and of the assistant in turns, the user first; neighbours of one role are merged."""
    messages: list[Json] = []
    ids = _CallIds()
    for part in below:
        blocks = _blocks(part, ids)
        if not blocks:
            continue
        role = Role.ASSISTANT if part.role == Role.ASSISTANT else Role.USER
        # A user has the first word, whatever the window begins with.
        if not messages and role == Role.ASSISTANT:
            messages.append({"role": "user", "content": [_text("[Here the conversation opens.]")]})
        if messages and messages[-1]["role"] == role:
            messages[-1]["content"] += blocks
        else:
            messages.append({"role": str(role), "content": blocks})
    return messages


@dataclass(slots=True)
class _CallIds:
    """Ids of calls as Anthropic takes them: letters, digits, "_" and "-", each once in a context."""

    used: set[str] = field(default_factory=set)
    open: dict[object, list[str]] = field(default_factory=lambda: defaultdict(list))

    def of_call(self, id: object) -> str:
        allowed = set(f"{ascii_letters}{digits}_-")
        base = "".join(char if char in allowed else "_" for char in str(id or "call"))
        fresh, number = base, 1
        while fresh in self.used:
            number += 1
            fresh = f"{base}_{number}"
        self.used.add(fresh)
        self.open[id].append(fresh)
        return fresh

    def of_result(self, id: object) -> str:
        return self.open[id].pop(0) if self.open[id] else str(id)


def _blocks(part: PromptPart, ids: _CallIds) -> list[Json]:
    message = part.message
    blocks = [block for piece in parts.content_parts(message.get("content")) if (block := _block(piece, part.role))]
    if part.role == Role.TOOL:
        result = {"type": "tool_result", "tool_use_id": ids.of_result(message.get("tool_call_id"))}
        return [result | ({"content": blocks} if blocks else {})]
    if part.kind is PartKind.QUESTION and not blocks:
        # Blank texts are refused, and the question must be there.
        return [_text("[An empty message.]")]
    for call in message.get("tool_calls") or ():
        id = ids.of_call(call.get("id"))
        blocks.append({"type": "tool_use", "id": id, "name": name_of(call), "input": arguments_of(call)})
    return blocks


def _block(piece: ContentPart, role: str) -> Json | None:
    """Return a part as a block; None for a blank text, and for thoughts that are not Anthropic's, which it refuses."""
    if piece.kind == "text":
        return _text(piece.text) if piece.text.strip() else None
    if piece.kind == "thought":
        signed = "signature" in piece.raw or "data" in piece.raw
        return piece.raw if signed and role == Role.ASSISTANT else None
    kind = {"image": "image", "file": "document"}.get(piece.kind)
    if kind is None or role == Role.ASSISTANT:
        return _text(piece.placeholder)
    if piece.raw.get("type") == kind and "source" in piece.raw:
        return piece.raw
    if piece.data and (kind == "image" or piece.media == "application/pdf"):
        return {"type": kind, "source": {"type": "base64", "media_type": piece.media, "data": piece.data}}
    if kind == "image" and piece.url.startswith(("https://", "http://")):
        return {"type": kind, "source": {"type": "url", "url": piece.url}}
    return _text(piece.placeholder)


def _text(text: str) -> Json:
    return {"type": "text", "text": text}


def _stored_result(block: Mapping[str, Any]) -> Json:
    content = block.get("content") or ""
    stored = content if isinstance(content, str) else _stored_content([dict(inner_block) for inner_block in content])
    return {"role": "tool", "content": stored or "", "tool_call_id": block["tool_use_id"]}


def _stored_content(blocks: list[Json]) -> Any:
    """Return a content as it is stored: a text, or parts, with Anthropic's own as they are; None for nothing."""
    if not blocks:
        return None
    if len(blocks) == 1 and blocks[0]["type"] == "text":
        return blocks[0]["text"]
    return [_text(block["text"]) if block["type"] == "text" else block for block in blocks]
