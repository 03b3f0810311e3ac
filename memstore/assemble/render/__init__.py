"""Rendering: the chosen material as a finished context, in the format of a model. Pure.

chosen → parts, in one order for all · fenced: what is remembered, as text · openai, ollama, anthropic, text
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from memstore.assemble.render.chosen import Added, Chosen, Kind, spoken_parts
from memstore.assemble.render.fenced import (
    FACTS_HEAD,
    HITS_HEAD,
    added_lines,
    fact_line,
    hit_line,
    memory_text,
    record_lines,
    summary_lines,
)
from memstore.assemble.render.format import Format, Rendered, counted, section_tokens, shared_tokens
from memstore.assemble.render.marks import marked
from memstore.assemble.render.openai import OpenAI, as_openai
from memstore.assemble.render.registry import FORMATS, format_of, format_read_back, format_told
from memstore.assemble.strategies.view import Entry
from memstore.models import Hit, Json

OPENAI = OpenAI()

__all__ = [
    "FACTS_HEAD",
    "FORMATS",
    "HITS_HEAD",
    "OPENAI",
    "Added",
    "Chosen",
    "Format",
    "Kind",
    "Rendered",
    "added_lines",
    "counted",
    "fact_line",
    "format_of",
    "format_read_back",
    "format_told",
    "hit_line",
    "record_lines",
    "remembered",
    "section_tokens",
    "shared_tokens",
    "spoken",
    "summary_lines",
]


def spoken(turns: Iterable[Entry]) -> list[Json]:
    """Give the messages of turns in OpenAI's format; blocks side by side are one system message."""
    return [as_openai(part) for part in marked(spoken_parts(turns), dates=False, speakers=False)]


def remembered(facts: Sequence[Hit], hits: Sequence[Hit]) -> list[Json]:
    """Give facts and hits as one system message; none for none."""
    text = memory_text(facts, hits)
    return [{"role": "system", "content": text}] if text else []
