"""From a model's name to the counter of its tokens, and the tokens of a chat: also for programs of their own."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, cast

from memstore.errors import InvalidInput
from memstore.plugins import installed_entry_points
from memstore.providers import Count, TokenCounter, load_counter
from memstore.providers.tiktoken import check_tools, encoding_of
from memstore.settings import load as load_settings

if TYPE_CHECKING:  # the rows' libraries take as long to load as all else here; who gives a row has loaded them
    from memstore.models import Context, Message

    Chat = Context | Sequence[Mapping[str, Any] | Message]

logger = logging.getLogger(__name__)


def counter_for(model: str) -> str:
    """Return the name of the counter that knows a model best, to be loaded by `load_counter`.

    A name whose kind has a counter, such as "ollama:llama3.2" or "tokenizer:FOLDER", is that counter's; an OpenAI
    model, with or without "openai:" or "openai/" before it, is tiktoken's; every other one is bounded by "bytes", which
    is several times the tokens of prose.
    """
    kinds = installed_entry_points("memstore.counters").names
    if model.partition(":")[0] in kinds:
        return model
    openai = model.removeprefix("openai:").removeprefix("openai/")
    if encoding_of(openai):
        return f"tiktoken:{openai}"
    _warn_of_unknown(model)
    return "bytes"


@lru_cache(maxsize=256)  # once for each name
def _warn_of_unknown(model: str) -> None:
    logger.warning("no counter knows the model %r, so each byte counts as a token, and less fits", model)


def estimate(
    messages: Chat, *, counter: TokenCounter | str | None = None, tools: Sequence[Mapping[str, Any]] = ()
) -> Count:
    """Return the tokens of the finished chat, with the kind of the count.

    `messages` are chat messages, stored ones, or a `Context`, of which the system prompt or the text is counted too.
    `counter` is one, its name or a model's, as of `context(model=…)`; by default the settings' one.

    Raises InvalidInput for what cannot be counted, ProviderError for a counter that cannot be had.
    """
    check_tools(tools)
    if counter is None:
        counter = load_settings({}).counter
    elif isinstance(counter, str):
        counter = counter_for(counter)
    own = _loaded(counter) if isinstance(counter, str) else counter
    chat, text, apart = messages, None, []
    if not isinstance(messages, list | tuple):
        if not isinstance(getattr(messages, "messages", None), list):
            raise InvalidInput(f"messages={messages!r:.60}: give a list of messages, or a context.")
        context = cast("Context", messages)
        chat, text = context.messages, context.text
        apart = [] if context.system is None else [{"role": "system", "content": context.system}]
    if text is None:
        return own.count_messages([*apart, *map(_as_chat, cast("Sequence[Any]", chat))], tools)
    none = own.count_messages([])  # a text is sent as it is: there is nothing around it, but the tools beside
    return Count(own.count(text) + (own.count_messages([], tools) - none if tools else 0), none.kind)


def _as_chat(message: Any) -> Mapping[str, Any]:
    if isinstance(message, Mapping):
        return message
    if not hasattr(message, "as_chat"):
        raise InvalidInput(f'{message!r:.60} is no message; give such as {{"role": "user", "content": "…"}}.')
    chat: Mapping[str, Any] = message.as_chat()
    return chat


@lru_cache(maxsize=8)
def _loaded(name: str) -> TokenCounter:
    """Return the counter of this name, the same one again: what it has counted it remembers."""
    return load_counter(name)
