"""Formats by their names, and as receipts tell them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from memstore.assemble.render.anthropic import Anthropic
from memstore.assemble.render.format import Format
from memstore.assemble.render.ollama import Ollama
from memstore.assemble.render.openai import OpenAI
from memstore.assemble.render.text import PlainText
from memstore.errors import InvalidInput
from memstore.ingest.check import check_text
from memstore.models import Json

FORMATS: dict[str, Format] = {one.name: one for one in (OpenAI(), Ollama(), Anthropic(), PlainText())}


def format_of(given: str | Format) -> Format:
    """Give the format of this name, or of this template: a text that holds "{{" or "{%". A format is itself.

    Raises `InvalidInput` for what is none, and for a template that is wrong.
    """
    if isinstance(given, str):
        if given in FORMATS:
            return FORMATS[given]
        if "{{" in given or "{%" in given:
            return format_of_template(given)
    elif callable(getattr(given, "render", None)) and isinstance(getattr(given, "name", None), str):
        return given
    names = ", ".join(FORMATS)
    raise InvalidInput(
        f"format={given!r:.60}: give one of {names}, a template of Jinja, or a format of memstore.formats."
    )


def format_told(format: Format) -> Json:
    """Give a format as a receipt tells it: its name, and the options that differ; of one's own the name alone."""
    known = FORMATS.get(format.name)
    if known is None or type(format) is not type(known):
        return {"name": format.name}
    usual, options = _options(known), _options(format)
    return {"name": format.name} | {name: value for name, value in options.items() if value != usual[name]}


def format_read_back(told: Mapping[str, Any], template: str | None) -> Format | None:
    """Give the format that a receipt tells, a template by its source; None for one that is not known here."""
    if template is not None:
        return format_of_template(template)
    known = FORMATS.get(told.get("name", "openai"))
    options = {name: value for name, value in told.items() if name != "name"}
    try:
        return None if known is None else type(known)(**options)
    except TypeError:  # an option of another version
        return None


def _options(format: Format) -> Json:
    options: Json = asdict(format)  # type: ignore[call-overload]  # ours are dataclasses, which no Protocol can say
    return options


def format_of_template(source: str) -> Format:
    """Give the format that a template is; raise `InvalidInput` where it is wrong, or cannot be kept with a receipt."""
    check_text(source, "a template")
    from memstore.assemble.render.template import Template  # noqa: PLC0415 (Jinja: 0.1 s, for few)

    return Template(source)
