"""A context as one text, for a prompt of one's own: each section under its heading, the system prompt first. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from memstore.assemble.render.chosen import Chosen, Kind, Part, spoken_parts
from memstore.assemble.render.content import content_parts, plain_text
from memstore.assemble.render.fenced import INDENT, added_text, indented, memory_text, standing_text, summaries_text
from memstore.assemble.render.format import Rendered
from memstore.assemble.render.labels import label, shown
from memstore.assemble.strategies.view import Entry
from memstore.fences import CONVERSATION_FOOT, CONVERSATION_HEAD
from memstore.function_calls import arguments_text, name_of
from memstore.times import day

HEADINGS = {
    "standing": "# What holds always",
    "summaries": "# Earlier in this conversation",
    "turns": "# The latest messages",
    "memory": "# Remembered",
    "question": "# The next message",
    "after": "# What came after it",
}


@dataclass(frozen=True, slots=True)
class PlainText:
    """One text with sections under headings. Its tokens are the text's alone, without any chat around it."""

    @property
    def name(self) -> str:
        """The name in receipts."""
        return "text"

    def render(self, chosen: Chosen) -> Rendered:
        """Give the context as a text."""
        system = [chosen.system] if chosen.system else []
        found = [f"{HEADINGS.get(name, f'# {name}')}\n{text}" for name, text in section_texts(chosen) if text]
        return Rendered(text="\n\n".join([*system, *found]))


def section_texts(chosen: Chosen) -> list[tuple[str, str]]:
    """Give the sections in their order, each as a text in which nothing that was said can pass for its frame."""
    question = [Part(Kind.QUESTION, chosen.question)] if chosen.question else []
    return [
        *((one.name, added_text(one.name, one.texts)) for one in chosen.steady),
        ("standing", standing_text(chosen.standing)),
        ("summaries", summaries_text(chosen.summaries)),
        ("turns", conversation_text(chosen.before)),
        *((one.name, added_text(one.name, one.texts)) for one in chosen.added),
        ("memory", memory_text(chosen.facts, chosen.hits)),
        ("question", "\n".join(line.strip() for part in question for line in spoken_lines(part))),
        ("after", conversation_text(chosen.after)),
    ]


def conversation_text(turns: Sequence[Entry]) -> str:
    """Give turns as a text: a line for each day, and each message behind its speaker; nothing for none."""
    texts = []
    for recorded, group in groupby(spoken_parts(turns), key=lambda part: part.kind is Kind.RECORD):
        if recorded:
            texts += [str(part.message["content"]) for part in group]
        else:
            texts.append("\n".join([CONVERSATION_HEAD, *_lines(group), CONVERSATION_FOOT]))
    return "\n".join(texts)


def _lines(found: Iterator[Part]) -> Iterator[str]:
    last, tools = None, dict[object, str]()
    for part in found:
        today = day(part.stored.occurred_at) if part.stored else last
        if today != last:
            yield f"[{today}]"
            last = today
        tools |= {call.get("id"): name_of(call) for call in part.message.get("tool_calls") or ()}
        yield from spoken_lines(part, tools.get(part.message.get("tool_call_id")))


def spoken_lines(part: Part, tool: str | None = None) -> Iterator[str]:
    """Give a message behind its speaker, and the calls of tools that it makes, each from a line of its own."""
    who = label(part.role, part.message.get("name") or tool)
    text = plain_text(content_parts(part.message.get("content")))
    calls = part.message.get("tool_calls") or ()
    if text.strip() or not calls:
        yield f"{INDENT}{who}: {indented(text)}"
    for call in calls:
        yield f"{INDENT}{who} calls {shown(name_of(call))}: {indented(arguments_text(call))}"
