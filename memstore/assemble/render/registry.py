"""Formats by their names."""

from __future__ import annotations

from memstore.assemble.render.anthropic import Anthropic
from memstore.assemble.render.format import Format
from memstore.assemble.render.ollama import Ollama
from memstore.assemble.render.openai import OpenAI
from memstore.assemble.render.text import PlainText
from memstore.errors import InvalidInput

FORMATS: dict[str, Format] = {one.name: one for one in (OpenAI(), Ollama(), Anthropic(), PlainText())}


def format_of(given: str | Format) -> Format:
    """Give the format of this name, or of this template: a text that holds "{{" or "{%". A format is itself.

    Raises `InvalidInput` for what is none, and for a template that is wrong.
    """
    if isinstance(given, str):
        if given in FORMATS:
            return FORMATS[given]
        if "{{" in given or "{%" in given:
            from memstore.assemble.render.template import Template  # noqa: PLC0415 (Jinja: 0.1 s, for few)

            return Template(given)
    elif callable(getattr(given, "render", None)) and isinstance(getattr(given, "name", None), str):
        return given
    names = ", ".join(FORMATS)
    raise InvalidInput(
        f"format={given!r:.60}: give one of {names}, a template of Jinja, or a format of memstore.formats."
    )
