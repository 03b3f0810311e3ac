"""An upper bound of the tokens of any model, by the bytes of UTF-8: what is left where its tokenizer is unknown.

A tokenizer normalises a text and gives tokens, each of which stands for a byte or more of it, or for a character; some
put a blank before it, which is one more. Normalising may lengthen (NFKC makes 33 bytes of the 3 of U+FDFA), so the
longest form of each character is taken. It is not proven for a tokenizer that replaces text by longer one of its own,
nor for images and sounds. What a chat's template adds is bounded for the shapes of Llama 3, Gemma, ChatML and Qwen, not
for those with a long preamble of their own (Command R, gpt-oss).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any
from unicodedata import normalize

from memstore.errors import ProviderMissing
from memstore.providers import Count
from memstore.providers.tiktoken import as_json, only_text, texts
from memstore.settings import Settings

PER_MESSAGE = 16
TEMPLATE = 64
TOOLS = 256
INDENT = 4  # templates indent the JSON of tools by as much, or less


def load(model: str, settings: Settings | None = None) -> BytesCounter:
    """Return the counter "bytes", which has no model. Raises ProviderMissing where one is named."""
    if model:
        raise ProviderMissing(f'The counter "bytes" is the same for every model: write it without {model!r}.')
    return BytesCounter()


class BytesCounter:
    """Bounds the tokens of texts and chats from above. Safe to share by threads; nothing is remembered."""

    name = "bytes"

    def count(self, text: str) -> int:
        """Return a number of tokens that a text does not exceed: its bytes when it is longest, and 1; 0 for ""."""
        return longest(text) + 1 if text else 0

    def count_message(self, message: Mapping[str, Any]) -> int:
        """Return a number that one message of text does not exceed: its values, 16, and 16 for each tool call."""
        calls = message.get("tool_calls")
        around = 1 + (len(calls) if isinstance(calls, list | tuple) else 0)
        return PER_MESSAGE * around + sum(map(self.count, texts(message)))

    def count_messages(self, messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]] = ()) -> Count:
        """Return the sum of `count_message`, 64, and for tools 256 and their indented JSON; with images "estimated"."""
        defined = TOOLS + sum(self.count(as_json(tool, INDENT)) for tool in tools) if tools else 0
        total = TEMPLATE + defined + sum(map(self.count_message, messages))
        return Count(total, "upper_bound" if only_text(messages) else "estimated")


def longest(text: str) -> int:
    """Return the bytes of UTF-8 that a text has in the longest form that a tokenizer may bring it into."""
    if text.isascii():
        return len(text)
    return sum(number * _longest_form(char) for char, number in Counter(text).items())


def _longest_form(char: str) -> int:
    cased = {case(form) for form in (char, normalize("NFKC", char)) for case in (str, str.lower, str.casefold)}
    # A lone surrogate is sent as U+FFFD or "?", of three bytes at most.
    most_bytes = max(len(form.encode("utf-8", "surrogatepass")) for form in cased)
    return max(len(normalize("NFKD", char)), most_bytes)  # the former of BERT's kind, without bytes
