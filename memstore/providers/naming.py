"""From a model's name to the counter of its tokens."""

from __future__ import annotations

from importlib.metadata import entry_points

from memstore.providers.tiktoken import encoding_of, is_packed

UNKNOWN = "bytes"


def counter_for(model: str) -> str:
    """Give the name of the counter that knows a model best, to be loaded by `load_counter`.

    A name whose kind has a counter, such as "ollama:llama3.2" or "tokenizer:FOLDER", is that counter's; an OpenAI
    model, with or without "openai:" or "openai/" before it, is tiktoken's; every other one is bounded by "bytes".
    """
    kind, _, _ = model.partition(":")
    if kind in entry_points(group="memstore.counters").names:
        return model
    own = model.removeprefix("openai:").removeprefix("openai/")
    encoding = encoding_of(own)
    return f"tiktoken:{own}" if encoding is not None and is_packed(encoding) else UNKNOWN
