"""Cuts texts into chunks, and conversations into segments. Pure.

A short text is one chunk. A long one is cut between sentences; neighbours share one sentence, so that a statement
across a border is found from both sides. A sentence that is too long is cut between words, a word between characters.
Fenced code of a user stands apart from the words around it; results of tools are cut between lines.

A segment of a conversation closes at a long silence or where no more tokens fit, so the same history gives the same
segments however it was cut into batches. The segment that is still open waits.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from itertools import pairwise
from math import ceil

from memstore.language.sentences import SPACE, Spans, sentences, skip_space
from memstore.models import Message, Role

_CODE_BLOCK = re.compile(
    r"^[ \t]*+(`{3,}+|~{3,}+)[^\n]*+\n.*?(?:^[ \t]*+\1[`~]*+[ \t]*+$|\Z)", re.DOTALL | re.MULTILINE
)


def split_text(
    text: str, limit: int, count: Callable[[str], int], overlap: int = 40, split: Callable[[str], Spans] = sentences
) -> Spans:
    """Return the spans of the chunks of a text, which `split` cuts into sentences or lines.

    `limit` and `overlap` are tokens of `count`, which may be any function of a text: no span counts more than `limit`,
    unless it is one character that does so alone. Every character that is not white space is in a span, and every
    sentence within the limit is whole in one. A chunk begins with the last sentence of the one before it, if that has
    at most `overlap` tokens. White space alone gives [].
    """
    if limit < 1:
        raise ValueError(f"A chunk has at least 1 token, not {limit}")
    start, stop = skip_space(text, 0), len(text.rstrip())
    if start >= stop:
        return []
    if count(text[start:stop]) <= limit:
        return [(start, stop)]
    parts = [part for span in split(text) for part in _cut_long(text, *span, limit, count)]
    chunks: Spans = []
    # `first` is the part that the chunk begins with, `new` the first one that no chunk has yet.
    first = new = 0
    while new < len(parts):
        if first < new and parts[first][2] + parts[new][2] > limit:
            first = new
        last, total = new, sum(tokens for _, _, tokens in parts[first : new + 1])
        while last + 1 < len(parts) and total + parts[last + 1][2] <= limit:
            last += 1
            total += parts[last][2]
        # Joined parts may count more than their sum: drop the last part, at the end the shared one.
        while (first < new or last > new) and count(text[parts[first][0] : parts[last][1]]) > limit:
            if last > new:
                last -= 1
            else:
                first = new
        chunks.append((parts[first][0], parts[last][1]))
        shared = last > first and parts[last][2] <= overlap
        first, new = last + (not shared), last + 1
    return chunks


def _cut_long(text: str, start: int, stop: int, limit: int, count: Callable[[str], int]) -> list[tuple[int, int, int]]:
    """Return a sentence, or parts of it within the limit and of about one length, each with its tokens."""
    tokens = count(text[start:stop])
    if tokens <= limit or stop - start == 1:
        return [(start, stop, tokens)]
    # Tokens are not spread evenly: plan for a tenth less than the limit.
    size = ceil((stop - start) / ceil(tokens / (0.9 * limit)))
    has_words = SPACE.search(text, start, stop) is not None
    parts = []
    while start < stop:
        end = min(start + size, stop)
        end = _word_end(text, start, end, stop) if has_words else end
        parts += _cut_long(text, start, end, limit, count)
        start = skip_space(text, end)
    return parts


def _word_end(text: str, start: int, position: int, stop: int) -> int:
    """Return the last end of a word up to a position; the next one if there is none."""
    if position == stop:
        return stop
    # One character more tells whether a word ends here.
    part = text[start : position + 1]
    if part[-1].isspace():
        return start + len(part.rstrip())
    words = part.rsplit(None, 1)
    if len(words) == 2:
        return start + len(words[0])
    space = SPACE.search(text, position, stop)
    return space.start() if space else stop


def split_code_blocks(text: str) -> Spans:
    """Return the spans of the prose and of each fenced code block; every character is in exactly one.

    A fence that is never closed goes to the end, as in Markdown. In one chunk with long code a question is hard to
    find: apart, evidence recall is higher (benchmarks/NOTES.md).
    """
    ends = [0]
    for block in _CODE_BLOCK.finditer(text):
        if len(block[0]) >= 100:
            ends += [block.start(), block.end()]
    ends.append(len(text))
    return [(start, stop) for start, stop in pairwise(ends) if start < stop]


def split_lines(text: str) -> Spans:
    """Return the spans of the lines of a tool's result, long ones cut into sentences."""
    return [
        (line.start() + start, line.start() + stop)
        for line in re.finditer(r"\S.*", text)
        for start, stop in (sentences(line[0]) if len(line[0]) > 240 else [(0, len(line[0].rstrip()))])
    ]


SUMMARIZED_ROLES = frozenset({Role.USER, Role.ASSISTANT})
MAX_CALL_FACTOR = 8


def split_segments(messages: Sequence[Message], gap: timedelta, tokens: int) -> Iterator[Sequence[Message]]:
    """Yield the closed segments, each of at most `tokens` tokens, or one message; the open rest waits.

    A call of tools and its results stay together, up to `MAX_CALL_FACTOR` times the tokens.
    """
    start = 0
    while (stop := _find_close(messages, start, gap, tokens)) is not None:
        yield messages[start:stop]
        start = stop


def _find_close(messages: Sequence[Message], start: int, gap: timedelta, tokens: int) -> int | None:
    """Return the index at which the segment that begins at `start` is closed; None while it is open."""
    # `call` is the last message that is no tool's result.
    size, call = 0, start
    for index in range(start, len(messages)):
        message = messages[index]
        is_over = size + _size(message) > tokens
        is_result = message.role == Role.TOOL
        if not is_result:
            if index > start and (is_over or abs(message.occurred_at - messages[index - 1].occurred_at) > gap):
                return index
            call = index
        elif is_over and (call > start or size >= MAX_CALL_FACTOR * tokens):
            return call if call > start else index
        size += _size(message)
        # Results may follow a call or another result.
        if size >= (MAX_CALL_FACTOR * tokens if message.tool_calls or is_result else tokens):
            return index + 1
    return None


def _size(message: Message) -> int:
    # A segment of messages without text would never close.
    return max(1, message.tokens)
