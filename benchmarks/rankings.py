"""Every ranking of every question: memstore's, the baselines' and the floors', over the same chunks and vectors."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence

from baselines import Baselines
from corpus import Corpus, corpus
from data import Question
from evidence import Piece, Tally, others

from memstore import MemoryStore
from memstore.providers import Embedder

DEPTH = 400  # hits: more than 4,000 tokens hold
OURS = "memstore"
Answers = Callable[[Question], Iterable[tuple[str, Sequence[int]]]]


def _nobody(question: Question) -> Iterable[tuple[str, Sequence[int]]]:
    return ()


class Rankings:
    """The systems over the users of one store; each user is derived once."""

    def __init__(self, store: MemoryStore, embedder: Embedder) -> None:
        self.store, self.embedder = store, embedder
        self._of: dict[str, tuple[Corpus, Baselines]] = {}

    def of(self, user: str) -> tuple[Corpus, Baselines]:
        """Return a user's chunks, and the baselines over them."""
        if user not in self._of:
            found = corpus(self.store, user, self.embedder)
            self._of[user] = found, Baselines(found)
        return self._of[user]

    def memstore(self, question: Question, **filters: Sequence[str]) -> list[Piece]:
        """Return what memstore's recall finds among messages."""
        scope = self.store.user(question.user)
        hits = scope.recall(question.text, limit=DEPTH, tiers=["messages"], **filters)  # type: ignore[arg-type]
        return self.of(question.user)[0].of_hits(hits)

    def measure(self, questions: Sequence[Question], budgets: Sequence[int], more: Answers = _nobody) -> Tally:
        """Put every question to every system, and to others that give rows of the user's chunks."""
        tally = Tally(budgets)
        ours = [self.memstore(question) for question in questions]
        by_text = {(one.user, one.text): ranked for one, ranked in zip(questions, ours, strict=True)}
        for number, (question, other) in enumerate(zip(questions, others(questions), strict=True)):
            tally.add("floor: memstore's ranking of another question", question, by_text[other.user, other.text])
            self._beside(tally, question)
            for name, rows in more(question):
                tally.add(name, question, self.of(question.user)[0].pieces(rows))
            tally.add(OURS, question, ours[number])
            if number % 100 == 0:
                print(f"{number} of {len(questions)} questions", file=sys.stderr, flush=True)
        return tally

    def _beside(self, tally: Tally, question: Question) -> None:
        chunks, baselines = self.of(question.user)
        for name, rows in baselines.rankings(question.text, self.embedder.embed_query(question.text)):
            tally.add(name, question, chunks.pieces(rows))
        if baselines.has_others:
            tally.add(f"{OURS}, user messages only", question, self.memstore(question, roles=["user"]))
