"""Formats: the selected content as a finished context, in the messages of a model's API or as one text. Pure.

memory_text: facts, hits, summaries as text · parts: what every format is given, and how its result is counted · then
one module a format. Here they are found by name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from memstore.context.formats.anthropic import Anthropic
from memstore.context.formats.memory_text import (
    FACTS_HEAD,
    HITS_HEAD,
    fact_line,
    hit_line,
    memory_text,
    record_lines,
    section_lines,
    summary_lines,
)
from memstore.context.formats.ollama import Ollama
from memstore.context.formats.openai import OpenAI, as_openai
from memstore.context.formats.parts import (
    CustomSection,
    Format,
    PartKind,
    PromptContent,
    PromptPart,
    RenderedPrompt,
    add_days_and_speakers,
    count_prompt,
    count_sections,
    count_shared,
    turn_parts,
)
from memstore.context.formats.text import PlainText
from memstore.context.strategies.base import Entry
from memstore.errors import InvalidInput
from memstore.models import Hit, Json

OPENAI = OpenAI()
FORMATS: dict[str, Format] = {format.name: format for format in (OPENAI, Ollama(), Anthropic(), PlainText())}

__all__ = [
    "FACTS_HEAD",
    "FORMATS",
    "HITS_HEAD",
    "OPENAI",
    "CustomSection",
    "Format",
    "PartKind",
    "PromptContent",
    "PromptPart",
    "RenderedPrompt",
    "count_prompt",
    "count_sections",
    "count_shared",
    "describe_format",
    "fact_line",
    "format_from_receipt",
    "get_format",
    "hit_line",
    "memory_messages",
    "record_lines",
    "section_lines",
    "summary_lines",
    "turn_messages",
]


def get_format(format: str | Format) -> Format:
    """Return the format of this name; a format is returned as it is. Raise `InvalidInput` for anything else."""
    if isinstance(format, str):
        if format in FORMATS:
            return FORMATS[format]
    elif callable(getattr(format, "render", None)) and isinstance(getattr(format, "name", None), str):
        return format
    names = ", ".join(FORMATS)
    raise InvalidInput(f"format={format!r:.60}: give one of {names}, or an object with `name` and `render`.")


def describe_format(format: Format) -> Json:
    """Return a format as a receipt has it: its name, and options that are not the default; of a user's own the name."""
    default = FORMATS.get(format.name)
    if default is None or type(format) is not type(default):
        return {"name": format.name}
    defaults, options = _options(default), _options(format)
    return {"name": format.name} | {name: value for name, value in options.items() if value != defaults[name]}


def format_from_receipt(described: Mapping[str, Any]) -> Format | None:
    """Return the format that a receipt describes, or None for a format of the user's own.

    Raises `InvalidInput` for a Jinja template, which memstore renders no more.
    """
    if str(described.get("name")).startswith("template:"):
        raise InvalidInput(
            "This context was written by a Jinja template, which memstore does not render any more. Replay it with a "
            'format of your own, `replay(receipt, format=…)`; the template\'s source is receipt.texts["template"].'
        )
    default = FORMATS.get(described.get("name", "openai"))
    options = {name: value for name, value in described.items() if name != "name"}
    try:
        return None if default is None else type(default)(**options)
    except TypeError:  # an option of another version
        return None


def _options(format: Format) -> Json:
    options: Json = asdict(format)  # type: ignore[call-overload]  # ours are dataclasses, which no Protocol can say
    return options


def turn_messages(turns: Iterable[Entry]) -> list[Json]:
    """Return the messages of turns in OpenAI's format; adjacent blocks are one system message."""
    return [as_openai(part) for part in add_days_and_speakers(turn_parts(turns), dates=False, speakers=False)]


def memory_messages(facts: Sequence[Hit], hits: Sequence[Hit]) -> list[Json]:
    """Return facts and hits as one system message; none for none."""
    text = memory_text(facts, hits)
    return [{"role": "system", "content": text}] if text else []
