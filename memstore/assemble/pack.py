"""Packing: which pieces go in. Pure arithmetic over tokens; what is packed here is counted again as a whole.

    steady, in the order of the context      the user's own · standing facts · summaries · the window of recent turns
    for the question                         the user's own · facts · hits, each within its share
    what is left                             by priority: hits, facts, … then older messages, then an exact fill

What is steady is chosen first and without a look at the question, so that it stays the same between turns. What the
window leaves (it moves in steps) goes to what answers to the question, so that nothing is wasted.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any
from uuid import UUID

from memstore.assemble.fill import fullest
from memstore.assemble.said import Said
from memstore.assemble.sections import FACTS, HITS, RECENT, SUMMARIES, WEIGHTS, Allowance
from memstore.assemble.window import window
from memstore.models import Reason

# The exact fill: from how much unused it is worth it, how many chosen pieces it may exchange, for how many others.
WORTH_FILLING, EXCHANGED, OTHERS = 0.01, 4, 32
PINNED = 0.25  # of the room, that standing facts may have at most: more than the share of all facts where that is small
UNUSED = 0.03  # of the room, at most, while anything fits into it


@dataclass(frozen=True, slots=True)
class Heading:
    """Something that stands over pieces, such as a fence or a day: paid once, by the first of them."""

    name: str
    tokens: int


@dataclass(frozen=True, slots=True, eq=False)
class Piece:
    """Something that may go into a section; `tokens` is what it is expected to add, below its headings.

    A turn `shows` messages; a summary begins at `first_seq`, as a turn does. `pinned` is in whatever is asked, as far
    as it fits; `text` is what it says, and `sources` the messages it was made from. `note` is for the receipt.
    """

    section: str
    kind: str
    id: UUID | None
    tokens: int
    content: Any
    score: float | None = None
    shows: frozenset[UUID] = frozenset()
    first_seq: float = -math.inf
    note: str = ""
    pinned: bool = False
    text: str = ""
    sources: tuple[UUID, ...] = ()
    under: tuple[Heading, ...] = ()


Offers = Mapping[str, Sequence[Piece]]


@dataclass(slots=True)
class Packing:
    """The pieces chosen, by section and in the order of choice, and what they are expected to take.

    `held` is room that a section must not lose to others: what its minimum needs, until it has it.
    """

    chosen: dict[str, list[Piece]] = field(default_factory=lambda: {section: [] for section in WEIGHTS})
    tokens: int = 0
    shown: set[UUID] = field(default_factory=set)
    oldest: float = math.inf
    held: dict[str, int] = field(default_factory=dict)
    steady: bool = True
    _taken: dict[str, int] = field(default_factory=dict)
    _open: Counter[Heading] = field(default_factory=Counter)
    _said: Said = field(default_factory=Said)
    _duplicates: set[Piece] = field(default_factory=set)

    def add(self, piece: Piece) -> None:
        """Take a piece in."""
        cost = self.cost(piece)
        self.tokens += cost
        self._taken[piece.section] = self.taken(piece.section) + cost
        self.held[piece.section] = max(0, self.held.get(piece.section, 0) - cost)
        self.chosen.setdefault(piece.section, []).append(piece)
        self._open.update(piece.under)
        self.shown |= piece.shows
        if piece.section == RECENT:
            self.oldest = min(self.oldest, piece.first_seq)
        if piece.text:
            self._said.add(piece.text, piece.sources)

    def remove(self, piece: Piece) -> None:
        """Take a chosen piece out again. What it says counts as said for as long as packing goes on."""
        self.chosen[piece.section].remove(piece)
        self._open.subtract(piece.under)
        cost = self.cost(piece)
        self.tokens -= cost
        self._taken[piece.section] -= cost
        self.shown -= piece.shows
        if piece.section == RECENT:
            self.oldest = min((one.first_seq for one in self.chosen[RECENT]), default=math.inf)

    def cost(self, piece: Piece) -> int:
        """Give what the piece would add now: itself, and the headings that are not there yet."""
        return piece.tokens + sum(heading.tokens for heading in piece.under if self._open[heading] <= 0)

    def taken(self, section: str) -> int:
        """Give what a section's pieces take."""
        return self._taken.get(section, 0)

    def is_settled(self, section: str) -> bool:
        """Whether the section is what any question would have made it."""
        return self.steady and section in (SUMMARIES, RECENT)

    def is_shown(self, piece: Piece) -> bool:
        """Whether the recent turns show what the piece is, or was made from."""
        if piece.section == SUMMARIES:
            return piece.first_seq >= self.oldest
        if piece.section == FACTS:
            return not piece.pinned and not self.shown.isdisjoint(piece.sources)
        return piece.section == HITS and piece.id in self.shown

    def is_redundant(self, piece: Piece) -> bool:
        """Whether the piece would say nothing new."""
        if self.is_shown(piece) or piece in self._duplicates:
            return True
        if piece.section == HITS and self._said.says(piece.text, piece.id):
            self._duplicates.add(piece)
            return True
        return False

    def why_not(self, piece: Piece) -> Reason:
        """Give the reason for which a piece that is not chosen is not."""
        if self.is_shown(piece):
            return Reason.SHOWN
        return Reason.DUPLICATE if piece in self._duplicates else Reason.OVER_BUDGET

    def room_for(self, section: str, room: int) -> int:
        """Give what is left of `room` for a section, without what is held for others."""
        return room - self.tokens - sum(held for name, held in self.held.items() if name != section)

    def take(self, pieces: Iterable[Piece], section: str, most: int, room: int, *, gaps: bool = True) -> None:
        """Take pieces of a section in their order while it has at most `most` tokens; without gaps, up to the first
        that does not fit."""
        known = set(self.chosen.get(section, ()))
        for piece in pieces:
            if piece in known:
                continue
            cost = self.cost(piece)
            if self.taken(section) + cost > most or cost > self.room_for(section, room):
                if not gaps:
                    break
            elif not self.is_redundant(piece):
                self.add(piece)

    def drop(self, musts: frozenset[Piece] = frozenset()) -> bool:
        """Take the least needed piece out: what came last, of the section that can best spare it; False for none."""
        added = [name for name in self.chosen if name not in WEIGHTS]
        for section in (HITS, FACTS, *added, SUMMARIES, RECENT):
            spare = [piece for piece in self.chosen.get(section, ()) if piece not in musts]
            spare = [piece for piece in spare if not piece.pinned] or spare
            if spare and (section != FACTS or not spare[-1].pinned or not self.chosen[RECENT]):
                self.steady = self.steady and section in (HITS, FACTS)
                self.remove(spare[-1])
                return True
        return False


