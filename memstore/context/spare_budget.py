"""What is left of a budget once every section has its share, and what goes into it. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from memstore.context.items import ContextItem, ItemFactory
from memstore.context.sections import FACTS, HITS, RECENT, SUMMARIES, WEIGHTS
from memstore.context.selection import Plan, Selection, query_dependent
from memstore.models import Hit

UNUSED = 0.03  # of the room, at most, while anything fits into it
LOOKED_AT = 32  # hits that did not fit, for one whose beginning does


@dataclass
class SpareBudget:
    """What has not been selected yet, and may go into what is left of the room: first what answers to the question,
    then older messages as lines of what was said, the beginning of a hit, and an earlier window."""

    selection: Selection
    items: dict[str, list[ContextItem]]
    plan: Plan
    static: Sequence[str]
    factory: ItemFactory

    def fill(self, room: int) -> None:
        """Fill the selection up to so many tokens."""
        selection = self.selection
        self._take_rest(room)
        if selection.tokens < room:
            self.items[HITS] = [*self.items[HITS], *self._older_lines(room - selection.tokens)]
            self._take_rest(room)
        if room - selection.tokens > UNUSED * room:
            self._take_beginning(room)
        # What an earlier window shows itself makes room for a still earlier one.
        while room - selection.tokens > UNUSED * room and self._extend_window(room):
            pass

    def _take_rest(self, room: int) -> None:
        """Fill what is left, by priority."""
        order = [HITS, FACTS, *(name for name in self.plan if name not in WEIGHTS and name not in self.static)]
        for section in sorted(order, key=lambda name: -self.plan[name].priority):
            self.selection.take(query_dependent(self.items, section), section, self.plan[section].maximum, room)

    def _older_lines(self, room: int) -> Iterator[ContextItem]:
        """Yield messages older than the window as lines, as many as could fill a room: those beside a hit first."""
        turns = self.items[RECENT][len(self.selection.chosen[RECENT]) :]
        by_seq: dict[float, ContextItem] = {turn.first_seq: turn for turn in turns}
        here = {message.conversation_id for turn in turns[:1] for message in turn.content.messages}
        hits = [item.content for item in self.selection.chosen[HITS] if isinstance(item.content, Hit)]
        seqs = (
            hit.seq + step for hit in hits if hit.seq is not None and hit.conversation_id in here for step in (1, -1)
        )
        near = dict.fromkeys(by_seq[seq] for seq in seqs if seq in by_seq)
        known = {item.id for item in self.items[HITS]}
        for item in self.factory.hits_of_turns([*near, *(turn for turn in turns if turn not in near)]):
            if item.id not in known and not self.selection.is_redundant(item):
                yield item
                room -= item.tokens
                if room <= 0:
                    break

    def _take_beginning(self, room: int) -> None:
        """Take the beginning of the best hit that did not fit, and of which there is none yet."""
        selection, most = self.selection, self.plan[HITS].maximum
        begun = {item.id for item in selection.chosen[HITS]}
        outside = (item for item in self.items[HITS] if item.id not in begun and not selection.is_redundant(item))
        for item in islice(outside, LOOKED_AT):
            over = selection.would_take(item) - item.tokens
            fits = min(room - selection.tokens - selection.cost(item) + item.tokens, most - over)
            if item.tokens > fits and (shorter := self.factory.beginning(item, fits)):
                selection.add(shorter)
                return

    def _extend_window(self, room: int) -> bool:
        """Let the static part grow where nothing else can use the room: better that it begins anew than room unused.

        Return whether the window begins earlier now.
        """
        selection, plan, before = self.selection, self.plan, self.selection.oldest
        for section in self.static:
            selection.take(self.items[section], section, plan[section].maximum, room)
        selection.take(self.items[RECENT], RECENT, plan[RECENT].maximum, room, gaps=False)
        if selection.oldest < before:
            for section in (HITS, FACTS, SUMMARIES):
                for item in [one for one in selection.chosen[section] if selection.is_shown(one)]:
                    selection.remove(item)
            self._take_rest(room)
        return selection.oldest < before
