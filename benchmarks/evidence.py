"""The measure of recall: which share of the messages that answer a question is within so many tokens.

A system ranks pieces of a conversation. They are packed in their order until the budget is full; the figure is the
share of the question's evidence that is in, mean over questions. A chunk of a long message counts as the message, and a
message is packed once, by the first of its chunks, for every system alike. No model judges anything. Pieces are
rendered in two ways: each as "[8 May 2023] Alice: …", and as memstore's contexts have them, each day once as a heading.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from itertools import tee
from statistics import mean
from typing import NamedTuple, TypeAlias

from data import Question
from report import Table

from memstore.formats.parts import INDENT, indent_further_lines
from memstore.providers import load_counter
from memstore.text import format_day

# Questions about what was never said, or was said by somebody else: LoCoMo's papers leave them apart.
ADVERSARIAL = "adversarial"
BY_DAY = "the same, each day once as a heading, as contexts have hits"
COUNTER = load_counter("tiktoken:o200k_base")


class Piece(NamedTuple):
    """What a system gives back: of which message it is (its external id), and what it costs in tokens.

    `tokens` are those of a line with its day; `bare` those of the line in a context, under the heading of its `day`.
    """

    message: str
    tokens: int
    day: str = ""
    bare: int = 0

    @classmethod
    def of(cls, message: str, at: datetime, said: str) -> Piece:
        """Return a piece with what it costs; `said` is "Alice: …"."""
        heading = f"[{format_day(at)}]"
        return cls(message, tokens(f"{heading} {said}"), heading, tokens(f"{INDENT}{indent_further_lines(said)}"))


@lru_cache(maxsize=200_000)
def tokens(line: str) -> int:
    """Return the tokens of a line and its end, by o200k_base."""
    return COUNTER.count(f"{line}\n")


def share(
    ranked: Iterable[Piece], evidence: frozenset[str], budgets: Sequence[int], *, by_day: bool = False
) -> list[float]:
    """Return the share of the evidence within each budget, which rise: packing ends with the first piece too many.

    A further chunk of a message that is in takes no room: to most rankings it would be worth nothing.
    """
    found: set[str] = set()
    shares: list[float] = []
    days: set[str] = set()
    used = 0
    for piece in ranked:
        if piece.message in found:
            continue
        if by_day:
            used += piece.bare + (0 if piece.day in days else tokens(piece.day))
            days.add(piece.day)
        else:
            used += piece.tokens
        while len(shares) < len(budgets) and used > budgets[len(shares)]:
            shares.append(len(found & evidence) / len(evidence))
        if len(shares) == len(budgets):
            return shares
        found.add(piece.message)
    return shares + [len(found & evidence) / len(evidence)] * (len(budgets) - len(shares))


def others(questions: Sequence[Question]) -> list[Question]:
    """Return for each question another one of the same user, as far away as can be: whose ranking is not about it.

    A user's only question stays with itself.
    """
    by_user: dict[str, list[int]] = defaultdict(list)
    for place, question in enumerate(questions):
        by_user[question.user].append(place)
    turned = list(questions)
    for places in by_user.values():
        half = len(places) // 2
        for place, other in zip(places, places[half:] + places[:half], strict=True):
            turned[place] = questions[other]
    return turned


Shares: TypeAlias = "dict[str, dict[str, list[list[float]]]]"


class Tally:
    """The shares of every question, by system and category."""

    def __init__(self, budgets: Sequence[int]) -> None:
        self.budgets = tuple(budgets)
        self.shares: Shares = defaultdict(lambda: defaultdict(list))
        self.by_day: Shares = defaultdict(lambda: defaultdict(list))

    def add(self, system: str, question: Question, ranked: Iterable[Piece]) -> None:
        """Take in how a system ranked for a question."""
        ranked, again = tee(ranked)
        self.put(system, question, share(ranked, question.evidence, self.budgets))
        under = share(again, question.evidence, self.budgets, by_day=True)
        self.by_day[system][question.category].append(under)

    def put(self, system: str, question: Question, shares: Sequence[float]) -> None:
        """Take in shares that were measured elsewhere, one for each budget."""
        self.shares[system][question.category].append(list(shares))

    def leave_out(self, systems: Iterable[str]) -> None:
        """Forget systems that failed on the way: their shares are of some questions only."""
        for system in systems:
            self.shares.pop(system, None)
            self.by_day.pop(system, None)

    def table(self, name: str, title: str, *, by_day: bool = False) -> Table:
        """Return a row for each system: all questions but adversarial ones, in percent."""
        shares = self.by_day if by_day else self.shares
        rows = [_row(system, _overall(found)) for system, found in shares.items()]
        return Table(name, title, ("system", *self._columns()), [row for row in rows if row])

    def by_category(self, name: str, title: str, system: str) -> Table:
        """Return a row for each category of one system."""
        rows = [
            _row(category.replace("_", " "), self.shares[system][category]) for category in sorted(self.shares[system])
        ]
        return Table(name, title, ("category", *self._columns()), [row for row in rows if row])

    def of_category(self, name: str, title: str, category: str) -> Table:
        """Return a row for each system, with the questions of one category."""
        rows = [_row(system, shares[category]) for system, shares in self.shares.items() if category in shares]
        return Table(name, title, ("system", *self._columns()), rows)

    def _columns(self) -> list[str]:
        return [*(f"{budget:,}" for budget in self.budgets), "questions"]


def _overall(by_category: Mapping[str, list[list[float]]]) -> list[list[float]]:
    """Return the shares of every question, adversarial ones apart."""
    return [one for category, shares in by_category.items() if category != ADVERSARIAL for one in shares]


def _row(name: str, shares: Sequence[Sequence[float]]) -> list[str | float | int]:
    if not shares:
        return []
    return [name, *(round(100 * mean(column), 1) for column in zip(*shares, strict=True)), len(shares)]
