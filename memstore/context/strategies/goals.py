"""The strategy for work in goals: what was asked for and is done becomes an episode of a few lines. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from memstore.context.strategies.base import ConversationView, Entry, Turn, check_options, turns_of
from memstore.context.strategies.buffers import best_lines, sentence_lines
from memstore.context.strategies.tool_calls import ToolSummaries, is_call
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

    def should_run(self, view: ConversationView) -> bool:
        """Return whether there are more goals than are kept whole."""
        return len(_split_goals(view)) > self.older_than

    def run(self, view: ConversationView) -> ConversationView:
        """Return the view with old completed goals as episodes."""
        goals = _split_goals(view)
        calls = ToolSummaries(view)
        blocks = []
        for place, goal in enumerate(goals[: max(0, len(goals) - self.older_than)]):
            turns = [turn for entry in goal for turn in turns_of(entry)]
            if len(turns) < 2 or not _is_completed(turns) or any(view.is_protected(entry) for entry in goal):
                continue
            present = turns_of(goals[place + self.older_than][0])[0] if self.older_than else turns[-1]
            limit = min(self.most, int(self.share * sum(view.whole(entry) for entry in goal)))
            text = _episode(calls, turns, calls.places[present.first_seq], limit)
            blocks.append(view.block(self, goal, text, present.messages[-1].seq))
        return view.with_blocks(blocks)


def _episode(calls: ToolSummaries, turns: Sequence[Turn], upto: int, limit: int) -> str:
    """Return the episode: a quarter of its tokens for the goal, a quarter for the outcome, the rest for the calls."""
    view = calls.view
    asked = [turn for turn in turns if turn.messages[0].role == Role.USER]
    done = [turn for turn in turns if is_call(turn)]
    said = [turn for turn in turns if turn not in asked and turn not in done]
    goal = _joined(best_lines(view, sentence_lines(asked), limit // 4))
    answer = _joined(best_lines(view, sentence_lines(said), limit // 4))
    room = limit - view.counter.count(goal) - view.counter.count(answer)
    return "\n".join(
        [
            f"Goal: {goal or _joined(sentence_lines(asked[:1]))[:SHORTENED]}",
            *(f"Done: {calls.summarize(turn, upto, room // len(done))}" for turn in done),
            f"Outcome: {answer or _joined(sentence_lines(said[-1:]))[:SHORTENED]}",
        ]
    )


def _split_goals(view: ConversationView) -> list[list[Entry]]:
    """Cut the entries where a user speaks after somebody else did; what comes before the first is no goal."""
    goals: list[list[Entry]] = []
    previous = None
    for entry in view.entries:
        role = turns_of(entry)[0].messages[0].role
        if role == Role.USER and previous != Role.USER:
            goals.append([])
        if goals:
            goals[-1].append(entry)
        previous = turns_of(entry)[-1].messages[0].role
    return goals


def _is_completed(turns: Sequence[Turn]) -> bool:
    """Whether an assistant's answer without calls is the last word."""
    last = turns[-1].messages[-1]
    return last.role == Role.ASSISTANT and not last.tool_calls


def _joined(lines: Sequence[str]) -> str:
    return " ".join(line.partition(": ")[2] for line in lines)
