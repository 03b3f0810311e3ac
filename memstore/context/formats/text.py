"""A context as one text, for a prompt of one's own: each section under its heading, the system prompt first. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import ClassVar

from memstore.context.formats.parts import (
    INDENT,
    PartKind,
    PromptContent,
    PromptPart,
    RenderedPrompt,
    clean_name,
    content_parts,
    indent_further_lines,
    memory_text,
    pinned_facts_text,
    plain_text,
    section_text,
    speaker_label,
    summaries_text,
    turn_parts,
)
from memstore.context.strategies.base import Entry
from memstore.text import CONVERSATION_FOOT, CONVERSATION_HEAD, format_day
from memstore.tool_calls import arguments_text, name_of


@dataclass(frozen=True, slots=True)
class PlainText:
    """One text with sections under headings. Its tokens are the text's alone, without any chat around it."""

    name: ClassVar[str] = "text"

    def render(self, content: PromptContent) -> RenderedPrompt:
        """Return the context as a text in which nothing that was said can pass for its frame."""
        sections = [
            *((one.name, section_text(one)) for one in content.static_sections),
            ("What holds always", pinned_facts_text(content.pinned_facts)),
            ("Earlier in this conversation", summaries_text(content.summaries)),
            ("The latest messages", _conversation_text(content.turns_before)),
            *((one.name, section_text(one)) for one in content.custom_sections),
            ("Remembered", memory_text(content.facts, content.hits)),
            ("The next message", _question_text(content)),
            ("What came after it", _conversation_text(content.turns_after)),
        ]
        system = [content.system] if content.system else []
        return RenderedPrompt(text="\n\n".join([*system, *(f"# {name}\n{text}" for name, text in sections if text)]))


def _question_text(content: PromptContent) -> str:
    if not content.question:
        return ""
    return "\n".join(line.strip() for line in _message_lines(PromptPart(PartKind.QUESTION, content.question)))


def _conversation_text(turns: Sequence[Entry]) -> str:
    """Return turns as a text: a line for each day, and each message behind its speaker; "" for none."""
    texts = []
    for are_records, parts in groupby(turn_parts(turns), key=lambda part: part.kind is PartKind.RECORD):
        if are_records:
            texts += [str(part.message["content"]) for part in parts]
        else:
            texts.append("\n".join([CONVERSATION_HEAD, *_conversation_lines(parts), CONVERSATION_FOOT]))
    return "\n".join(texts)


def _conversation_lines(parts: Iterable[PromptPart]) -> Iterator[str]:
    last_day, tool_names = None, dict[object, str]()
    for part in parts:
        today = format_day(part.stored.occurred_at) if part.stored else last_day
        if today != last_day:
            yield f"[{today}]"
            last_day = today
        tool_names |= {call.get("id"): name_of(call) for call in part.message.get("tool_calls") or ()}
        yield from _message_lines(part, tool_names.get(part.message.get("tool_call_id")))


def _message_lines(part: PromptPart, tool_name: str | None = None) -> Iterator[str]:
    """Yield a message behind its speaker, and each of its tool calls on a line of its own."""
    speaker = speaker_label(part.role, part.message.get("name") or tool_name)
    text = plain_text(content_parts(part.message.get("content")))
    calls = part.message.get("tool_calls") or ()
    if text.strip() or not calls:
        yield f"{INDENT}{speaker}: {indent_further_lines(text)}"
    for call in calls:
        yield f"{INDENT}{speaker} calls {clean_name(name_of(call))}: {indent_further_lines(arguments_text(call))}"
