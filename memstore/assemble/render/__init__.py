"""Rendering: the chosen material as a finished context, in the format of a model or by a template. Pure.

chosen → parts, in one order for all · fenced: what is remembered, as text · openai, ollama, anthropic, text, template
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from memstore.assemble.render.chosen import Added, Chosen, Kind, Part, added_parts, spoken_parts
from memstore.assemble.render.fenced import (
    FACTS_HEAD,
    HITS_HEAD,
    added_lines,
    fact_line,
    hit_line,
    hit_lines,
    memory_text,
    record_lines,
    standing_text,
    summaries_text,
    summary_lines,
)
from memstore.assemble.render.format import Format, Rendered, counted, section_tokens, shared_tokens, template_source
from memstore.assemble.render.marks import Heard, marked
from memstore.assemble.render.openai import OpenAI, as_openai
from memstore.assemble.render.registry import FORMATS, format_of, format_told, told
from memstore.assemble.strategies.view import Entry
from memstore.models import Hit, Json, Summary

OPENAI = OpenAI()

__all__ = [
    "FACTS_HEAD",
    "FORMATS",
    "HITS_HEAD",
    "OPENAI",
    "Added",
    "Chosen",
    "Format",
    "Heard",
    "Kind",
    "Part",
    "Rendered",
    "added_lines",
    "always",
    "before_question",
    "counted",
    "fact_line",
    "format_of",
    "format_told",
    "hit_line",
    "hit_lines",
    "named",
    "record_lines",
    "remembered",
    "render",
    "section_tokens",
    "shared_tokens",
    "spoken",
    "summarized",
    "summary_lines",
    "template_source",
    "told",
]


def render(chosen: Chosen) -> list[Json]:
    """Give the context as messages in OpenAI's format."""
    return _messages(chosen.parts)


def before_question(chosen: Chosen) -> list[Json]:
    """Give the messages that follow from what is stored, in OpenAI's format."""
    return _messages(chosen.parts_before)


def named(sections: Iterable[Added]) -> list[Json]:
    """Give the user's own sections in OpenAI's format, a system message each."""
    return _messages(added_parts(Kind.ADDED, sections))


def always(facts: Sequence[Hit]) -> list[Json]:
    """Give standing facts as one system message; none for none."""
    return _system(standing_text(facts))


def spoken(turns: Iterable[Entry]) -> list[Json]:
    """Give the messages of turns in OpenAI's format; blocks side by side are one system message."""
    return _messages(spoken_parts(turns))


def summarized(summaries: Sequence[Summary]) -> list[Json]:
    """Give the summaries as one system message; none for none."""
    return _system(summaries_text(summaries))


def remembered(facts: Sequence[Hit], hits: Sequence[Hit]) -> list[Json]:
    """Give facts and hits as one system message; none for none."""
    return _system(memory_text(facts, hits))


def _messages(found: Iterable[Part]) -> list[Json]:
    return [as_openai(part) for part in marked(found, dates=False, speakers=False)]


def _system(text: str) -> list[Json]:
    return [{"role": "system", "content": text}] if text else []
