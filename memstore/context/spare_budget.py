"""What is left of a budget once every section has its share, and what goes into it. Pure.

more of what answers      by priority: hits, those first that say what the question asks and nothing chosen says;
                          facts; sections of the user's own
older messages            as lines of what was said, those first that stand beside a hit, then the newest
the exact fill            the last hits exchanged for others that leave less unused
the beginning of a hit    where nothing else uses the room
an earlier window         where not even that does
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, islice

from memstore.context.items import ContextItem, ItemFactory
from memstore.context.sections import FACTS, HITS, RECENT, SUMMARIES, WEIGHTS
from memstore.context.selection import Plan, Selection, query_dependent
from memstore.models import Hit
from memstore.store.tokenize import terms

# The exact fill: from how much unused it is worth it, how many chosen items it may exchange, for how many others.
WORTH_FILLING, EXCHANGED, OTHERS = 0.01, 4, 32
ROUNDS = 3  # of older messages, some of which prove to be said already
UNUSED = 0.03  # of the room, at most, while anything fits into it
LOOKED_AT = 200  # hits, for what they say of the question


@dataclass
class SpareBudget:
    """What has not been selected yet, and may go into what is left of the room."""

    selection: Selection
    items: dict[str, list[ContextItem]]
    plan: Plan
    static: Sequence[str]
    factory: ItemFactory

    def fill(self, room: int) -> None:
        """Fill the selection up to so many tokens."""
        selection = self.selection
        self._take_rest(room)
        for _ in range(ROUNDS):
            if selection.tokens >= room or not (more := list(self._new_lines(room - selection.tokens))):
                break
            self.items[HITS] = [*self.items[HITS], *more]
            self._take_rest(room)
        if room - selection.tokens > UNUSED * room:
            self._take_beginning(room)
        # What an earlier window shows itself makes room for a still earlier one.
        while room - selection.tokens > UNUSED * room and self._extend_window(room):
            pass

    def _take_rest(self, room: int) -> None:
        """Fill what is left, by priority; where nothing fits any more, exchange the last items for fuller ones."""
        selection, plan = self.selection, self.plan
        order = [HITS, FACTS, *(name for name in plan if name not in WEIGHTS and name not in self.static)]
        for section in sorted(order, key=lambda name: -plan[name].priority):
            selection.take(query_dependent(self.items, section), section, plan[section].maximum, room)
        if room - selection.tokens > WORTH_FILLING * room:
            most = selection.tokens + plan[HITS].maximum - selection.taken(HITS)
            _exchange_last(selection, self.items.get(HITS, ()), min(room, most))

    @cached_property
    def _older_lines(self) -> Iterator[ContextItem]:
        """Messages older than the window, each once: those right after or before a chosen hit first, as lines."""
        turns = self.items.get(RECENT, [])[len(self.selection.chosen[RECENT]) :]
        by_seq: dict[float, ContextItem] = {turn.first_seq: turn for turn in turns}
        here = {message.conversation_id for turn in turns[:1] for message in turn.content.messages}
        hits = [item.content for item in self.selection.chosen[HITS] if isinstance(item.content, Hit)]
        seqs = (
            hit.seq + step for hit in hits if hit.seq is not None and hit.conversation_id in here for step in (1, -1)
        )
        near = dict.fromkeys(by_seq[seq] for seq in seqs if seq in by_seq)
        return self.factory.hits_of_turns([*near, *(turn for turn in turns if turn not in near)])

    def _new_lines(self, room: int) -> Iterator[ContextItem]:
        """Yield older lines that would say something new, as many as could fill a room."""
        chosen = {(item.id, item.fingerprint.text) for item in self.selection.chosen[HITS]}
        for item in self._older_lines:
            if (item.id, item.fingerprint.text) not in chosen and not self.selection.is_redundant(item):
                yield item
                room -= item.tokens
                if room <= 0:
                    break

    def _take_beginning(self, room: int) -> None:
        """Take the beginning of the best hit that did not fit, and of which there is none yet."""
        selection, most = self.selection, self.plan[HITS].maximum
        begun = {item.id for item in selection.chosen[HITS]}
        others = (item for item in self.items.get(HITS, ()) if item.id not in begun)
        outside = (item for item in others if item not in selection and not selection.is_redundant(item))
        for item in islice(outside, OTHERS):
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
            selection.take(self.items.get(section, ()), section, plan[section].maximum, room)
        selection.take(self.items.get(RECENT, ()), RECENT, plan[RECENT].maximum, room, gaps=False)
        if selection.oldest < before:
            for section in (HITS, FACTS, SUMMARIES):
                for item in [one for one in selection.chosen[section] if selection.is_shown(one)]:
                    selection.remove(item)
            self._take_rest(room)
        return selection.oldest < before


def uncovered_first(selection: Selection, items: Sequence[ContextItem], question: str) -> list[ContextItem]:
    """Put those first that say what the question asks and nothing chosen for it says, most of it first."""
    wanted = set(terms(question))
    for item in chain(selection.chosen[FACTS], selection.chosen[HITS]):
        wanted -= terms(item.fingerprint.text).keys()
        if not wanted:
            return list(items)
    said = {one: wanted & terms(one.fingerprint.text).keys() for one in items[:LOOKED_AT] if one not in selection}
    first: list[ContextItem] = []
    while wanted and said:
        best = max(said, key=lambda one: len(said[one] & wanted))
        if not said[best] & wanted:
            break
        wanted -= said.pop(best)
        if not selection.is_redundant(best):
            first.append(best)
    return [*first, *(one for one in items if one not in first)]


def _exchange_last(selection: Selection, hits: Sequence[ContextItem], room: int) -> None:
    """Exchange the last hits for others that fill the room better."""
    last = [one for one in selection.chosen[HITS][1:][-EXCHANGED:] if one not in selection.required]
    before = selection.tokens
    most = room - before + sum(item.tokens for item in last)
    small = (
        one for one in hits if one not in selection and selection.cost(one) <= most and not selection.is_redundant(one)
    )
    others = list(islice(small, OTHERS))
    if not others:
        return
    for item in last:
        selection.remove(item)
    pool = [*last, *others]
    chosen = knapsack([selection.cost(item) for item in pool], room - selection.tokens)
    if sum(selection.cost(pool[place]) for place in chosen) + selection.tokens <= before:
        chosen = list(range(len(last)))
    for place in chosen:
        if not selection.is_redundant(pool[place]):  # two of them may say the same
            selection.add(pool[place])


def knapsack(sizes: Sequence[int], room: int) -> list[int]:
    """Return the places of items, in order, whose sizes have the greatest sum of at most `room`.

    Of several such choices the one that does without the last items: they come in the order of preference. A sum that
    can be reached is a bit of a whole number, so that forty items and two thousand tokens take microseconds.

    >>> knapsack([40, 33, 30], 70)
    [0, 2]
    """
    if room <= 0:
        return []
    within = (1 << (room + 1)) - 1
    reached = [1]
    for size in sizes:
        reached.append((reached[-1] | reached[-1] << size) & within)
    total, chosen = reached[-1].bit_length() - 1, []
    for place in range(len(sizes) - 1, -1, -1):
        if not reached[place] >> total & 1:
            chosen.append(place)
            total -= sizes[place]
    return chosen[::-1]
