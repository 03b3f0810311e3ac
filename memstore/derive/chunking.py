"""Where texts are cut: into sentences, and long ones into chunks within the embedder's window. Pure.

Sentences are found in one pass. A pattern finds the places where one *may* end; what stands directly before and after
each of them decides. Nothing looks further than a few dozen characters, so the time grows with the length only.

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


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_CLOSERS = "\"'’”“»›)]}*_`」』）】》"

# A run of stops is entered at its first character only, and possessively: a text of a million dots is read once.
_PLACE = re.compile(
    rf"(?P<wide>(?<![。！？｡])[。！？｡]++[{re.escape(_CLOSERS)}]*+)"
    rf"|(?P<stop>(?<![.!?…؟।])[.!?…؟।]++[{re.escape(_CLOSERS)}]*+)(?=\s|$)"
    r"|(?P<line>[\n\r\u0085\u2028\u2029]\s*+)"
)
_LINE_END = re.compile(r"\r\n|[\n\r\u0085\u2028\u2029]")
_SPACE = re.compile(r"\s++")
_ITEM = re.compile(r"(?:[-*•–+]|\d{1,3}[.)]|#{1,6}|>)(?=\s)|```|~~~|\|")
_NEXT_WORD = re.compile(r"\s*+[\"'‘“„«(\[]*+([^\W_]+)")
_INITIALS = re.compile(r"(?:[^\W\d_]\.)+[^\W\d_]")
_DAY_AND_MONTH = re.compile(r"\d{1,2}\.\d{1,2}")  # "bis 31.7. die Steuer"
_LOOK_BACK = 40

# All without their last dot. These are never the end of a sentence:
_BEFORE_MORE = _words(
    "mr mrs ms mx dr prof rev hon st mt capt lt col gen sgt gov rep pres hr frl dipl ing"
    " vs cf fig figs eq approx e.g i.e eg viz"
    " z.b d.h u.a o.g s.o s.u z.t v.a bzw ca evtl ggf inkl exkl zzgl vgl sog nr str tel bsp"
)
# These stand inside a sentence as often as at its end, and the word that follows them decides:
_MAY_END = _words("etc usw usf al inc ltd co corp jr sr a.m p.m am pm u.s u.k u.s.a ph.d b.sc m.sc min std")
# These are abbreviations before a number only ("No. 5", "Jan. 3"), else words that may end a sentence:
_BEFORE_NUMBER = _words(
    "no nos vol pp p ch sec art abs jan feb mar apr jun jul aug sep sept oct okt nov dec dez approx"
)
_OPENING_WORDS = _words(
    "I We He She It They You My Our His Her Their This That These Those The A An But And So Then There When What"
    " Where Who Why How If Also Anyway However Yes No Do Did Is Are Was Can Could Would Should Let Please Thanks Maybe"
    " In On At Ich Wir Er Sie Es Ihr Mein Meine Der Die Das Ein Eine Und Aber Dann Da Wenn Wo Wer Wie Warum Ja Nein"
)
_MONTHS = _words("januar februar märz april mai juni juli august september oktober november dezember")
# Without "am": "I am 30. Then …" is far more frequent than an ordinal after it, and a month says it anyway.
_BEFORE_ORDINAL = _words(
    "der dem den des das die vom von ab zum zur im beim jeden jeder mein meinen meinem unser unseren"
)


def sentences(text: str) -> list[tuple[int, int]]:
    """Return the spans `(start, stop)` of the sentences, in characters and in order.

    Every character that is not white space is in exactly one span. A stop ends a sentence with the quotes and brackets
    that close after it; so does a blank line, and the line break before or after an item of a list, a heading, a
    quoted line or a fence. The line breaks of wrapped prose do not.
    """
    spans: list[tuple[int, int]] = []
    start = _skip_space(text, 0)
    item = bool(_ITEM.match(text, start))
    for place in _PLACE.finditer(text):
        if place.start() < start or not _ends(text, start, place, item):
            continue
        stop = place.start() if place.lastgroup == "line" else place.end()
        spans.append((start, start + len(text[start:stop].rstrip())))
        start = _skip_space(text, stop)
        item = bool(_ITEM.match(text, start))
    if start < len(text):
        spans.append((start, start + len(text[start:].rstrip())))
    return spans


def _skip_space(text: str, position: int) -> int:
    space = _SPACE.match(text, position)
    return space.end() if space else position


def _ends(text: str, start: int, place: re.Match[str], item: bool) -> bool:
    if place.lastgroup == "wide":
        return True
    if place.lastgroup == "line":
        return _line_ends(text, place, item)
    stop = place["stop"]
    if stop.startswith(".") and stop.rstrip(_CLOSERS) == ".":
        return _dot_ends(text, start, place)
    following = _following(text, place.end())
    mild = "!" not in stop and "?" not in stop
    quoted = stop[-1] not in ".!?…؟।"
    return not (following[:1].islower() and (mild or quoted))


def _line_ends(text: str, place: re.Match[str], item: bool) -> bool:
    gap = place["line"]
    if len(_LINE_END.findall(gap)) > 1 or _ITEM.match(text, place.end()):
        return True
    return item and gap[-1] not in " \t"  # an indented line goes on with its item


def _following(text: str, position: int) -> str:
    word = _NEXT_WORD.match(text, position, position + _LOOK_BACK)
    return word[1] if word else ""


def _dot_ends(text: str, start: int, place: re.Match[str]) -> bool:
    before = text[max(start, place.start() - _LOOK_BACK) : place.start()].split()
    word = before[-1].lstrip("\"'‘“„«([*_") if before else ""
    previous = before[-2] if len(before) > 1 else ""
    following = _following(text, place.end())
    if word.isdigit() and len(word) <= 3:
        return not _is_ordinal(word, previous, following, first=len(before) == 1 and place.start() - start <= len(word))
    if following[:1].islower() and _DAY_AND_MONTH.fullmatch(word):
        return False
    low = word.lower()
    if low in _BEFORE_NUMBER and following[:1].isdigit():
        return False
    if low in _BEFORE_MORE:
        return False
    if low in _MAY_END or _INITIALS.fullmatch(word) or _is_initial(word, previous, text, place.end()):
        return not following or following in _OPENING_WORDS
    return True


def _is_ordinal(word: str, previous: str, following: str, *, first: bool) -> bool:
    """Return whether a number with a dot heads a list item or is a German ordinal: "1. Buy milk", "am 3. Mai"."""
    if first:
        return True
    return following.lower() in _MONTHS or (len(word) < 3 and previous.lower() in _BEFORE_ORDINAL)


def _is_initial(word: str, previous: str, text: str, end: int) -> bool:
    """Return whether a single letter stands for a longer word: "J. R. Smith", "z. B."."""
    if len(word) != 1 or not word.isalpha():
        return False
    if re.match(r"\s[^\W\d_]\.", text[end : end + 3]):
        return True
    return word.isupper() and word != "I" and (not previous or previous[0].isupper() or previous.endswith("."))


Spans = list[tuple[int, int]]  # (start, stop) in characters, in order

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