def minimums(offers: Offers, plan: Mapping[str, Allowance]) -> dict[str, list[Piece]]:
    """Give the pieces that must be in: of each section that has a minimum in tokens the first ones that fit into it."""
    found: dict[str, list[Piece]] = {}
    for section, allowance in plan.items():
        if allowance.required:
            alone = Packing()
            alone.take(offers.get(section, ()), section, allowance.minimum, allowance.minimum, gaps=False)
            found[section] = alone.chosen.get(section, [])
    return found


def together(pieces: Iterable[Piece]) -> int:
    """Give what pieces take with the headings over them."""
    alone = Packing()
    for piece in pieces:
        alone.add(piece)
    return alone.tokens


def pack(offers: Offers, plan: Mapping[str, Allowance], steady: Sequence[str], room: int, asked: int) -> Packing:
    """Choose pieces that are expected to take at most `room` tokens beside the `asked` ones of the question.

    `steady` are the user's own sections that stand at the start.
    """
    packing = steady_part(offers, plan, steady, room, asked)
    questions = [name for name in plan if name not in (*steady, SUMMARIES, RECENT)]
    for section in sorted(questions, key=lambda name: (name in WEIGHTS, -plan[name].priority)):
        packing.take(_unpinned(offers, section), section, _share(packing, offers, plan, section), room)
        packing.held[section] = 0
    packing.held.clear()
    rest(packing, offers, plan, room)
    return packing


def steady_part(offers: Offers, plan: Mapping[str, Allowance], steady: Sequence[str], room: int, asked: int) -> Packing:
    """Choose what stands before the question, as `pack` does."""
    packing = Packing()
    for section, pieces in minimums(offers, plan).items():
        packing.held[section] = together(pieces)
    for section in steady:
        packing.take(offers.get(section, ()), section, plan[section].share, room)
    pinned = [piece for piece in offers.get(FACTS, ()) if piece.pinned]
    most = max(plan[FACTS].share, int(PINNED * (room + asked)))
    packing.take(pinned, FACTS, min(most, plan[FACTS].maximum), room, gaps=False)
    _recent(packing, offers, plan, steady, room, asked)
    return packing


