"""Where a quote stands in messages. Pure.

A model may invent a fact; it cannot invent its source. Each quote must stand in a message, but for slips of copying:
quotation marks, dashes, case, punctuation, a corrected typing error, a left out middle, a wrong number of the message.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from difflib import SequenceMatcher
from typing import NamedTuple
from unicodedata import category

from memstore.derive.facts.normalization import is_denied
from memstore.derive.llm import Passage

MIN_SEARCHED_WORDS = 3

_APOSTROPHES = "'’ʼ`´"
_TOKEN = re.compile(
    # 4,500 · p.m. · don't
    rf"\d+(?:[.,:]\d+)*|(?:[^\W\d_]\.){{2,}}|[^\W\d_]+(?:[{_APOSTROPHES}][^\W\d_]+)*",
)
MARKS = dict.fromkeys(map(ord, f"{_APOSTROPHES}.,:"))


class Token(NamedTuple):
    key: str
    start: int
    stop: int


class Span(NamedTuple):
    passage: Passage
    start: int
    stop: int

    @property
    def text(self) -> str:
        return self.passage.text[self.start : self.stop]


def find_source(shown: Sequence[Passage], number: int, quote: str) -> Span | None:
    """Return where a quote stands: in the message of this number, or else in the nearest other one."""
    place = number - 1
    own_stretch = find_quote(shown[place].text, quote, shown[place].speaker) if 0 <= place < len(shown) else None
    if own_stretch is not None:
        return Span(shown[place], *own_stretch)
    if sum(1 for _ in tokens(quote)) < MIN_SEARCHED_WORDS:
        return None
    for _, passage in sorted(enumerate(shown), key=lambda other: abs(other[0] - place)):
        if (stretch := find_quote(passage.text, quote, passage.speaker)) is not None:
            return Span(passage, *stretch)
    return None


def find_quote(text: str, quote: str, speaker: str = "") -> tuple[int, int] | None:
    """Return where a text has these words, in characters, or None.

    The words must be whole: "ate" is not said in "I hate it". In scripts that hardly part their words any place will
    do. One that was not copied to the letter must agree in its numbers and denials.
    """
    # A quote has a word or an emoji.
    if len(quote) > 2000 or not any(each.isalnum() or category(each) == "So" for each in quote):
        return None
    for match in re.finditer(r"\s+".join(map(re.escape, quote.split())), text):
        start, stop = match.span()
        if not (_is_joined(text[start - 1 : start + 1] if start else "") or _is_joined(text[stop - 1 : stop + 1])):
            return start, stop
    words = list(tokens(text))
    named, colon, words_said = quote.partition(":")
    if colon and words_said[:1].isspace() and named.strip().casefold() in (speaker.casefold(), "user", "the user"):
        quote = words_said
    wanted = [token.key for token in tokens(quote)]
    if not wanted:
        return None
    parts = [[token.key for token in tokens(part)] for part in re.split(r"\.{3,}|…", quote)]
    return _find_words(words, [wanted]) or _find_words(words, parts) or _find_nearly(words, wanted)


def _is_joined(pair: str) -> bool:
    return len(pair) == 2 and all(each.isdigit() or each.lower() != each.upper() for each in pair)


def tokens(text: str) -> Iterator[Token]:
    """Yield the words of a text in the form in which they are compared."""
    for match in _TOKEN.finditer(text):
        word = match[0]
        if word[0].isdigit() or word.lower() != word.upper():
            yield Token(word.translate(MARKS).casefold(), *match.span())
        else:
            # A script without capitals, which hardly parts its words.
            for place, character in enumerate(word, match.start()):
                yield Token(character, place, place + 1)


def _find_words(words: Sequence[Token], parts: Iterable[Sequence[str]]) -> tuple[int, int] | None:
    keys, place, first = [token.key for token in words], 0, None
    for part in filter(None, parts):
        size = len(part)
        places = range(place, len(keys) - size + 1)
        start = next((at for at in places if keys[at] == part[0] and keys[at : at + size] == part), None)
        if start is None:
            return None
        first, place = start if first is None else first, start + size
    return None if first is None else (words[first].start, words[place - 1].stop)


def _find_nearly(words: Sequence[Token], wanted: Sequence[str]) -> tuple[int, int] | None:
    if len(wanted) < MIN_SEARCHED_WORDS or sum(map(len, wanted)) > 300:
        return None
    places_to_compare = 50
    matcher = SequenceMatcher(None, "", " ".join(wanted), autojunk=False)
    fixed = _exact_parts(wanted)
    best, place = 0.9, None
    for size in range(len(wanted) - 1, len(wanted) + 2):
        for at in range(len(words) - size + 1):
            window = words[at : at + size]
            matcher.set_seq1(" ".join(token.key for token in window))
            if matcher.real_quick_ratio() < best or matcher.quick_ratio() < best:
                continue
            if (places_to_compare := places_to_compare - 1) < 0:
                return place
            if (ratio := matcher.ratio()) < best:
                continue
            if _exact_parts([token.key for token in window]) == fixed and (ratio > best or place is None):
                best, place = ratio, (window[0].start, window[-1].stop)
    return place


def _exact_parts(keys: Sequence[str]) -> list[str]:
    """Return the parts that no typing error explains: numbers, and how often something is denied."""
    denied = sum(is_denied(key) or key.endswith("nt") for key in keys)
    return [*(key for key in keys if key[0].isdigit()), f"denied {denied}"]
