"""How a context is written: for `context(format=…)`, by name or with options.

    context = trip.context("Where to?", budget=2000, format="anthropic")
    answer = client.messages.create(model=…, system=context.system, messages=context.messages, max_tokens=500)
    trip.add_many(Anthropic().read(answer.model_dump()))

A format of your own is a frozen class with `name` and `render`, as `Format` says; see docs/reference/rendering.md.
"""

from memstore.context.formats import OpenAI, PlainText
from memstore.context.formats.anthropic import Anthropic
from memstore.context.formats.ollama import Ollama
from memstore.context.formats.parts import (
    CustomSection,
    Format,
    PartKind,
    PromptContent,
    PromptPart,
    RenderedPrompt,
)

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
