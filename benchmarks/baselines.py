"""The baselines: rankings that need no memory system, and floors that need no question.

Each gives rows of a corpus, the best first.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np
from corpus import Corpus
from numpy.typing import NDArray

from memstore.providers import Vectors
from memstore.store.tokenize import terms

Rows = NDArray[np.intp]
Scores = NDArray[np.float64]
K1, B = 1.2, 0.75
RRF = 60  # as its paper has it, and everybody since


def words(text: str) -> list[str]:
    """Return the words of a text in lower case: no stems, and no word left out."""
    return re.findall(r"\w+", text.lower())


class BM25:
    """Okapi BM25 (k1 1.2, b 0.75), idf as Lucene has it, over documents cut by `cut`."""

    def __init__(self, documents: Sequence[str], cut: Callable[[str], Iterable[str]]) -> None:
        self.cut = cut
        bags = [Counter(cut(one)) for one in documents]
        lengths = np.array([bag.total() for bag in bags], dtype=float)
        self.norms = K1 * (1 - B + B * lengths / max(1.0, lengths.mean()))
        self.postings: dict[str, list[tuple[int, int]]] = defaultdict(list)
        for row, bag in enumerate(bags):
            for term, times in bag.items():
                self.postings[term].append((row, times))

    def scores(self, query: str) -> Scores:
        """Return the score of each document."""
        total = np.zeros(len(self.norms))
        for term in set(self.cut(query)) & self.postings.keys():
            rows, times = np.array(self.postings[term]).T
            idf = math.log(1 + (len(total) - len(rows) + 0.5) / (len(rows) + 0.5))
            total[rows] += idf * times * (K1 + 1) / (times + self.norms[rows])
        return total


def best(scores: Scores, most: int | None = None) -> Rows:
    """Return the rows by score, the earlier one of equals first."""
    return np.argsort(-scores, kind="stable")[:most]


def fused(rankings: Iterable[Rows], count: int) -> Rows:
    """Return the rows by reciprocal rank fusion."""
    total = np.zeros(count)
    for ranking in rankings:
        total[ranking] += 1 / (RRF + 1 + np.arange(len(ranking)))
    return best(total)


class Baselines:
    """The rankings over one corpus."""

    def __init__(self, corpus: Corpus) -> None:
        self.corpus = corpus
        said = [chunk.said for chunk in corpus.chunks]
        self.plain, self.stemmed = BM25(said, words), BM25(said, terms)
        self.has_others = len(corpus.by_user) < len(corpus.chunks)

    def rankings(self, question: str, vector: Vectors) -> Iterator[tuple[str, Rows]]:
        """Return each ranking by name: floors first; those of user messages where there are others."""
        rows = np.arange(len(self.corpus.chunks))
        yield "floor: newest first", rows[::-1]
        yield "floor: oldest user messages first", self.corpus.by_user
        dense, stemmed = self.corpus.vectors @ vector, self.stemmed.scores(question)
        if self.has_others:
            yield "floor: dense, user messages only", self.corpus.by_user[best(dense[self.corpus.by_user])]
        yield "BM25", best(self.plain.scores(question))
        yield "BM25, stems", best(stemmed)
        yield "dense", best(dense)
        hybrid = fused([best(dense), _matching(stemmed)], len(rows))
        yield "hybrid RRF", hybrid
        if self.has_others:
            yield "hybrid RRF, user messages only", hybrid[np.isin(hybrid, self.corpus.by_user)]


def _matching(scores: Scores) -> Rows:
    """Return the rows that share a word with the question: the others have no rank."""
    return best(scores)[: np.count_nonzero(scores)]
