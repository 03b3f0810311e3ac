"""What a context says already, so that it does not pay for it twice. Pure.

Two texts say the same where their words do: case and punctuation are no difference, and of four words in a row, nine
out of ten must stand there too. That finds what was repeated, quoted, or taken over into a summary word by word. A fact
says what the message says that it comes from where it has nearly all of the message's words.
"""

from __future__ import annotations

import string
from collections.abc import Iterable, Iterator, Sequence
from uuid import UUID

ROW = 4  # words; texts of fewer are not compared: they cost little, and a "yes" may answer anything
ENOUGH = 0.9  # of the rows, or of the words
WORD = 4  # letters; shorter ones ("I am", "the") differ between a statement and the fact that it became
_NO_WORDS = str.maketrans(dict.fromkeys(string.punctuation + "“”„‘’«»…–—", " "))


def words(text: str) -> list[str]:
    """Give the words of a text, without case and punctuation."""
    return text.casefold().translate(_NO_WORDS).split()


class Said:
    """The texts of a context so far."""

    def __init__(self) -> None:
        self._untold: list[tuple[str, Iterable[UUID]]] = []  # most packings ask for nothing that they said
        self._rows: set[tuple[str, ...]] = set()
        self._by_source: dict[UUID, set[str]] = {}

    def add(self, text: str, sources: Iterable[UUID] = ()) -> None:
        """Take a text in; with `sources`, a fact that these messages say."""
        self._untold.append((text, sources))

    def says(self, text: str, message: UUID | None = None) -> bool:
        """Whether what is there says this text too; `message` is the one that it is, where it is one."""
        found = words(text)
        if len(found) < ROW:
            return False
        self._take_in()
        rows = list(_rows(found))
        if sum(map(self._rows.__contains__, rows)) >= ENOUGH * len(rows):
            return True
        told = self._by_source.get(message) if message is not None else None
        long = [word for word in found if len(word) >= WORD]
        return told is not None and bool(long) and sum(map(told.__contains__, long)) >= ENOUGH * len(long)

    def _take_in(self) -> None:
        for text, sources in self._untold:
            found = words(text)
            self._rows.update(_rows(found))
            for source in sources:
                self._by_source.setdefault(source, set()).update(found)
        self._untold.clear()


def _rows(found: Sequence[str]) -> Iterator[tuple[str, ...]]:
    return zip(*(found[start:] for start in range(ROW)), strict=False)
