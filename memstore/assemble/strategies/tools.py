"""The strategy for sessions with many tools: old calls become a record of two or three sentences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from memstore.assemble.strategies.calls import function_of, inputs, is_call, told
from memstore.assemble.strategies.options import check_options
from memstore.assemble.strategies.outcome import Sought, names
from memstore.assemble.strategies.view import View, turns_of
from memstore.assemble.turns import Turn
from memstore.models import Message, Role
from memstore.store.terms import terms

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

    def should_run(self, view: View) -> bool:
        """Whether there is an old call."""
        return any(isinstance(one, Turn) and is_call(one) for one in view.entries)

    def run(self, view: View) -> View:
        """Give the view with old calls told."""
        telling = Telling([turn for entry in view.entries for turn in turns_of(entry)], view)
        blocks = []
        for place, turn in enumerate(telling.turns[: max(0, len(telling.turns) - self.older_than)]):
            if turn.first_seq in telling.free and is_call(turn):
                old = place + self.older_than
                size = view.sizes[turn.first_seq] // max(1, len(turn.messages) - 1)
                limit = max(self.least, min(self.most, int(self.share * size)))
                text = telling.told(place, old, limit)
                blocks.append(view.block(self, [turn], text, telling.turns[old].first_seq))
        return view.with_blocks(blocks)


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
        return [names(_spoken(turn)) for turn in self.turns]

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
        around = self.names[max(0, place - BEFORE) : place] + self.names[place : upto + 1]
        request = f"{asked.text if asked else ''} {_spoken(turn)}"
        sought = Sought(frozenset(terms(request)), frozenset().union(*around))
        return told(turn, asked, sought, limit, self.view.counter.count)


def _spoken(turn: Turn) -> str:
    """Give the words of a turn and the arguments of its calls."""
    first = turn.messages[0]
    made = [inputs(function_of(call)[1]) for call in first.tool_calls or ()]
    return " ".join([(first.text or "") if first.role != Role.TOOL else "", *made])
