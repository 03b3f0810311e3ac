"""Texts that are too long, cut at the end of a sentence, or of a word. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice

from memstore.context.turns import Turn
from memstore.derive.sentences import sentences
from memstore.providers import TokenCounter

MARK = " […]"
CHARACTERS = 32  # read for each token, which in prose stands for 4: not all of a text of megabytes
CLOSELY = 0.7  # of the tokens, which sentences must use, else it is cut after a word
_WORD = re.compile(r"\S+")


def cut_text(text: str, tokens: int, counter: TokenCounter) -> str | None:
    """Give the first sentences of the text with a mark, as many as have at most so many tokens; None for none."""
    begun = text[: max(0, tokens) * CHARACTERS]
    whole = sentences(begun) if begun == text else sentences(begun)[:-1]  # the last one may go on
    return _cut(text, [stop for _, stop in whole], tokens, counter)


def cut_closely(text: str, tokens: int, counter: TokenCounter) -> str | None:
    """Give the first sentences, or where those would leave much unused the first words; None for none."""
    found = cut_text(text, tokens, counter)
    if found is not None and counter.count(found) >= CLOSELY * tokens:
        return found
    return (
        _cut(text, [word.end() for word in islice(_WORD.finditer(text), max(0, tokens + 1))], tokens, counter) or found
    )


def _cut(text: str, ends: Sequence[int], tokens: int, counter: TokenCounter) -> str | None:
    least, most = 0, len(ends)
    while least < most:
        middle = (least + most + 1) // 2
        if counter.count(text[: ends[middle - 1]] + MARK) <= tokens:
            least = middle
        else:
            most = middle - 1
    return text[: ends[least - 1]] + MARK if least else None


def cut_turn(turn: Turn, tokens: int, counter: TokenCounter) -> Turn | None:
    """Give a turn of one plain message with its text cut; None where that cannot be, as with calls of tools."""
    message = turn.messages[0]
    if len(turn.messages) > 1 or message.tool_calls or message.parts is not None or not message.text:
        return None
    around = counter.count_message(message.as_chat()) - counter.count(message.text)
    text = cut_text(message.text, tokens - around, counter)
    return None if text is None else with_text(turn, text)


def with_text(turn: Turn, text: str) -> Turn:
    """Give a turn of one message with another text."""
    message = turn.messages[0]
    return replace(turn, messages=(type(message).model_construct(**(vars(message) | {"text": text})),))
