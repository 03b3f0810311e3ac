"""The turns of a view in which tools are called, each told by what is sought in its results. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from memstore.context.strategies.view import View
from memstore.context.turns import Turn
from memstore.derive.tool_results import Focus, call_inputs, describe_turn, find_names
from memstore.models import Message, Role
from memstore.store.tokenize import terms

BEFORE = 6  # turns whose names count beside those after the call


def is_call(turn: Turn) -> bool:
    """Whether the turn is a call of tools with its results."""
    return bool(turn.messages[0].tool_calls) and turn.messages[-1].role == Role.TOOL


@dataclass(frozen=True)
class Telling:
    """The turns of a view, and what is sought in the result of each."""

    turns: Sequence[Turn]
    view: View

    @cached_property
    def places(self) -> dict[int, int]:
        """The index of each turn by its first number."""
        return {turn.first_seq: place for place, turn in enumerate(self.turns)}

    @cached_property
    def free(self) -> frozenset[int]:
        """The first numbers of the turns that may be taken."""
        return frozenset(one.first_seq for one in self.view.entries if isinstance(one, Turn)) - self.view.floor

    @cached_property
    def names(self) -> list[frozenset[str]]:
        """What each turn names, but for results of tools."""
        return [find_names(_spoken(turn)) for turn in self.turns]

    @cached_property
    def asked(self) -> list[Message | None]:
        """The user's newest message before each turn."""
        found: list[Message | None] = []
        newest: Message | None = None
        for turn in self.turns:
            found.append(newest)
            newest = turn.messages[0] if turn.messages[0].role == Role.USER else newest
        return found

    def told(self, place: int, upto: int, limit: int) -> str:
        """Tell the calls of the turn at `place` by what was named up to the turn at `upto`, which is the present.

        `limit` are the tokens of each outcome.
        """
        turn, asked = self.turns[place], self.asked[place]
        around = self.names[max(0, place - BEFORE) : upto + 1]
        request = f"{asked.text if asked else ''} {_spoken(turn)}"
        sought = Focus(frozenset(terms(request)), frozenset().union(*around))
        return describe_turn(turn.messages[0], turn.messages[1:], asked, sought, limit, self.view.counter.count)


def _spoken(turn: Turn) -> str:
    """Give the words of a turn and the arguments of its calls."""
    first = turn.messages[0]
    return f"{(first.text or '') if first.role != Role.TOOL else ''} {call_inputs(first)}"
