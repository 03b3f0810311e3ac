"""The strategy for sessions with many tools: old calls become a record of two or three sentences."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from memstore.context.strategies.options import check_options
from memstore.context.strategies.telling import Telling, is_call
from memstore.context.strategies.view import View, turns_of
from memstore.context.turns import Turn


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
