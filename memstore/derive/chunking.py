"""Where long texts are cut: into chunks within the embedder's window, along sentences or a text's structure. Pure.

A short text is one chunk. A long one is cut between sentences; neighbours share one sentence, so that a statement
across a border is found from both sides. A sentence that is too long is cut between words, a word between characters.
Fenced code of a user stands apart from the words around it; results of tools are cut between JSON elements or lines.
"""

from __future__ import annotations

import json
import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from itertools import pairwise

from memstore.derive.sentences import sentences

Spans = list[tuple[int, int]]  # (start, stop) in characters, in order

_SPACE = re.compile(r"\s++")
_JOINERS = "\u200c\u200d\ufe0e\ufe0f\U0001f3fb\U0001f3fc\U0001f3fd\U0001f3fe\U0001f3ff"
_TRIES = 4  # counts to fill a chunk better, once something fits
_PART = 0.8  # of a chunk's characters, as counts differ from part to part
_FULL = 0.9  # of the limit: good enough to stop trying

_CODE_BLOCK = re.compile(
    r"^[ \t]*+(`{3,}+|~{3,}+)[^\n]*+\n.*?(?:^[ \t]*+\1[`~]*+[ \t]*+$|\Z)", re.DOTALL | re.MULTILINE
)
_MIN_BLOCK = 100  # characters: a shorter block is a part of its sentence

_JSON_MARK = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[\[\]{},]')
_LINE = re.compile(r"\S.*")
_MAX_LINE = 240  # characters; longer lines are paragraphs
_MAX_DEPTH = 12  # of nested objects and lists that are looked into
_WRAPPED = 0.8  # of the lines of wrapped prose are as full as they could be, and as many begin with a letter
_MAX_SENTENCE = 400  # characters, on average: prose has shorter sentences


def split_text(
    text: str,
    limit: int,
    count: Callable[[str], int],
    overlap: int = 40,
    split: Callable[[str, int], Spans] | None = None,
) -> Spans:
    """Return the spans of the chunks of a text.

    `limit` and `overlap` are tokens of `count`, which may be any function of a text: no span counts more than `limit`,
    unless it is one character that does so alone. Every character that is not white space is in a span, and every
    sentence within the limit is whole in one. A chunk begins with the last sentence of the one before it, if that has
    at most `overlap` tokens. White space alone gives []. `count` is called about three times a chunk: O(n).

    `split(text, characters)` replaces the split into sentences for texts with a structure; its spans should have at
    most so many characters.
    """
    if limit < 1:
        raise ValueError(f"A chunk has at least 1 token, not {limit}")
    start = _skip_space(text, 0)
    stop = len(text.rstrip())
    if start >= stop:
        return []
    tokens = count(text[start:stop])
    if tokens <= limit:
        return [(start, stop)]
    rate = (stop - start) / tokens
    spans = split(text, max(1, int(_PART * limit * rate))) if split else sentences(text)
    return _ChunkFinder(text, limit, count, rate).cut(spans, overlap)


class _ChunkFinder:
    """Finds ends by guessing them from the characters that a token had so far, and counting what was guessed."""

    def __init__(self, text: str, limit: int, count: Callable[[str], int], rate: float) -> None:
        self.text = text
        self.limit = limit
        self.count = count
        self.rate = rate

    def cut(self, spans: Spans, overlap: int) -> Spans:
        chunks: Spans = []
        stops = [stop for _, stop in spans]
        first = new = 0  # the sentence that the chunk begins with, and the first one that no chunk has yet
        while new < len(spans):
            start = spans[first][0]
            end = self.furthest(start, partial(_sentence_end, stops, new), stops[-1])
            if end is None and first < new:
                first = new
            elif end is None and spans[new][1] - start == 1:
                chunks.append(spans[new])
                first = new = new + 1
            elif end is None:
                *pieces, rest = self.cut_sentence(*spans[new])
                chunks += pieces
                spans[new] = rest  # what is left of it goes on with the next sentence
            else:
                chunks.append((start, end))
                new = bisect_right(stops, end)
                shared = new - 1 > first and self.count(self.text[slice(*spans[new - 1])]) <= overlap
                first = new - 1 if shared else new
        return chunks

    def cut_sentence(self, start: int, stop: int) -> Spans:
        pieces: Spans = []
        while start < stop:
            end = self.furthest(start, partial(_word_end, self.text, start, stop), stop)
            if end is None:
                pieces += self.cut_word(start, end := _word_end(self.text, start, stop, start))
            else:
                pieces.append((start, end))
            start = _skip_space(self.text, end)
        return pieces

    def cut_word(self, start: int, stop: int) -> Spans:
        ends = [start]
        while ends[-1] < stop:
            end = self.furthest(ends[-1], partial(_character_end, self.text, ends[-1], stop), stop)
            ends.append(end or ends[-1] + 1)
        return list(pairwise(ends))

    def furthest(self, start: int, ends: Callable[[int], int], stop: int) -> int | None:
        """Return an end, near the last one, so that the text from `start` is within the limit; None if none is.

        `ends(position)` is the last allowed end at or before a position, or the first one if there is none.
        """
        fits: int | None = None
        over = stop + 1
        tries = 0
        position = start + int(self.limit * self.rate)
        while fits is None or tries < _TRIES:
            end = ends(min(position, over - 1))
            if end >= over or end == fits:
                break
            tokens = self.count(self.text[start:end])
            tries += 1
            self.rate = (end - start) / max(tokens, 1)
            if tokens > self.limit:
                over = end
                # In proportion; by halves where that does not lead anywhere (counts need not be additive).
                position = start + int((end - start) * (self.limit / tokens if tries < _TRIES else 0.5))
                position = max(position, (fits or start) + 1)
            elif fits is None or end > fits:
                fits = end
                if end >= stop or tokens >= _FULL * self.limit:
                    break
                position = end + max(1, int((self.limit - tokens) * self.rate))
            else:
                break
        return fits


