"""The strategy for work in goals: what was asked for and is done becomes an episode of a few lines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from memstore.context.strategies.digest import best, lines_of
from memstore.context.strategies.options import check_options
from memstore.context.strategies.telling import Telling, is_call
from memstore.context.strategies.view import Entry, View, turns_of
from memstore.context.turns import Turn
from memstore.models import Role

SHORTENED = 200  # characters of a goal or an outcome in which nothing is telling


@dataclass(frozen=True, slots=True)
class GoalBatch:
    """A goal is what a user asked for, up to the final answer with no call of a tool open.

    Those that at least `older_than` goals came after become a block each: the goal, what was done, the outcome. Blocks
    side by side stand together in the context. A block has `share` of the tokens of its turns, at most `most`.
    """

    older_than: int = 3
    share: float = 0.4
    most: int = 400
    name: ClassVar[str] = "goal_batch"

    def __post_init__(self) -> None:
        check_options(self, zero=("older_than",))

    def should_run(self, view: View) -> bool:
        """Whether there are more goals than are kept whole."""
        return len(goals(view)) > self.older_than

    def run(self, view: View) -> View:
        """Give the view with old completed goals as episodes."""
        found = goals(view)
        telling = Telling([turn for entry in view.entries for turn in turns_of(entry)], view)
        blocks = []
        for place, goal in enumerate(found[: max(0, len(found) - self.older_than)]):
            turns = [turn for entry in goal for turn in turns_of(entry)]
            if len(turns) < 2 or not completed(turns) or any(view.fixed(entry) for entry in goal):
                continue
            present = turns_of(found[place + self.older_than][0])[0] if self.older_than else turns[-1]
            limit = min(self.most, int(self.share * sum(view.whole(entry) for entry in goal)))
            text = self._episode(telling, turns, telling.places[present.first_seq], limit)
            blocks.append(view.block(self, goal, text, present.messages[-1].seq))
        return view.with_blocks(blocks)

    def _episode(self, telling: Telling, turns: Sequence[Turn], upto: int, limit: int) -> str:
        """Give the episode: a quarter of its tokens for the goal, a quarter for the outcome, the rest for the calls."""
        view, places = telling.view, telling.places
        asked = [turn for turn in turns if turn.messages[0].role == Role.USER]
        calls = [turn for turn in turns if is_call(turn)]
        said = [turn for turn in turns if turn not in asked and turn not in calls]
        goal = _joined(best(view, lines_of(asked), limit // 4))
        answer = _joined(best(view, lines_of(said), limit // 4))
        room = limit - view.counter.count(goal) - view.counter.count(answer)
        done = [telling.told(places[turn.first_seq], upto, room // len(calls)) for turn in calls]
        return "\n".join(
            [
                f"Goal: {goal or _joined(lines_of(asked[:1]))[:SHORTENED]}",
                *(f"Done: {one}" for one in done),
                f"Outcome: {answer or _joined(lines_of(said[-1:]))[:SHORTENED]}",
            ]
        )


def goals(view: View) -> list[list[Entry]]:
    """Cut the entries where a user speaks after somebody else did; what comes before the first is no goal."""
    found: list[list[Entry]] = []
    previous = None
    for entry in view.entries:
        role = turns_of(entry)[0].messages[0].role
        if role == Role.USER and previous != Role.USER:
            found.append([])
        if found:
            found[-1].append(entry)
        previous = turns_of(entry)[-1].messages[0].role
    return found


def completed(turns: Sequence[Turn]) -> bool:
    """Whether an assistant's answer without calls is the last word."""
    last = turns[-1].messages[-1]
    return last.role == Role.ASSISTANT and not last.tool_calls


def _joined(lines: Sequence[str]) -> str:
    return " ".join(line.partition(": ")[2] for line in lines)
