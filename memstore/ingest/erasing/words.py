"""The words by which an erased text would be known again. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable

SHORTEST = 5  # letters; a word with a digit in it is told by three characters
WITH_DIGIT = 3
MOST = 400  # words that are looked for at once: what a page says; the longest are the rarest
_WORD = re.compile(r"[^\W_]+")
_ESCAPED = re.compile(r"\\+(?:[bfnrt]|u[0-9a-f]{4})")  # in JSON; "\nhere" in it is a line break before "here"
_MASKED = re.compile(r"\[masked [a-z]+\]|\"masked\": \{[^{}]*\}")  # where a secret was: nobody's words


def distinctive(texts: Iterable[str]) -> list[str]:
    """Give words of texts in small letters, the longest first: candidates, as others may say them too."""
    told_by = [_MASKED.sub(" ", text) for text in texts]
    words = {_small(word) for text in told_by for word in _WORD.findall(f"{text} {_ESCAPED.sub(' ', text)}")}
    told = (word for word in words if len(word) >= (WITH_DIGIT if _has_digit(word) else SHORTEST) and word.isalnum())
    return sorted(told, key=lambda word: (-len(word), word))[:MOST]


def _small(word: str) -> str:
    return word.replace("İ", "i").lower()  # as Postgres has it; Python's has a dot more, which is no letter


def _has_digit(word: str) -> bool:
    return any(letter.isdigit() for letter in word)
