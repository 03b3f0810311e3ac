"""How a context is written: for `context(format=…)`, by name or with options.

    context = trip.context("Where to?", budget=2000, format="anthropic")
    answer = client.messages.create(model=…, system=context.system, messages=context.messages, max_tokens=500)
    trip.add_many(Anthropic().read(answer.model_dump()))

A format of your own is a frozen class with `name` and `render`, as `Format` says; see docs/reference/rendering.md.
"""

from memstore.assemble.render.anthropic import Anthropic
from memstore.assemble.render.ollama import Ollama
from memstore.assemble.render.openai import OpenAI
from memstore.assemble.render.parts import CustomSection, Format, PartKind, PromptContent, PromptPart, RenderedPrompt
from memstore.assemble.render.text import PlainText

__all__ = [
    "Anthropic",
    "CustomSection",
    "Format",
    "Ollama",
    "OpenAI",
    "PartKind",
    "PlainText",
    "PromptContent",
    "PromptPart",
    "RenderedPrompt",
]
