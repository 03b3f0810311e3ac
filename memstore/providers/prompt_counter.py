"""What counters of a model's own prompt share: its tokenizer, without anything that a tokenizer adds, cuts or keeps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from memstore.errors import ProviderMissing
from memstore.providers.chat_values import texts
from memstore.providers.remembered import Remembered

try:
    from tokenizers import Tokenizer
except ImportError as error:
    raise ProviderMissing("tokenizers is not installed: `pip install 'memstore[tokenizers]'` brings it.") from error


class Vocabulary:
    """A tokenizer of the library `tokenizers`. Safe to share by threads; counts are remembered, texts are not.

    `bos` is the token that begins a prompt, where the tokenizer adds one.
    """

    def __init__(self, tokenizer: Tokenizer, bos: str | None) -> None:
        self._plain, self._whole = (Tokenizer.from_str(tokenizer.to_str()) for _ in range(2))
        for one in (self._plain, self._whole):
            one.no_truncation()
            one.no_padding()
            _forget(one)
        self._plain.encode_special_tokens = True
        self._bos = bos
        self.text = Remembered(lambda text: _length(self._plain, text))
        self._prompt = Remembered(lambda text: _length(self._whole, text))

    def prompt(self, text: str) -> int:
        """Give the tokens of a rendered prompt; the one that begins it is counted once, whoever adds it."""
        missing = self._bos is not None and not text.startswith(self._bos)
        return self._prompt(text) + missing


def _length(tokenizer: Tokenizer, text: str) -> int:
    return len(tokenizer.encode(sendable(text), add_special_tokens=False))


def sendable(text: str) -> str:
    """Give the text with U+FFFD for lone surrogates, which no UTF-8 has."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def _forget(tokenizer: Tokenizer) -> None:
    """Turn off the library's own cache, which holds words of the texts."""
    if hasattr(tokenizer.model, "_resize_cache"):
        tokenizer.model._resize_cache(0)


def expected(message: Mapping[str, Any], vocabulary: Vocabulary, around: int) -> int:
    """Give what a message is expected to add: its values without the role, and what the template puts around it."""
    values = {key: value for key, value in message.items() if key != "role"}
    return around + sum(map(vocabulary.text, texts(values)))
