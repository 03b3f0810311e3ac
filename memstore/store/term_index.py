"""Which of very many terms are a given one: looked up, but for the newest ones, which are scanned. Pure."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.int64]

SCANNED = 0.1  # of the terms: to scan so many costs less than a millisecond where it takes 100 to sort them all


@dataclass(frozen=True, slots=True)
class TermIndex:
    """The first of some terms, sorted, and the place of each."""

    terms: Numbers
    places: NDArray[np.int32]

    @classmethod
    def of(cls, terms: Numbers) -> TermIndex:
        """Give an index of all terms."""
        places = np.argsort(terms, kind="stable").astype(np.int32)
        return cls(terms[places], places)

    def serves(self, terms: Numbers) -> bool:
        """Whether so few of these terms came since that the index still helps."""
        return len(terms) - len(self.terms) <= SCANNED * len(terms)

    def find(self, term: int, terms: Numbers) -> Numbers:
        """Give the places of a term in order, among terms that begin with those of the index."""
        start, stop = np.searchsorted(self.terms, [term, term + 1]) if term < 2**63 - 1 else (0, 0)
        if len(terms) == len(self.terms):
            return self.places[start:stop].astype(np.int64)
        newest = np.flatnonzero(terms[len(self.terms) :] == term) + len(self.terms)
        return np.append(self.places[start:stop], newest)
