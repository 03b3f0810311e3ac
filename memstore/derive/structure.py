"""Where what a tool gave may be cut: elements of JSON, lines, else sentences. Pure.

Sentences know nothing of structure: they end inside a string of JSON, and take a log for one sentence.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from collections import defaultdict
from itertools import pairwise

from memstore.derive.sentences import sentences

LONGEST_LINE = 240  # characters; longer ones are paragraphs
WRAPPED = 0.8  # of the lines of wrapped prose are as full as they could be, and as many begin with a letter
DEEPEST = 12  # of nested objects and lists that are looked into
PER_SENTENCE = 400  # characters: prose has sentences that are shorter

_JSON = re.compile(r'"(?:[^"\\]|\\.)*+"|[\[\]{},]')
_LINES = re.compile(r"\S.*")


def parts(text: str, longest: int) -> list[tuple[int, int]]:
    """Give the spans `(start, stop)` of the parts of a tool's result, in characters, in order and apart.

    Every character that is not white space is in exactly one. An element of JSON is one part where it has at most
    `longest` characters, else its own elements are; of other texts with lines the lines are, where these are no prose.
    """
    if text.lstrip()[:1] in ("{", "[") and _is_json(text):
        return _short([_stripped(text, *span) for span in _elements(text, longest)], text, longest)
    lines = [(found.start(), found.start() + len(found[0].rstrip())) for found in _LINES.finditer(text)]
    paragraphs = sum(stop - start > LONGEST_LINE for start, stop in lines)
    if len(lines) < 2 or 2 * paragraphs > len(lines) or _wrapped(text, lines):
        return sentences(text)
    return _short(lines, text, LONGEST_LINE)


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _elements(text: str, longest: int) -> list[tuple[int, int]]:
    """Cut after the commas of the outermost objects and lists, and inside what is still too long after theirs."""
    commas = _commas(text)
    spans = [(0, len(text))]
    for depth in sorted(commas)[:DEEPEST]:
        ends = commas[depth]
        cut: list[tuple[int, int]] = []
        for start, stop in spans:
            inner = ends[bisect_left(ends, start + 1) : bisect_left(ends, stop)] if stop - start > longest else []
            cut += pairwise([start, *inner, stop])
        spans = cut
    return spans


def _commas(text: str) -> dict[int, list[int]]:
    """Give the places after commas, by how deep they stand."""
    found: dict[int, list[int]] = defaultdict(list)
    depth = 0
    for mark in _JSON.finditer(text):
        if mark[0] in "[{":
            depth += 1
        elif mark[0] in "]}":
            depth -= 1
        elif mark[0] == ",":
            found[depth].append(mark.end())
    return found


def _stripped(text: str, start: int, stop: int) -> tuple[int, int]:
    piece = text[start:stop]
    return start + len(piece) - len(piece.lstrip()), start + len(piece.rstrip())


def _short(spans: list[tuple[int, int]], text: str, longest: int) -> list[tuple[int, int]]:
    """Give the spans, those that are longer as the sentences in them."""
    found: list[tuple[int, int]] = []
    for start, stop in spans:
        if stop - start > longest:
            found += [(start + begin, start + end) for begin, end in sentences(text[start:stop])]
        else:
            found.append((start, stop))
    return found


def _wrapped(text: str, lines: list[tuple[int, int]]) -> bool:
    """Whether lines are those of wrapped prose: nearly full, begun by letters, with sentences shorter than a table."""
    width = max(stop - start for start, stop in lines)
    full = sum(
        stop - start + 1 + len(text[other:end].split(None, 1)[0]) > width
        for (start, stop), (other, end) in pairwise(lines)
    )
    begun = sum(text[start].isalpha() for start, _ in lines)
    if min(full, begun) < WRAPPED * (len(lines) - 1):
        return False
    return len(sentences(text)) >= len(text) / PER_SENTENCE
