"""Strategies that act when a conversation grows too large: its older part becomes blocks within an allotted room."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

from memstore.context.strategies.boundary import cuts
from memstore.context.strategies.digest import UNTOLD, digest
from memstore.context.strategies.options import check_falling, check_options
from memstore.context.strategies.telling import Telling
from memstore.context.strategies.view import Block, Strategy, View, turns_of
from memstore.context.turns import Turn
from memstore.errors import InvalidInput

GENERATIONS = 3  # of compactions that keep a block of their own; older ones share one


@dataclass(frozen=True, slots=True)
class SummaryBuffer:
    """Above `trigger` of the room the oldest turns become one summary, until `target` is reached.

    The summary takes at most `summary` of the room. It is made anew at each trigger and stays between them.
    """

    trigger: float = 0.8
    target: float = 0.6
    summary: float = 0.2
    name: ClassVar[str] = "summary_buffer"

    def __post_init__(self) -> None:
        check_options(self)
        check_falling(self, "trigger", "target", "summary")

    def should_run(self, view: View) -> bool:
        """Whether the conversation has ever passed the trigger."""
        return bool(cuts(view, self.trigger, self.target, self.summary))

    def run(self, view: View) -> View:
        """Give the view with its older part summarized."""
        found = cuts(view, self.trigger, self.target, self.summary)
        if not found:
            return view
        return summarized(view, self, (0, found[-1].end), int(self.summary * view.room), found[-1].since)


@dataclass(frozen=True, slots=True)
class Threshold:
    """Above `trigger` of the room the older half is compacted, to `target`; each compaction has a block of its own.

    All blocks together take at most `blocks` of the room: the newest half of it, the next a quarter and so on, so that
    the older a part is, the coarser it is told.
    """

    trigger: float = 0.8
    target: float = 0.5
    blocks: float = 0.25
    name: ClassVar[str] = "threshold"

    def __post_init__(self) -> None:
        check_options(self)
        check_falling(self, "trigger", "target", "blocks")

    def should_run(self, view: View) -> bool:
        """Whether the conversation has ever passed the trigger."""
        return bool(cuts(view, self.trigger, self.target, self.blocks))

    def run(self, view: View) -> View:
        """Give the view with its older part compacted."""
        found = cuts(view, self.trigger, self.target, self.blocks)
        if not found:
            return view
        ends = [0, *(cut.end for cut in found)]
        ends = [0, *ends[-GENERATIONS:]] if len(ends) > GENERATIONS + 1 else ends
        stretches = list(pairwise(ends))
        limit = int(self.blocks * view.room)
        made: list[Block] = []
        for begin, end in reversed(stretches):
            limit = limit // 2 if begin else limit
            made += blocks_of(view, self, (begin, end), limit, found[-1].since)
        return view.with_blocks(made)


@dataclass(frozen=True, slots=True)
class Hierarchical:
    """The recent whole, the middle summarized, and of all of it the facts.

    Recent turns have `recent` of the room, with a fifth more before the boundary moves. The `middle` turns before them
    are summarized in `summary` of the room; of those before, and of the middle, the facts stand, in `facts` of the
    room. Where nothing is known of the oldest turns, their coarsest summaries or most telling lines stand instead.
    """

    recent: float = 0.5
    middle: int = 100
    summary: float = 0.2
    facts: float = 0.1
    name: ClassVar[str] = "hierarchical"
    by_facts: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_options(self)
        if self.recent + self.summary + self.facts > 1:
            raise InvalidInput(
                f"{self.name}: recent, summary and facts are more than the whole room; make one smaller."
            )

    def should_run(self, view: View) -> bool:
        """Whether there is more than the recent part can hold."""
        return bool(self._end(view))

    def run(self, view: View) -> View:
        """Give the view in its three parts."""
        cut = self._end(view)
        if cut is None:
            return view
        end, since = cut
        begin = max(0, end - self.middle)
        known = _facts(view, [turn for entry in view.entries[:end] for turn in turns_of(entry)])
        old = blocks_of(view, self, (0, begin), int(self.facts * view.room), since, known)
        limit = int((self.summary if old else self.summary + self.facts) * view.room)
        middle = blocks_of(view, self, (begin, end), limit, since, () if old else known)
        return view.with_blocks([*old, *middle])

    def _end(self, view: View) -> tuple[int, int] | None:
        allotted = self.summary + self.facts
        found = cuts(view, 1.2 * self.recent + allotted, self.recent + allotted, allotted)
        return (found[-1].end, found[-1].since) if found else None


def summarized(view: View, strategy: Strategy, span: tuple[int, int], limit: int, since: int) -> View:
    """Give the view with blocks of at most `limit` tokens in all for the entries in `span`."""
    return view.with_blocks(blocks_of(view, strategy, span, limit, since))


def blocks_of(
    view: View,
    strategy: Strategy,
    span: tuple[int, int],
    limit: int,
    since: int,
    notes: Sequence[str] = (),
) -> list[Block]:
    """Give a block for each run of entries in `span` that the floor leaves together.

    `limit` is shared by size; `notes` are lines that come first, where they fit, in the first block.
    """
    runs = view.runs(*span)
    telling = Telling([turn for entry in view.entries for turn in turns_of(entry)], view)
    upto = max((place for seq, place in telling.places.items() if seq <= since), default=0)
    whole = sum(view.whole(entry) for run in runs for entry in run)
    made = []
    for run in runs:
        room = limit * sum(view.whole(entry) for entry in run) // max(1, whole)
        lines, notes = _fitting(view, notes, room), ()
        room -= sum(view.counter.count(f"{line}\n") for line in lines)
        lines += [digest(telling, [turn for entry in run for turn in turns_of(entry)], room, upto)] if room > 0 else []
        made.append(view.block(strategy, run, "\n".join(filter(None, lines)) or UNTOLD, since))
    return made


def _facts(view: View, turns: Sequence[Turn]) -> list[str]:
    """Give the facts that these turns are the sources of, what always holds first, then the latest."""
    ids = {message.id for turn in turns for message in turn.messages}
    found = [fact for fact in view.facts if ids & set(fact.sources)]
    found.sort(key=lambda fact: (fact.type == "constraint", fact.occurred_at, fact.text), reverse=True)
    return [f"- {fact.text}" for fact in found]


def _fitting(view: View, lines: Sequence[str], limit: int) -> list[str]:
    found = []
    for line in lines:
        limit -= view.counter.count(f"{line}\n")
        if limit < 0:
            break
        found.append(line)
    return found
