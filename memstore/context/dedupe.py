"""What a context says already, so that it does not pay for it twice. Pure.

Two texts say the same where their words do: case and punctuation are no difference, and of four words in a row, nine
out of ten must stand there too. That finds what was repeated, quoted, or taken over into a summary word by word. Of
several lines or sentences, as a summary has them, nine of ten words must be of such as are said: it tells them without
what was between them, behind who said them. A fact says what the message says that it comes from where it has nearly
all of the message's words.
"""

from __future__ import annotations

import re
import string
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import accumulate
from uuid import UUID

ROW = 4  # words; texts of fewer have no such row: of them only the very same are one
ENOUGH = 0.9  # of the rows, or of the words
WORD = 4  # letters; shorter ones ("I am", "the") differ between a statement and the fact that it became
LONGEST = 100_000  # characters: nothing says a longer text too, and a look at one of megabytes takes seconds
_FRAME = re.compile(
    r"^\s*[^:\n]{1,40}: |\s*\([^()\n]*\b\d{4}\)"
)  # who says a line of a summary, which day is meant in it
_SENTENCE = re.compile(r"[.!?]\s+")
_MARKS = str.maketrans(dict.fromkeys(string.punctuation, " "))
_ASCII = bytes(range(256)).decode("latin-1").translate(_MARKS).encode("latin-1")
_OTHERS = re.compile("[“”„‘’«»…–—]")


def words(text: str) -> list[str]:
    """Return the words of a text, without case and punctuation.

    As bytes, in which a character that is not ASCII has none that is: `str.translate` takes three times as long.
    """
    found = text.casefold().encode("utf-8", "surrogatepass").translate(_ASCII).decode("utf-8", "surrogatepass")
    return (found if text.isascii() else _OTHERS.sub(" ", found)).split()


class TextFingerprint:
    """A text, and what of it is compared. Worked out when it is first asked for, once for all packings that try it."""

    def __init__(self, text: str) -> None:
        self.text = text

    @cached_property
    def words(self) -> list[str]:
        """Its words."""
        return words(self.text)

    @cached_property
    def rows(self) -> list[str]:
        """Every `ROW` of its words that follow one another."""
        return _rows(self.words)

    @cached_property
    def parts(self) -> list[tuple[int, list[str]]]:
        """The words, how many, and the rows of each of its lines, or of each sentence of its one line."""
        lines = self.text.splitlines()
        if len(lines) == 1 and ":" not in self.text and "(" not in self.text:
            counts = [len(words(part)) for part in _SENTENCE.split(self.text)]
            ends = accumulate(counts)
            return [
                (count, self.rows[end - count : max(0, end - ROW + 1)]) for count, end in zip(counts, ends, strict=True)
            ]
        lines = [_FRAME.sub("", line) for line in lines if not line.endswith(":")]
        parts = map(words, lines if len(lines) > 1 else _SENTENCE.split("".join(lines)))
        return [(len(part), _rows(part)) for part in parts]


class SaidIndex:
    """The texts of a context so far."""

    def __init__(self) -> None:
        self._untold: list[
            tuple[TextFingerprint, Iterable[UUID], int]
        ] = []  # most packings ask for nothing that they said
        self._rows = Counter[str]()  # how often each is there; none that is not
        self._short = Counter[str]()  # the same of whole texts that have no row
        self._by_source: defaultdict[UUID, Counter[str]] = defaultdict(Counter)

    def add(self, wording: TextFingerprint, sources: Iterable[UUID] = ()) -> None:
        """Take a text in; with `sources`, a fact that these messages say."""
        self._untold.append((wording, sources, 1))

    def remove(self, wording: TextFingerprint, sources: Iterable[UUID] = ()) -> None:
        """Take a text out again that was taken in."""
        self._untold.append((wording, sources, -1))

    def says(self, wording: TextFingerprint, message: UUID | None = None) -> bool:
        """Whether what is there says this text too; `message` is the one that it is, where it is one."""
        if len(wording.text) > LONGEST:
            return False
        self._take_in()
        if not wording.rows:
            return self._short[" ".join(wording.words)] > 0
        known = self._share(wording.rows)
        if known >= ENOUGH or (known and self._has_parts(wording)):  # most texts have nothing in common with the others
            return True
        told = self._by_source.get(message) if message is not None else None
        if told is None:
            return False
        long = [word for word in wording.words if len(word) >= WORD]
        return bool(long) and sum(told[word] > 0 for word in long) >= ENOUGH * len(long)

    def _share(self, rows: Sequence[str]) -> float:
        """Return which part of these rows is there; 0 for none."""
        return sum(map(self._rows.__contains__, rows)) / len(rows) if rows else 0.0

    def _has_parts(self, wording: TextFingerprint) -> bool:
        """Whether nearly all is said of the lines of a text, or of the sentences of its one line, each alone."""
        parts = wording.parts
        if len(parts) < 2:
            return False
        known = sum(count for count, rows in parts if self._share(rows) >= ENOUGH)
        return known >= ENOUGH * sum(count for count, _ in parts)

    def _take_in(self) -> None:
        for wording, sources, times in self._untold:
            if not wording.rows and wording.words:
                self._short[" ".join(wording.words)] += times
            if times > 0:
                self._rows.update(wording.rows)
            else:
                for row in wording.rows:
                    self._rows[row] -= 1
                    if not self._rows[row]:
                        del self._rows[row]
            for source in sources:
                told = self._by_source[source]
                (told.update if times > 0 else told.subtract)(wording.words)
        self._untold.clear()


def _rows(found: Sequence[str]) -> list[str]:
    # As texts: the garbage collector would follow every tuple, and a context has thousands.
    return list(map(" ".join, zip(found, found[1:], found[2:], found[3:], strict=False)))
