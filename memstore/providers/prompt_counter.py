"""What counters of a model's own prompt share: its tokenizer, without anything that a tokenizer adds, cuts or keeps."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from tokenizers import Tokenizer

from memstore.providers.chat_values import texts
from memstore.providers.remembered import Remembered
from memstore.text import replace_surrogates

_FIRST = '"prepend_scheme":"first"'


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
        self._marks = _marks(tokenizer)
        self.text = Remembered(lambda text: _length(self._plain, text))
        self._piece = Remembered(lambda text: _length(self._whole, text))

    def prompt(self, text: str) -> int:
        """Give the tokens of a rendered prompt; the one that begins it is counted once, whoever adds it."""
        missing = self._bos is not None and not text.startswith(self._bos)
        pieces = self._marks.split(text) if self._marks else [text]  # every second one is a mark, of one token
        return missing + len(pieces) // 2 + sum(self._piece(piece) for piece in pieces[::2] if piece)


def _marks(tokenizer: Tokenizer) -> re.Pattern[str] | None:
    """Give a pattern of the tokens that part a prompt, so that a message is tokenized once and not with each prompt.

    The library cuts a text at them before all else, and tokenizes what is between them each for itself. None where that
    is not so: where such a token takes blanks with it, or where the first piece of a text is not treated as the others.
    """
    written = tokenizer.to_str()
    added = [one for one in json.loads(written).get("added_tokens") or [] if not one["normalized"] and one["content"]]
    if not added or any(one["lstrip"] or one["rstrip"] or one["single_word"] for one in added) or _FIRST in written:
        return None
    longest_first = sorted((one["content"] for one in added), key=len, reverse=True)
    return re.compile(f"({'|'.join(map(re.escape, longest_first))})")


def _length(tokenizer: Tokenizer, text: str) -> int:
    return len(tokenizer.encode(replace_surrogates(text), add_special_tokens=False))


def _forget(tokenizer: Tokenizer) -> None:
    """Turn off the library's own cache, which holds words of the texts."""
    if hasattr(tokenizer.model, "_resize_cache"):
        tokenizer.model._resize_cache(0)


def expected(message: Mapping[str, Any], vocabulary: Vocabulary, around: int) -> int:
    """Give what a message is expected to add: its values without the role, and what the template puts around it."""
    values = {key: value for key, value in message.items() if key != "role"}
    return around + sum(map(vocabulary.text, texts(values)))


def around(chat: Callable[[list[Mapping[str, Any]]], int], vocabulary: Vocabulary) -> int:
    """Give the tokens that a template puts around a short message; `chat` counts finished chats."""
    turn: list[Mapping[str, Any]] = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "a"}]
    once, thrice = (chat(turn * times) for times in (1, 3))
    return max(0, (thrice - once) // 4 - vocabulary.text("a"))
