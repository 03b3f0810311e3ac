"""Strategies that leave turns out: the old ones, or those that the question does not ask for. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from memstore.context.strategies.base import ConversationView, Turn, check_options


@dataclass(frozen=True, slots=True)
class SlidingWindow:
    """The newest `turns` turns stay. With a `step` the window moves by so many at once: it then holds up to
    `turns + step - 1`, and what stands before it stays the same between its moves.
    """

    turns: int = 40
    step: int = 1
    name: ClassVar[str] = "sliding_window"

    def __post_init__(self) -> None:
        check_options(self)

    def should_run(self, view: ConversationView) -> bool:
        """Return whether there are turns before the window."""
        return bool(self._before(view))

    def run(self, view: ConversationView) -> ConversationView:
        """Return the view without the turns before the window."""
        return view.without(self, self._before(view), f"older than the newest {self.turns} turns")

    def _before(self, view: ConversationView) -> list[Turn]:
        beyond = max(0, view.count - self.turns) // self.step * self.step
        return [entry for entry in view.entries if isinstance(entry, Turn) and view.index(entry) < beyond]


@dataclass(frozen=True, slots=True)
class Semantic:
    """Retrieved instead of recent: the newest `recent` turns stay, and of the others those that answer to the question.

    The best of them are taken until `share` of the room is full, and stand in their old order. Without a question, or
    where nothing answers to it, nothing is done. What stays depends on the question, so a model's cache does not.
    """

    recent: int = 6
    share: float = 0.6
    name: ClassVar[str] = "semantic"
    by_question: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_options(self, zero=("recent",))

    def should_run(self, view: ConversationView) -> bool:
        """Return whether there is a question that something answers to."""
        return bool(view.relevance)

    def run(self, view: ConversationView) -> ConversationView:
        """Return the view without the older turns that were not retrieved."""
        older = [
            entry for entry in view.entries if isinstance(entry, Turn) and view.index(entry) < view.count - self.recent
        ]
        room = self.share * view.room
        gone = []
        for turn in sorted(older, key=lambda turn: (-_score(view, turn), -turn.first_seq)):
            if view.size(turn) > room or not _score(view, turn):
                gone.append(turn)
            else:
                room -= view.size(turn)
        return view.without(self, gone, "not what the question asks for")


def _score(view: ConversationView, turn: Turn) -> float:
    return max(view.relevance.get(message.id, 0.0) for message in turn.messages)
