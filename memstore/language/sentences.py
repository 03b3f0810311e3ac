"""Cuts texts into sentences. Pure.

Sentences are found in one pass. A pattern finds the places where one *may* end; the characters before and after each of
them decide. Nothing looks further than a few dozen characters, so the time grows with the length only.
"""

from __future__ import annotations

import re

from memstore.language import load_words

Spans = list[tuple[int, int]]

_CLOSERS = "\"'’”“»›)]}*_`」』）】》"

# A run of stops is entered at its first character only, and possessively: a text of a million dots is read once.
_PLACE = re.compile(
    rf"(?P<wide>(?<![。！？｡])[。！？｡]++[{re.escape(_CLOSERS)}]*+)"
    rf"|(?P<stop>(?<![.!?…؟।])[.!?…؟।]++[{re.escape(_CLOSERS)}]*+)(?=\s|$)"
    r"|(?P<line>[\n\r\u0085\u2028\u2029]\s*+)"
)
SPACE = re.compile(r"\s++")
_ITEM = re.compile(r"(?:[-*•–+]|\d{1,3}[.)]|#{1,6}|>)(?=\s)|```|~~~|\|")
_NEXT_WORD = re.compile(r"\s*+[\"'‘“„«(\[]*+([^\W_]+)")
_LOOK_BACK = 40

# Abbreviations before a number only ("No. 5", "Jan. 3"), else words that may end a sentence.
_BEFORE_NUMBERS = load_words("abbreviations_before_numbers") | (
    load_words("short_months", "en", "de") - load_words("months", "en", "de")
)


def sentences(text: str) -> Spans:
    """Return the spans `(start, stop)` of the sentences, in characters and in order.

    Every character that is not white space is in exactly one span. A stop ends a sentence with the quotes and brackets
    that close after it; so does a blank line, and the line break before or after an item of a list, a heading, a
    quoted line or a fence. The line breaks of wrapped prose do not.
    """
    spans: Spans = []
    start = skip_space(text, 0)
    item = bool(_ITEM.match(text, start))
    for place in _PLACE.finditer(text):
        if place.start() < start or not _ends(text, start, place, item):
            continue
        stop = place.start() if place.lastgroup == "line" else place.end()
        spans.append((start, start + len(text[start:stop].rstrip())))
        start = skip_space(text, stop)
        item = bool(_ITEM.match(text, start))
    if start < len(text):
        spans.append((start, start + len(text[start:].rstrip())))
    return spans


def skip_space(text: str, position: int) -> int:
    """Return the position of the first character from there on that is no white space."""
    space = SPACE.match(text, position)
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
    has_blank_line = len(f"{gap}.".splitlines()) > 2
    if has_blank_line or _ITEM.match(text, place.end()):
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
    # "bis 31.7. die Steuer"
    parts = word.split(".")
    if following[:1].islower() and len(parts) == 2 and all(part.isdecimal() and len(part) < 3 for part in parts):
        return False
    low, is_initials = word.lower(), len(parts) > 1 and all(len(part) == 1 and part.isalpha() for part in parts)
    if low in _BEFORE_NUMBERS and following[:1].isdigit():
        return False
    if low in load_words("abbreviations"):
        return False
    # They stand inside a sentence as often as at its end.
    if low in load_words("abbreviations_at_ends") or is_initials or _is_initial(word, previous, text, place.end()):
        return not following or following in load_words("opening_words")
    return True


def _is_ordinal(word: str, previous: str, following: str, *, first: bool) -> bool:
    """Return whether a number with a dot heads a list item or is a German ordinal: "1. Buy milk", "am 3. Mai"."""
    if first:
        return True
    # As in "Samstag 27. ging es".
    if len(word) < 3 and (following[:1].islower() or previous.lower() in load_words("before_ordinals")):
        return True
    return following.lower() in load_words("months", "de")


def _is_initial(word: str, previous: str, text: str, end: int) -> bool:
    """Return whether a single letter stands for a longer word: "J. R. Smith", "z. B."."""
    if len(word) != 1 or not word.isalpha():
        return False
    if re.match(r"\s[^\W\d_]\.", text[end : end + 3]):
        return True
    return word.isupper() and word != "I" and (not previous or previous[0].isupper() or previous.endswith("."))
