"""Calls of tools, each told in two or three sentences, and the strategy that tells old ones so. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from memstore.context.strategies.base import ConversationView, Turn, check_options, turns_of
from memstore.derive.tool_results import Focus, call_inputs, describe_turn, find_names
from memstore.models import Message, Role
from memstore.store.tokenize import terms

BEFORE = 6  # turns whose names count beside those after the call


@dataclass(frozen=True, slots=True)
class ToolCalls:
    """Each call older than `older_than` turns becomes a sentence each for tool, reason and outcome.

    An outcome has a `share` of the tokens of its result, at least `least` and at most `most`. What it keeps follows
    from the turns up to the one with which the call became old, so that it is never written again. The defaults keep
    nearly all that was asked for at less than half the tokens; 0.4 and 200 save more and lose more
    (docs/reference/strategies.md).
    """

    older_than: int = 10
    share: float = 0.6
    least: int = 40
    most: int = 300
    name: ClassVar[str] = "tool_calls"

    def __post_init__(self) -> None:
        check_options(self)

    def run(self, view: ConversationView) -> ConversationView:
        """Return the view with old calls told."""
        calls = ToolSummaries(view)
        free = {entry.first_seq for entry in view.entries if isinstance(entry, Turn)} - view.protected
        blocks = []
        for place, turn in enumerate(calls.turns[: max(0, len(calls.turns) - self.older_than)]):
            if turn.first_seq in free and is_call(turn):
                old = place + self.older_than
                size = view.sizes[turn.first_seq] // max(1, len(turn.messages) - 1)
                limit = max(self.least, min(self.most, int(self.share * size)))
                text = calls.summarize(turn, old, limit)
                blocks.append(view.block(self, [turn], text, calls.turns[old].first_seq))
        return view.with_blocks(blocks)


def is_call(turn: Turn) -> bool:
    """Return whether the turn is a call of tools with its results."""
    return bool(turn.messages[0].tool_calls) and turn.messages[-1].role == Role.TOOL


class ToolSummaries:
    """Summaries of a view's tool calls, by what is sought in the results of each."""

    def __init__(self, view: ConversationView) -> None:
        self.view = view
        self.turns = [turn for entry in view.entries for turn in turns_of(entry)]
        self.places = {turn.first_seq: place for place, turn in enumerate(self.turns)}

    @cached_property
    def _names(self) -> list[frozenset[str]]:
        """What each turn names, but for results of tools."""
        return [find_names(_spoken(turn)) for turn in self.turns]

    @cached_property
    def _questions(self) -> list[Message | None]:
        """The user's newest message before each turn."""
        questions: list[Message | None] = []
        newest: Message | None = None
        for turn in self.turns:
            questions.append(newest)
            newest = turn.messages[0] if turn.messages[0].role == Role.USER else newest
        return questions

    def summarize(self, turn: Turn, upto: int, limit: int) -> str:
        """Return the calls of a turn in words, by what was named up to the turn at `upto`, which is the present.

        `limit` are the tokens of each outcome.
        """
        place = self.places[turn.first_seq]
        question = self._questions[place]
        around = self._names[max(0, place - BEFORE) : upto + 1]
        request = f"{question.text if question else ''} {_spoken(turn)}"
        sought = Focus(frozenset(terms(request)), frozenset().union(*around))
        return describe_turn(turn.messages[0], turn.messages[1:], question, sought, limit, self.view.counter.count)


def _spoken(turn: Turn) -> str:
    """Return the words of a turn and the arguments of its calls."""
    first = turn.messages[0]
    return f"{(first.text or '') if first.role != Role.TOOL else ''} {call_inputs(first)}"
