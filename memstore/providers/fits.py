"""Whether messages fit, and how many tokens they have, for programs that keep their messages themselves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from math import ceil
from typing import Any, Literal, get_args

from memstore.errors import InvalidInput
from memstore.providers import Count, TokenCounter, load_counter
from memstore.providers.chat_values import as_json, texts
from memstore.settings import load as load_settings

Method = Literal["approximate", "exact", "cached"]

# For "approximate": o200k_base makes a token of 3.6 bytes of Korean, 3.7 of Markdown, 4.1 of code, 4.4 of English prose
# and 7.3 of Hindi, so that this is a guess above most of them.
BYTES_A_TOKEN = 3.5
OVERHEAD = 4  # tokens around a message


def check_fits(
    messages: Sequence[Mapping[str, Any]],
    max_tokens: int,
    *,
    counter: TokenCounter | str | None = None,
    tools: Sequence[Mapping[str, Any]] = (),
) -> bool:
    """Tell whether the finished chat has at most so many tokens, by this counter (default: the settings').

    Raises InvalidInput for messages that cannot be counted, ProviderError for a counter that cannot be had.
    """
    return _counter(counter).count_messages(messages, tools) <= max_tokens


def estimate(
    messages: Sequence[Mapping[str, Any]],
    method: Method = "exact",
    *,
    counter: TokenCounter | str | None = None,
    tools: Sequence[Mapping[str, Any]] = (),
) -> Count:
    """Give the tokens of a chat, with the kind of the count.

    "exact" counts the finished chat, rendered where the counter renders. "cached" adds up what each message is expected
    to add, which is remembered: the same for OpenAI's rule, near it for chat templates. "approximate" asks no tokenizer
    at all and divides bytes: it may be twice the truth, and nothing in memstore relies on it.
    """
    if method not in get_args(Method):
        raise InvalidInput(f"method is one of {', '.join(get_args(Method))}, not {method!r}.")
    if method == "approximate":
        written = [text for message in messages for text in texts(message)] + [as_json(tool) for tool in tools]
        size = sum(len(text.encode("utf-8", "surrogatepass")) for text in written)
        return Count(ceil(size / BYTES_A_TOKEN) + OVERHEAD * len(messages), "modelled")
    own = _counter(counter)
    if method == "exact":
        return own.count_messages(messages, tools)
    around = own.count_messages([], tools)
    return Count(around + sum(map(own.count_message, messages)), around.kind)


def _counter(given: TokenCounter | str | None) -> TokenCounter:
    if given is None:
        given = load_settings({}).counter
    return _loaded(given) if isinstance(given, str) else given


@lru_cache(maxsize=8)
def _loaded(name: str) -> TokenCounter:
    """Give the counter of this name, the same one again: what it has counted it remembers."""
    return load_counter(name)
