"""Cuts texts into sentences and chunks, and conversations into segments. Pure.

Sentences are found in one pass. A pattern finds the places where one *may* end; the characters before and after each of
them decide. Nothing looks further than a few dozen characters, so the time grows with the length only.

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

from memstore.models import Message, Role
from memstore.text import word_set

Spans = list[tuple[int, int]]

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
_BEFORE_MORE = word_set(
    "mr mrs ms mx dr prof rev hon st mt capt lt col gen sgt gov rep pres hr frl dipl ing"
    " vs cf fig figs eq approx e.g i.e eg viz"
    " z.b d.h u.a o.g s.o s.u z.t v.a bzw ca evtl ggf inkl exkl zzgl vgl sog nr str tel bsp"
)
# These stand inside a sentence as often as at its end, and the word that follows them decides:
_MAY_END = word_set("etc usw usf al inc ltd co corp jr sr a.m p.m am pm u.s u.k u.s.a ph.d b.sc m.sc min std")
# These are abbreviations before a number only ("No. 5", "Jan. 3"), else words that may end a sentence:
_BEFORE_NUMBER = word_set(
    "no nos vol pp p ch sec art abs jan feb mar apr jun jul aug sep sept oct okt nov dec dez approx"
)
_OPENING_WORDS = word_set(
    "I We He She It They You My Our His Her Their This That These Those The A An But And So Then There When What"
    " Where Who Why How If Also Anyway However Yes No Do Did Is Are Was Can Could Would Should Let Please Thanks Maybe"
    " In On At Ich Wir Er Sie Es Ihr Mein Meine Der Die Das Ein Eine Und Aber Dann Da Wenn Wo Wer Wie Warum Ja Nein"
)
_MONTHS = word_set("januar februar märz april mai juni juli august september oktober november dezember")
# Without "am": "I am 30. Then …" is far more frequent than an ordinal after it, and a month says it anyway.
_BEFORE_ORDINAL = word_set(
    "der dem den des das die vom von ab zum zur im beim jeden jeder mein meinen meinem unser unseren"
)


def sentences(text: str) -> Spans:
    """Return the spans `(start, stop)` of the sentences, in characters and in order.

    Every character that is not white space is in exactly one span. A stop ends a sentence with the quotes and brackets
    that close after it; so does a blank line, and the line break before or after an item of a list, a heading, a
    quoted line or a fence. The line breaks of wrapped prose do not.
    """
    spans: Spans = []
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
    # An indented line goes on with its item.
    return item and gap[-1] not in " \t"


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
    # As in "Samstag 27. ging es".
    if len(word) < 3 and (following[:1].islower() or previous.lower() in _BEFORE_ORDINAL):
        return True
    return following.lower() in _MONTHS


def _is_initial(word: str, previous: str, text: str, end: int) -> bool:
    """Return whether a single letter stands for a longer word: "J. R. Smith", "z. B."."""
    if len(word) != 1 or not word.isalpha():
        return False
    if re.match(r"\s[^\W\d_]\.", text[end : end + 3]):
        return True
    return word.isupper() and word != "I" and (not previous or previous[0].isupper() or previous.endswith("."))


_CODE_BLOCK = re.compile(
    r"^[ \t]*+(`{3,}+|~{3,}+)[^\n]*+\n.*?(?:^[ \t]*+\1[`~]*+[ \t]*+$|\Z)", re.DOTALL | re.MULTILINE
)
# Of the limit: tokens are not spread evenly.
_TARGET_SHARE = 0.9
_MIN_BLOCK_CHARS = 100
_LINE = re.compile(r"\S.*")
_MAX_LINE_CHARS = 240


def split_text(
    text: str,
    limit: int,
    count: Callable[[str], int],
    overlap: int = 40,
    split: Callable[[str], Spans] = sentences,
) -> Spans:
    """Return the spans of the chunks of a text, which `split` cuts into sentences or lines.

    `limit` and `overlap` are tokens of `count`, which may be any function of a text: no span counts more than `limit`,
    unless it is one character that does so alone. Every character that is not white space is in a span, and every
    sentence within the limit is whole in one. A chunk begins with the last sentence of the one before it, if that has
    at most `overlap` tokens. White space alone gives [].
    """
    if limit < 1:
        raise ValueError(f"A chunk has at least 1 token, not {limit}")
    start, stop = _skip_space(text, 0), len(text.rstrip())
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
        # Together they may count more than their sum.
        while (first, last) != (new, new) and count(text[parts[first][0] : parts[last][1]]) > limit:
            first, last = (first, last - 1) if last > new else (new, new)
        chunks.append((parts[first][0], parts[last][1]))
        shared = last > first and parts[last][2] <= overlap
        first, new = last + (not shared), last + 1
    return chunks


def _cut_long(text: str, start: int, stop: int, limit: int, count: Callable[[str], int]) -> list[tuple[int, int, int]]:
    """Return a sentence, or parts of it within the limit and of about one length, each with its tokens."""
    tokens = count(text[start:stop])
    if tokens <= limit or stop - start == 1:
        return [(start, stop, tokens)]
    size = -(-(stop - start) // ceil(tokens / (_TARGET_SHARE * limit)))
    has_words = _SPACE.search(text, start, stop) is not None
    parts = []
    while start < stop:
        end = min(start + size, stop)
        end = _word_end(text, start, end, stop) if has_words else end
        parts += _cut_long(text, start, end, limit, count)
        start = _skip_space(text, end)
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
    space = _SPACE.search(text, position, stop)
    return space.start() if space else stop


def split_code_blocks(text: str) -> Spans:
    """Return the spans of the prose and of each fenced code block; every character is in exactly one.

    A fence that is never closed goes to the end, as in Markdown. In one chunk with long code a question is hard to
    find: apart, evidence recall is higher (benchmarks/NOTES.md).
    """
    ends = [0]
    for block in _CODE_BLOCK.finditer(text):
        if len(block[0]) >= _MIN_BLOCK_CHARS:
            ends += [block.start(), block.end()]
    ends.append(len(text))
    return [(start, stop) for start, stop in pairwise(ends) if start < stop]


def split_lines(text: str) -> Spans:
    """Return the spans of the lines of a tool's result, long ones cut into sentences."""
    return [
        (line.start() + start, line.start() + stop)
        for line in _LINE.finditer(text)
        for start, stop in (sentences(line[0]) if len(line[0]) > _MAX_LINE_CHARS else [(0, len(line[0].rstrip()))])
    ]


SUMMARIZED_ROLES = frozenset({Role.USER, Role.ASSISTANT})
MAX_CALL_FACTOR = 8


def split_segments(messages: Sequence[Message], gap: timedelta, tokens: int) -> Iterator[Sequence[Message]]:
    """Yield the closed segments, each of at most `tokens` tokens, or one message; the open rest waits.

    A call of tools and its results stay together, up to `MAX_CALL_FACTOR` times the tokens.
    """
    start = 0
    while stop := _find_close(messages, start, gap, tokens):
        yield messages[start:stop]
        start = stop


def _find_close(messages: Sequence[Message], start: int, gap: timedelta, tokens: int) -> int:
    """Return the index after the messages that can belong to one segment; 0 where more may come."""
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
        # After a call more may come that belongs to it.
        if size >= (MAX_CALL_FACTOR * tokens if message.tool_calls or is_result else tokens):
            return index + 1
    return 0


def _size(message: Message) -> int:
    # Messages without any text would be a segment without an end.
    return max(1, message.tokens)
