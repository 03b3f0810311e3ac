"""From a model's name to the counter of its tokens, and the tokens of a chat: also for programs of their own."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from memstore.errors import InvalidInput
from memstore.plugins import installed_entry_points
from memstore.providers import Count, TokenCounter, load_counter
from memstore.providers.tiktoken import ESTIMATED, FACTOR, check_tools, encoding_of
from memstore.settings import load as load_settings

Json = Mapping[str, Any]
Chat = Sequence[Json]
logger = logging.getLogger(__name__)


def counter_for(model: str) -> str:
    """Return the name of the counter that knows a model best, to be loaded by `load_counter`.

    A name whose kind has a counter, such as "ollama:llama3.2" or "anthropic:claude-sonnet-4-5", is that counter's; an
    OpenAI model, with or without "openai:" or "openai/" before it, is tiktoken's; every other one is estimated.
    """
    kinds = installed_entry_points("memstore.counters").names
    if model.partition(":")[0] in kinds:
        return model
    openai = model.removeprefix("openai:").removeprefix("openai/")
    if encoding_of(openai):
        return f"tiktoken:{openai}"
    _warn_of_unknown(model)
    return ESTIMATED


@lru_cache(maxsize=256)  # once for each name
def _warn_of_unknown(model: str) -> None:
    template = "no counter knows the model %r: its tokens are estimated as %g times those of o200k_base, so less fits"
    logger.warning(template, model, FACTOR)


def estimate(messages: Chat, *, counter: TokenCounter | str | None = None, tools: Sequence[Json] = ()) -> Count:
    """Return the tokens of the finished chat, with the kind of the count.

    `counter` is one, its name or a model's, as of `context(model=…)`; by default the settings' one.

    Raises InvalidInput for what cannot be counted, ProviderError for a counter that cannot be had.
    """
    check_tools(tools)
    if not isinstance(messages, list | tuple) or not all(isinstance(message, Mapping) for message in messages):
        raise InvalidInput(f'messages={messages!r:.60}: give a list such as [{{"role": "user", "content": "…"}}].')
    if counter is None:
        counter = load_settings({}).counter
    own = _load(counter_for(counter)) if isinstance(counter, str) else counter
    return own.count_messages(messages, tools)


@lru_cache(maxsize=8)
def _load(name: str) -> TokenCounter:
    """Return the counter of this name, the same one each time, since it remembers its counts."""
    return load_counter(name)