def _sentence_end(stops: list[int], first: int, position: int) -> int:
    return stops[max(bisect_right(stops, position) - 1, first)]


def _word_end(text: str, start: int, stop: int, position: int) -> int:
    if position >= stop:
        return stop
    before = text[start : position + 1]  # one character more tells whether a word ends here
    words = before.rsplit(None, 1)
    if before[-1].isspace():
        return start + len(before.rstrip())
    if len(words) == 2:
        return start + len(words[0])
    space = _SPACE.search(text, position, stop)
    return space.start() if space else stop


def _character_end(text: str, start: int, stop: int, position: int) -> int:
    end = min(max(position, start + 1), stop)
    # Not within a letter and its marks, or a joined emoji; but a long row of marks is cut somewhere.
    for cut in range(end, max(start, end - 16), -1):
        if cut == stop or not (unicodedata.combining(text[cut]) or text[cut] in _JOINERS or text[cut - 1] == "\u200d"):
            return cut
    return end


def _skip_space(text: str, position: int) -> int:
    space = _SPACE.match(text, position)
    return space.end() if space else position


def split_code_blocks(text: str) -> Spans:
    """Return the spans of the prose and of each fenced code block; every character is in exactly one.

    A fence that is never closed goes to the end, as in Markdown. In one chunk with long code a question is hard to
    find: apart, evidence recall is higher (benchmarks/NOTES.md).
    """
    ends = [0]
    for block in _CODE_BLOCK.finditer(text):
        if len(block[0]) >= _MIN_BLOCK:
            ends += [block.start(), block.end()]
    ends.append(len(text))
    return [(start, stop) for start, stop in pairwise(ends) if start < stop]


def split_structured(text: str, longest: int) -> Spans:
    """Return the spans of the parts of a tool's result; every character but white space is in exactly one.

    JSON is cut between its elements, and inside those of more than `longest` characters; other texts between lines,
    and prose between sentences.
    """
    if text.lstrip()[:1] in ("{", "[") and _is_json(text):
        return _split_long([_stripped(text, *span) for span in _elements(text, longest)], text, longest)
    lines = [(found.start(), found.start() + len(found[0].rstrip())) for found in _LINE.finditer(text)]
    paragraphs = sum(stop - start > _MAX_LINE for start, stop in lines)
    if len(lines) < 2 or 2 * paragraphs > len(lines) or _is_wrapped_prose(text, lines):
        return sentences(text)
    return _split_long(lines, text, _MAX_LINE)


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _elements(text: str, longest: int) -> Spans:
    """Cut after the commas of the outermost objects and lists, and inside what is still too long after theirs."""
    commas = _commas(text)
    spans = [(0, len(text))]
    for depth in sorted(commas)[:_MAX_DEPTH]:
        ends = commas[depth]
        cut: Spans = []
        for start, stop in spans:
            inner = ends[bisect_left(ends, start + 1) : bisect_left(ends, stop)] if stop - start > longest else []
            cut += pairwise([start, *inner, stop])
        spans = cut
    return spans


def _commas(text: str) -> dict[int, list[int]]:
    """Return the places after commas, by their depth."""
    commas: dict[int, list[int]] = defaultdict(list)
    depth = 0
    for mark in _JSON_MARK.finditer(text):
        if mark[0] in "[{":
            depth += 1
        elif mark[0] in "]}":
            depth -= 1
        elif mark[0] == ",":
            commas[depth].append(mark.end())
    return commas


def _stripped(text: str, start: int, stop: int) -> tuple[int, int]:
    piece = text[start:stop]
    return start + len(piece) - len(piece.lstrip()), start + len(piece.rstrip())


def _split_long(spans: Spans, text: str, longest: int) -> Spans:
    """Return the spans, longer ones split into sentences."""
    parts: Spans = []
    for start, stop in spans:
        if stop - start > longest:
            parts += [(start + begin, start + end) for begin, end in sentences(text[start:stop])]
        else:
            parts.append((start, stop))
    return parts


def _is_wrapped_prose(text: str, lines: Spans) -> bool:
    width = max(stop - start for start, stop in lines)
    full = sum(
        stop - start + 1 + len(text[other:end].split(None, 1)[0]) > width
        for (start, stop), (other, end) in pairwise(lines)
    )
    begun = sum(text[start].isalpha() for start, _ in lines)
    if min(full, begun) < _WRAPPED * (len(lines) - 1):
        return False
    return len(sentences(text)) >= len(text) / _MAX_SENTENCE
