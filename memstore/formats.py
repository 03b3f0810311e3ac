"""How a context is written: for `context(format=…)`, by name or with options.

    context = trip.context("Where to?", budget=2000, format="anthropic")
    answer = client.messages.create(model=…, system=context.system, messages=context.messages, max_tokens=500)
    trip.add_many(Anthropic().read(answer.model_dump()))

A format of one's own is a class with `name` and `render`, as `Format` says; see docs/reference/rendering.md.
"""

from memstore.assemble.render.anthropic import Anthropic
from memstore.assemble.render.chosen import Chosen, Kind, Part, parts
from memstore.assemble.render.format import Format, Rendered
from memstore.assemble.render.ollama import Ollama
from memstore.assemble.render.openai import OpenAI
from memstore.assemble.render.text import PlainText

__all__ = [
    "Anthropic",
    "Chosen",
    "Format",
    "Kind",
    "Ollama",
    "OpenAI",
    "Part",
    "PlainText",
    "Rendered",
    "parts",
]
