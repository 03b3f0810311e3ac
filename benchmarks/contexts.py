"""Recall through `context()`: which share of the evidence stands in a finished context, with recent turns and all.

An evidence message counts as `verbatim` when its whole text stands in what would be sent, whatever brought it there; as
found when a fact that was made from it does, too. Of long messages chunks stand in contexts: `QUOTED` counts those of
which at least one does.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from uuid import UUID

from data import Question
from evidence import Tally

from memstore import Context, MemoryStore

VERBATIM, WITH_FACTS, QUOTED = "verbatim", "verbatim, or as a fact made from it", "at least a chunk of it"


def plain(text: str) -> str:
    """Return a text with its white space evened."""
    return " ".join(text.split())


class Told:
    """A user's messages and facts, and what of them a context tells."""

    def __init__(self, store: MemoryStore, user: str) -> None:
        self.scope = store.user(user)
        self.conversation = self.scope.conversation(user)

    @cached_property
    def texts(self) -> dict[str, str]:
        """The messages by their external ids."""
        return {str(one.external_id): plain(one.text or "") for one in self.conversation.messages()}

    @cached_property
    def names(self) -> dict[UUID, str]:
        """The external ids of the messages."""
        return {one.id: str(one.external_id) for one in self.conversation.messages()}

    @cached_property
    def sources(self) -> dict[UUID, frozenset[str]]:
        """The external ids of the messages that each fact was made from."""
        facts = self.scope.facts(state="all")
        return {one.id: frozenset(self.names[each] for each in one.sources if each in self.names) for one in facts}

    def quoted(self, context: Context, evidence: frozenset[str]) -> set[str]:
        """Return the evidence of which a chunk stands in a context."""
        shown = (id for one in context.receipt.included for id in (one.id, *one.others) if id)
        return {self.names[id] for id in shown if id in self.names} & evidence

    def of(self, context: Context, evidence: frozenset[str]) -> tuple[set[str], set[str]]:
        """Return the evidence that stands in a context verbatim, and that of which a fact does."""
        sent = plain("\n".join(str(message["content"]) for message in context.messages))
        facts = (
            self.sources.get(one.id, frozenset()) for one in context.receipt.included if one.kind == "fact" and one.id
        )
        return {one for one in evidence if self.texts[one] in sent}, evidence & frozenset().union(*facts)


def measure(store: MemoryStore, questions: Sequence[Question], budgets: Sequence[int]) -> Tally:
    """Make a context of each budget for every question."""
    tally = Tally(budgets)
    told: dict[str, Told] = {}
    for question in questions:
        user = told.setdefault(question.user, Told(store, question.user))
        made = [user.conversation.context(question.text, budget=budget) for budget in budgets]
        found = [user.of(context, question.evidence) for context in made]
        quoted = [len(user.quoted(context, question.evidence)) / len(question.evidence) for context in made]
        tally.put(QUOTED, question, quoted)
        tally.put(VERBATIM, question, [len(verbatim) / len(question.evidence) for verbatim, _ in found])
        tally.put(WITH_FACTS, question, [len(verbatim | facts) / len(question.evidence) for verbatim, facts in found])
    return tally
