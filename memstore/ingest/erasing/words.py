"""The words by which an erased text would be known again. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable

SHORTEST = 5  # letters; a word with a digit in it is told by three characters
WITH_DIGIT = 3
MOST = 400  # words that are looked for at once: what a page says; the longest are the rarest
_WORD = re.compile(r"[^\W_]+")
_MASKED = re.compile(r"\[masked [a-z]+\]|\"masked\": \{[^{}]*\}")  # where a secret was: nobody's words


def distinctive(texts: Iterable[str]) -> list[str]:
    """Give words of texts in small letters, the longest first: candidates, as others may say them too."""
    words = {word.lower() for text in texts for word in _WORD.findall(_MASKED.sub(" ", text))}
    told = (word for word in words if len(word) >= (WITH_DIGIT if _has_digit(word) else SHORTEST) and word.isalnum())
    return sorted(told, key=lambda word: (-len(word), word))[:MOST]


def _has_digit(word: str) -> bool:
    return any(letter.isdigit() for letter in word)
