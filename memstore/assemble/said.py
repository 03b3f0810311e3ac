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
from collections.abc import Iterable, Iterator, Sequence
from uuid import UUID

ROW = 4  # words; texts of fewer are not compared: they cost little, and a "yes" may answer anything
ENOUGH = 0.9  # of the rows, or of the words
WORD = 4  # letters; shorter ones ("I am", "the") differ between a statement and the fact that it became
_FRAME = re.compile(
    r"^\s*[^:\n]{1,40}: |\s*\([^()\n]*\b\d{4}\)"
)  # who says a line of a summary, which day is meant in it
_SENTENCE = re.compile(r"(?<=[.!?])\s+")
_NO_WORDS = str.maketrans(dict.fromkeys(string.punctuation + "“”„‘’«»…–—", " "))


def words(text: str) -> list[str]:
    """Give the words of a text, without case and punctuation."""
    return text.casefold().translate(_NO_WORDS).split()


class Said:
    """The texts of a context so far."""

    def __init__(self) -> None:
        self._untold: list[tuple[str, Iterable[UUID], int]] = []  # most packings ask for nothing that they said
        self._rows = Counter[tuple[str, ...]]()
        self._by_source: defaultdict[UUID, Counter[str]] = defaultdict(Counter)

    def add(self, text: str, sources: Iterable[UUID] = ()) -> None:
        """Take a text in; with `sources`, a fact that these messages say."""
        self._untold.append((text, sources, 1))

    def remove(self, text: str, sources: Iterable[UUID] = ()) -> None:
        """Take a text out again that was taken in."""
        self._untold.append((text, sources, -1))

    def says(self, text: str, message: UUID | None = None) -> bool:
        """Whether what is there says this text too; `message` is the one that it is, where it is one."""
        found = words(text)
        if len(found) < ROW:
            return False
        self._take_in()
        known = self._share(found)
        if known >= ENOUGH or (known and self._has_parts(text)):  # most texts have nothing in common with the others
            return True
        told = self._by_source.get(message) if message is not None else None
        long = [word for word in found if len(word) >= WORD]
        return told is not None and bool(long) and sum(told[word] > 0 for word in long) >= ENOUGH * len(long)

    def _share(self, found: Sequence[str]) -> float:
        """Give which part of the rows of these words is there; 0 for too few words."""
        rows = list(_rows(found))
        return sum(self._rows.get(row, 0) > 0 for row in rows) / len(rows) if rows else 0.0

    def _has_parts(self, text: str) -> bool:
        """Whether nearly all is said of the lines of a text, or of the sentences of its one line, each alone."""
        lines = [_FRAME.sub("", line) for line in text.splitlines() if not line.endswith(":")]
        parts = list(map(words, lines if len(lines) > 1 else _SENTENCE.split("".join(lines))))
        known = sum(len(part) for part in parts if self._share(part) >= ENOUGH)
        return len(parts) > 1 and known >= ENOUGH * sum(map(len, parts))

    def _take_in(self) -> None:
        for text, sources, times in self._untold:
            found = words(text)
            for row in _rows(found):
                self._rows[row] += times
            for source in sources:
                for word in found:
                    self._by_source[source][word] += times
        self._untold.clear()


def _rows(found: Sequence[str]) -> Iterator[tuple[str, ...]]:
    return zip(*(found[start:] for start in range(ROW)), strict=False)