def _recent(
    packing: Packing, offers: Offers, plan: Mapping[str, Allowance], steady: Sequence[str], room: int, asked: int
) -> None:
    """Take the window of recent turns, which has all that others do not count on, and summaries of what is older."""
    turns = offers.get(RECENT, ())
    tokens = [piece.tokens for piece in turns]
    others = [name for name in plan if name not in (*steady, SUMMARIES, RECENT) and offers.get(name)]
    left, most, whole = packing.room_for(RECENT, room), plan[RECENT].maximum, sum(tokens)
    counted = sum(_share(packing, offers, plan, name) - packing.taken(name) for name in others)
    told = min(plan[SUMMARIES].share, sum(piece.tokens for piece in offers.get(SUMMARIES, ())))
    # The question is paid from the share of what answers to it, up to its half, so that one which is a little longer
    # does not move the window.
    window_room = max(left - told - max(counted - asked, counted // 2), min(left, plan[RECENT].share))
    fits = whole <= min(most, left - sum(_unshown(packing, offers, plan, name) for name in others))
    packing.steady = asked <= counted // 2 and plan[RECENT].share <= left and (not fits or whole <= window_room)
    count = len(turns)
    if not fits:
        starts = [int(piece.first_seq) for piece in turns]
        steps = all(piece.kind != "block" for piece in turns)  # strategies move what they made in steps of their own
        count = window(starts, tokens, min(most, window_room), steps=steps)
    least = sum(1 for so_far in accumulate(tokens) if so_far <= plan[RECENT].minimum)
    packing.take(turns[: max(count, least)], RECENT, room, room, gaps=False)
    packing.take(offers.get(SUMMARIES, ()), SUMMARIES, plan[SUMMARIES].share, room)


def _unshown(packing: Packing, offers: Offers, plan: Mapping[str, Allowance], section: str) -> int:
    """Give what a section would take within its share if all recent turns were in."""
    shown = frozenset[UUID]().union(*(piece.shows for piece in offers.get(RECENT, ())))
    left = (
        piece for piece in offers[section] if not piece.pinned and not shown.intersection((piece.id, *piece.sources))
    )
    return min(_share(packing, offers, plan, section) - packing.taken(section), sum(piece.tokens for piece in left))


def _unpinned(offers: Offers, section: str) -> Iterable[Piece]:
    """Give the pieces that answer to the question. Those that are pinned have had their room, which no other moves."""
    return (piece for piece in offers.get(section, ()) if not piece.pinned)


def _share(packing: Packing, offers: Offers, plan: Mapping[str, Allowance], section: str) -> int:
    """Give a section's share; the best hit is worth more than it."""
    if section == HITS and offers.get(HITS):
        return min(plan[HITS].maximum, max(plan[HITS].share, packing.cost(offers[HITS][0])))
    return plan[section].share


def rest(packing: Packing, offers: Offers, plan: Mapping[str, Allowance], room: int) -> None:
    """Fill what is left, by priority; where nothing fits any more, exchange the last pieces for fuller ones."""
    order = [HITS, FACTS, *(name for name in plan if name not in WEIGHTS)]
    for section in sorted(order, key=lambda name: -plan[name].priority):
        packing.take(_unpinned(offers, section), section, plan[section].maximum, room)
    gap = room - packing.tokens
    if gap > WORTH_FILLING * room:
        _fill(packing, offers.get(HITS, ()), min(room, packing.tokens + plan[HITS].maximum - packing.taken(HITS)))


def lengthen(packing: Packing, offers: Offers, plan: Mapping[str, Allowance], room: int) -> None:
    """Let the window begin earlier where nothing else can use the room: better that it begins anew than room unused."""
    before = packing.oldest
    if room - packing.tokens > UNUSED * room:
        packing.take(offers.get(RECENT, ()), RECENT, plan[RECENT].maximum, room, gaps=False)
    if packing.oldest < before:
        packing.steady = False
        for section in (HITS, FACTS, SUMMARIES):
            for piece in [one for one in packing.chosen[section] if packing.is_shown(one)]:
                packing.remove(piece)
        rest(packing, offers, plan, room)


def _fill(packing: Packing, offered: Sequence[Piece], room: int) -> None:
    """Exchange the last hits for others that fill the room better."""
    inside = set(packing.chosen[HITS])
    last = packing.chosen[HITS][1:][-EXCHANGED:]
    before, gap = packing.tokens, room - packing.tokens
    most = gap + sum(piece.tokens for piece in last)
    small = (
        one for one in offered if one not in inside and packing.cost(one) <= most and not packing.is_redundant(one)
    )
    others = [piece for piece, _ in zip(small, range(OTHERS), strict=False)]
    if not others:
        return
    for piece in last:
        packing.remove(piece)
    pool = [*last, *others]
    chosen = fullest([packing.cost(piece) for piece in pool], room - packing.tokens)
    if sum(packing.cost(pool[place]) for place in chosen) + packing.tokens <= before:
        chosen = list(range(len(last)))
    for place in chosen:
        packing.add(pool[place])
