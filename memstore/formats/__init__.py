"""Formats of a context: messages of a model's API, or one text. `context(format=…)` takes a name or an object as here.

    context = trip.context("Where to?", budget=2000, format="anthropic")
    answer = client.messages.create(model=…, system=context.system, messages=context.messages, max_tokens=500)
    trip.add_many(Anthropic().read(answer.model_dump()))

A format of your own is a frozen class with `name` and `render`, as `Format` says; see docs/reference/rendering.md. Here
are OpenAI's chat format, which is the default, plain text, and the formats by name. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any, ClassVar, Literal

from memstore.errors import InvalidInput
from memstore.formats import parts
from memstore.formats.anthropic import Anthropic as Anthropic
from memstore.formats.ollama import Ollama as Ollama
from memstore.formats.parts import (
    CustomSection as CustomSection,
    Format as Format,
    PartKind as PartKind,
    PromptContent as PromptContent,
    PromptPart as PromptPart,
    RenderedPrompt as RenderedPrompt,
)
from memstore.models import Hit, Json
from memstore.strategies.base import Entry
from memstore.text import fence, format_day
from memstore.tool_calls import arguments_text, name_of


@dataclass(frozen=True, slots=True)
class OpenAI:
    """Chat messages as OpenAI's API and compatible servers take them."""

    name: ClassVar[str] = "openai"

    def render(self, content: PromptContent) -> RenderedPrompt:
        """Return the context as messages."""
        return RenderedPrompt([as_openai(part) for part in parts.name_speakers(content.parts, users=False)])

    def read(self, message: Mapping[str, Any]) -> list[Json]:
        """Return a message of this format, such as a model's answer, as `add_many` takes it."""
        kept = ("role", "content", "name", "tool_calls", "tool_call_id")
        return [{key: message[key] for key in kept if message.get(key) is not None}]


def as_openai(part: PromptPart) -> Json:
    """Return a message as it was stored, changed where OpenAI refuses it."""
    message = part.message
    changed: Json = {}
    if name := message.get("name"):
        changed["name"] = re.sub(r"[\s<|\\/>]+", "_", name)[:64]
    if calls := message.get("tool_calls"):
        changed["tool_calls"] = [_call(call) for call in calls]
    if isinstance(message.get("content"), list):
        pieces = [_part(piece) for piece in parts.content_parts(message["content"]) if piece.kind != "thought"]
        changed["content"] = pieces or (None if calls else "")
    return message | changed if changed else message


def _call(call: Json) -> Json:
    function = call.get("function")
    if not isinstance(function, dict) or (isinstance(function.get("arguments"), str) and "type" in call):
        return call
    return call | {"type": "function", "function": function | {"arguments": arguments_text(call)}}


def _part(piece: parts.ContentPart) -> Json:
    if piece.kind == "image" and piece.raw.get("type") == "image":
        url = f"data:{piece.media};base64,{piece.data}" if piece.data else piece.url
        return {"type": "image_url", "image_url": {"url": url}}
    if piece.raw.get("type") == "document":
        if not piece.data:
            return {"type": "text", "text": piece.placeholder}
        file = {"filename": piece.text or "document", "file_data": f"data:{piece.media};base64,{piece.data}"}
        return {"type": "file", "file": file}
    return piece.raw


@dataclass(frozen=True, slots=True)
class PlainText:
    """One text with sections under headings, the system prompt first. Its tokens are the text's alone, of no chat."""

    name: ClassVar[str] = "text"

    def render(self, content: PromptContent) -> RenderedPrompt:
        """Return the context as a text whose frame no message can imitate."""
        question = _message_lines(PromptPart(PartKind.QUESTION, content.question)) if content.question else ()
        sections = [
            *((section.name, parts.section_text(section)) for section in content.static_sections),
            ("What holds always", parts.standing_facts_text(content.standing_facts)),
            ("Earlier in this conversation", parts.summaries_text(content.summaries)),
            ("The latest messages", _conversation_text(content.turns_before)),
            *((section.name, parts.section_text(section)) for section in content.custom_sections),
            ("Remembered", parts.memory_text(content.facts, content.hits)),
            ("The next message", "\n".join(line.strip() for line in question)),
            ("What came after it", _conversation_text(content.turns_after)),
        ]
        system = [content.system] if content.system else []
        return RenderedPrompt(text="\n\n".join([*system, *(f"# {name}\n{text}" for name, text in sections if text)]))


@dataclass(frozen=True, slots=True)
class MemoryText:
    """The same text without the question, which the session of an agent has itself."""

    name: ClassVar[str] = "memory"

    def render(self, content: PromptContent) -> RenderedPrompt:
        """Return the context as a text, without the question."""
        return PlainText().render(replace(content, question=None))


def _conversation_text(turns: Sequence[Entry]) -> str:
    """Return turns as a text: a line for each day, each message behind its speaker; "" without any."""
    texts, (head, foot) = [], fence("conversation")
    for are_records, group in groupby(parts.turn_parts(turns), key=lambda part: part.kind is PartKind.RECORD):
        if are_records:
            texts += [str(part.message["content"]) for part in group]
        else:
            texts.append("\n".join([head, *_conversation_lines(group), foot]))
    return "\n".join(texts)


def _conversation_lines(messages: Iterable[PromptPart]) -> Iterator[str]:
    last_day, tool_names = None, dict[object, str]()
    for part in messages:
        today = format_day(part.stored.occurred_at) if part.stored else last_day
        if today != last_day:
            yield f"[{today}]"
            last_day = today
        tool_names |= {call.get("id"): name_of(call) for call in part.message.get("tool_calls") or ()}
        yield from _message_lines(part, tool_names.get(part.message.get("tool_call_id")))


def _message_lines(part: PromptPart, tool_name: str | None = None) -> Iterator[str]:
    speaker = parts.speaker_label(part.role, part.message.get("name") or tool_name)
    text = parts.plain_text(parts.content_parts(part.message.get("content")))
    calls = part.message.get("tool_calls") or ()
    if text.strip() or not calls:
        yield f"{parts.INDENT}{speaker}: {parts.indent_further_lines(text)}"
    for call in calls:
        arguments = parts.indent_further_lines(arguments_text(call))
        yield f"{parts.INDENT}{speaker} calls {parts.clean_name(name_of(call))}: {arguments}"


OPENAI = OpenAI()
FORMATS: dict[str, Format] = {format.name: format for format in (OPENAI, Ollama(), Anthropic(), PlainText())}
FormatName = Literal["openai", "anthropic", "ollama", "text"]


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
    return [as_openai(part) for part in parts.name_speakers(parts.turn_parts(turns), users=False)]


def memory_messages(facts: Sequence[Hit], hits: Sequence[Hit]) -> list[Json]:
    """Return facts and hits as one system message; [] without any."""
    text = parts.memory_text(facts, hits)
    return [{"role": "system", "content": text}] if text else []
