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
from memstore.models import Json

FORMATS: dict[str, Format] = {one.name: one for one in (OpenAI(), Ollama(), Anthropic(), PlainText())}


def format_of(given: str | Format) -> Format:
    """Return the format of this name; a format is returned as it is. Raise `InvalidInput` for anything else."""
    if isinstance(given, str):
        if given in FORMATS:
            return FORMATS[given]
    elif callable(getattr(given, "render", None)) and isinstance(getattr(given, "name", None), str):
        return given
    names = ", ".join(FORMATS)
    raise InvalidInput(f"format={given!r:.60}: give one of {names}, or an object with `name` and `render`.")


def format_told(format: Format) -> Json:
    """Give a format as a receipt tells it: its name, and the options that differ; of one's own the name alone."""
    known = FORMATS.get(format.name)
    if known is None or type(format) is not type(known):
        return {"name": format.name}
    usual, options = _options(known), _options(format)
    return {"name": format.name} | {name: value for name, value in options.items() if value != usual[name]}


def format_read_back(told: Mapping[str, Any]) -> Format | None:
    """Return the format that a receipt names, or None for a format of the user's own.

    Raises `InvalidInput` for a Jinja template, which memstore renders no more.
    """
    if str(told.get("name")).startswith("template:"):
        raise InvalidInput(
            "This context was written by a Jinja template, which memstore does not render any more. Replay it with a "
            'format of your own, `replay(receipt, format=…)`; the template\'s source is receipt.texts["template"].'
        )
    known = FORMATS.get(told.get("name", "openai"))
    options = {name: value for name, value in told.items() if name != "name"}
    try:
        return None if known is None else type(known)(**options)
    except TypeError:  # an option of another version
        return None


def _options(format: Format) -> Json:
    options: Json = asdict(format)  # type: ignore[call-overload]  # ours are dataclasses, which no Protocol can say
    return options
