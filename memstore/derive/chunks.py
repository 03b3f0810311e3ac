"""Units of recall: where a text that is longer than the embedder's window is cut. Pure.

A short text is one unit. A long one is cut at the ends of sentences; neighbours share one, so that what is said across
a border is found from both sides. A sentence that is too long is cut between words, a word between characters.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Callable
from functools import partial
from itertools import pairwise

from memstore.derive.sentences import sentences

_SPACE = re.compile(r"\s++")
_JOINERS = "\u200c\u200d\ufe0e\ufe0f\U0001f3fb\U0001f3fc\U0001f3fd\U0001f3fe\U0001f3ff"
_TRIES = 4  # counts to fill a chunk better, once something fits
PART = 0.8  # of a chunk's characters, as counts differ from part to part
_FULL = 0.9  # of the limit: good enough to stop trying


def chunks(
    text: str,
    limit: int,
    count: Callable[[str], int],
    overlap: int = 40,
    parts: Callable[[str, int], list[tuple[int, int]]] | None = None,
) -> list[tuple[int, int]]:
    """Give the spans `(start, stop)`, in characters and in order, of the units of recall of a text.

    `limit` and `overlap` are tokens of `count`, which may be any function of a text: no span counts more than `limit`,
    unless it is one character that does so alone. Every character that is not white space is in a span, and every
    sentence within the limit is whole in one. A chunk begins with the last sentence of the one before it, if that has
    at most `overlap` tokens. Nothing but white space gives []. Calls `count` about three times a chunk, with texts of
    about a chunk's length (and once with each longer sentence and word): linear, 4 MB of prose take 1 s with tiktoken.

    `parts(text, characters)` gives other spans than those of the sentences, for texts that have a structure, none
    longer than about the characters of a chunk where it can.
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
    spans = parts(text, max(1, int(PART * limit * rate))) if parts else sentences(text)
    return _Cutter(text, limit, count, rate).cut(spans, overlap)


class _Cutter:
    """Finds ends by guessing them from the characters that a token had so far, and counting what was guessed."""

    def __init__(self, text: str, limit: int, count: Callable[[str], int], rate: float) -> None:
        self.text = text
        self.limit = limit
        self.count = count
        self.rate = rate

    def cut(self, spans: list[tuple[int, int]], overlap: int) -> list[tuple[int, int]]:
        """Give the chunks of sentences that lie at `spans`."""
        found: list[tuple[int, int]] = []
        stops = [stop for _, stop in spans]
        first = new = 0  # the sentence that the chunk begins with, and the first one that no chunk has yet
        while new < len(spans):
            start = spans[first][0]
            end = self.furthest(start, partial(_sentence_end, stops, new), stops[-1])
            if end is None and first < new:
                first = new
            elif end is None and spans[new][1] - start == 1:
                found.append(spans[new])
                first = new = new + 1
            elif end is None:
                *pieces, rest = self.cut_sentence(*spans[new])
                found += pieces
                spans[new] = rest  # what is left of it goes on with the next sentence
            else:
                found.append((start, end))
                new = bisect_right(stops, end)
                shared = new - 1 > first and self.count(self.text[slice(*spans[new - 1])]) <= overlap
                first = new - 1 if shared else new
        return found

    def cut_sentence(self, start: int, stop: int) -> list[tuple[int, int]]:
        pieces: list[tuple[int, int]] = []
        while start < stop:
            end = self.furthest(start, partial(_word_end, self.text, start, stop), stop)
            if end is None:
                pieces += self.cut_word(start, end := _word_end(self.text, start, stop, start))
            else:
                pieces.append((start, end))
            start = _skip_space(self.text, end)
        return pieces

    def cut_word(self, start: int, stop: int) -> list[tuple[int, int]]:
        ends = [start]
        while ends[-1] < stop:
            end = self.furthest(ends[-1], partial(_character_end, self.text, ends[-1], stop), stop)
            ends.append(end or ends[-1] + 1)
        return list(pairwise(ends))

    def furthest(self, start: int, ends: Callable[[int], int], stop: int) -> int | None:
        """Give an end, near the last one, so that the text from `start` is within the limit; None if none is.

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
