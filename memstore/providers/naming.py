"""From a model's name to the counter of its tokens."""

from __future__ import annotations

import logging
from functools import lru_cache

from memstore.plugins import installed_entry_points
from memstore.providers.tiktoken import encoding_of, is_packed

LOGGER = logging.getLogger(__name__)
UNKNOWN = "bytes"


def counter_for(model: str) -> str:
    """Give the name of the counter that knows a model best, to be loaded by `load_counter`.

    A name whose kind has a counter, such as "ollama:llama3.2" or "tokenizer:FOLDER", is that counter's; an OpenAI
    model, with or without "openai:" or "openai/" before it, is tiktoken's; every other one is bounded by "bytes". That
    is several times the tokens of prose, so a warning is logged, once for each name.
    """
    kinds = installed_entry_points("memstore.counters").names
    kind, _, _ = model.partition(":")
    if kind in kinds:
        return model
    own = model.removeprefix("openai:").removeprefix("openai/")
    encoding = encoding_of(own)
    if encoding is not None and is_packed(encoding):
        return f"tiktoken:{own}"
    _warn(model, tuple(sorted(kinds)))
    return UNKNOWN


@lru_cache(maxsize=256)
def _warn(model: str, kinds: tuple[str, ...]) -> None:
    LOGGER.warning(
        "no counter knows the model %r, so each byte counts as a token and less fits; known are OpenAI's models and %s",
        model,
        ", ".join(f"{kind}:…" for kind in kinds),
    )
