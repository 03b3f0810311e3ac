"""What is left of a budget once every section has its share, and what goes into it. Pure.

more of what answers      by priority: hits, those first that say what the question asks and nothing chosen says;
                          facts; sections of the user's own
older messages            as lines of what was said, those first that stand beside a hit, then the newest
the exact fill            the last hits exchanged for others that leave less unused
the beginning of a hit    where nothing else uses the room
an earlier window         where not even that does
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, islice

from memstore.context.pack import Packing, Piece, Plan, unpinned
from memstore.context.sections import FACTS, HITS, RECENT, SUMMARIES, WEIGHTS
from memstore.models import Hit
from memstore.store.tokenize import terms

# The exact fill: from how much unused it is worth it, how many chosen pieces it may exchange, for how many others.
WORTH_FILLING, EXCHANGED, OTHERS = 0.01, 4, 32
ROUNDS = 3  # of older messages, some of which prove to be said already
UNUSED = 0.03  # of the room, at most, while anything fits into it
LOOKED_AT = 200  # hits, for what they say of the question
Cut = Callable[[Piece, int], "Piece | None"]


@dataclass
class SpareBudget:
    """What has not been chosen for a packing yet, and may go into what is left of its room.

    `older` makes hits of turns, and `cut` the beginning of a hit.
    """

    packing: Packing
    offers: dict[str, list[Piece]]
    plan: Plan
    steady: Sequence[str]
    older: Callable[[Iterable[Piece]], Iterator[Piece]]
    cut: Cut

    def fill(self, room: int) -> None:
        """Fill the packing up to so many tokens."""
        packing = self.packing
        self._rest(room)
        for _ in range(ROUNDS):
            if packing.tokens >= room or not (more := list(_unsaid(packing, self._older, room - packing.tokens))):
                break
            self.offers[HITS] = [*self.offers[HITS], *more]
            self._rest(room)
        if room - packing.tokens > UNUSED * room:
            self._shorten(room)
        # What an earlier window shows itself makes room for a still earlier one.
        while room - packing.tokens > UNUSED * room and self._lengthen(room):
            pass

    @cached_property
    def _older(self) -> Iterator[Piece]:
        """What is older than the window, each once."""
        packing, turns = self.packing, self.offers.get(RECENT, [])
        return self.older(_beside(packing, turns[len(packing.chosen[RECENT]) :]))

    def _rest(self, room: int) -> None:
        """Fill what is left, by priority; where nothing fits any more, exchange the last pieces for fuller ones."""
        packing, plan = self.packing, self.plan
        order = [HITS, FACTS, *(name for name in plan if name not in WEIGHTS and name not in self.steady)]
        for section in sorted(order, key=lambda name: -plan[name].priority):
            packing.take(unpinned(self.offers, section), section, plan[section].maximum, room)
        if room - packing.tokens > WORTH_FILLING * room:
            most = packing.tokens + plan[HITS].maximum - packing.taken(HITS)
            _fill(packing, self.offers.get(HITS, ()), min(room, most))

    def _lengthen(self, room: int) -> bool:
        """Let what is steady grow where nothing else can use the room: better that it begins anew than room unused.

        Whether the window begins earlier now.
        """
        packing, plan, before = self.packing, self.plan, self.packing.oldest
        for section in self.steady:
            packing.take(self.offers.get(section, ()), section, plan[section].maximum, room)
        packing.take(self.offers.get(RECENT, ()), RECENT, plan[RECENT].maximum, room, gaps=False)
        if packing.oldest < before:
            for section in (HITS, FACTS, SUMMARIES):
                for piece in [one for one in packing.chosen[section] if packing.is_shown(one)]:
                    packing.remove(piece)
            self._rest(room)
        return packing.oldest < before

    def _shorten(self, room: int) -> None:
        """Take the beginning of the best hit that did not fit, and of which there is none yet."""
        packing, most = self.packing, self.plan[HITS].maximum
        begun = {one.id for one in packing.chosen[HITS]}
        others = (one for one in self.offers.get(HITS, ()) if one.id not in begun)
        outside = (one for one in others if one not in packing and not packing.is_redundant(one))
        for piece in islice(outside, OTHERS):
            over = packing.would_take(piece) - piece.tokens
            fits = min(room - packing.tokens - packing.cost(piece) + piece.tokens, most - over)
            if piece.tokens > fits and (shorter := self.cut(piece, fits)):
                packing.add(shorter)
                return


def uncovered_first(packing: Packing, pieces: Sequence[Piece], question: str) -> list[Piece]:
    """Put those first that say what the question asks and nothing chosen for it says, most of it first."""
    wanted = set(terms(question))
    for piece in chain(packing.chosen[FACTS], packing.chosen[HITS]):
        wanted -= terms(piece.wording.text).keys()
        if not wanted:
            break
    if not wanted:
        return list(pieces)
    said = {one: wanted & terms(one.wording.text).keys() for one in pieces[:LOOKED_AT] if one not in packing}
    first: list[Piece] = []
    while wanted and said:
        best = max(said, key=lambda one: len(said[one] & wanted))
        if not said[best] & wanted:
            break
        wanted -= said.pop(best)
        if not packing.is_redundant(best):
            first.append(best)
    return [*first, *(one for one in pieces if one not in first)]


def _beside(packing: Packing, turns: Sequence[Piece]) -> list[Piece]:
    """Put those turns first that stand right after or before a chosen hit, the best hit's first."""
    places: Mapping[float, Piece] = {turn.first_seq: turn for turn in turns}
    near = dict.fromkeys(places[seq] for seq in _near(packing, turns) if seq in places)
    return [*near, *(turn for turn in turns if turn not in near)]


def _unsaid(packing: Packing, pieces: Iterable[Piece], room: int) -> Iterator[Piece]:
    """Give those hits that would say something new, as many as could fill a room."""
    chosen = {(piece.id, piece.wording.text) for piece in packing.chosen[HITS]}
    for piece in pieces:
        if (piece.id, piece.wording.text) not in chosen and not packing.is_redundant(piece):
            yield piece
            room -= piece.tokens
            if room <= 0:
                break


def _near(packing: Packing, turns: Sequence[Piece]) -> Iterator[int]:
    here = {message.conversation_id for turn in turns[:1] for message in turn.content.messages}
    for piece in packing.chosen[HITS]:
        hit = piece.content
        if isinstance(hit, Hit) and hit.seq is not None and hit.conversation_id in here:
            yield from (hit.seq + 1, hit.seq - 1)


def _fill(packing: Packing, offered: Sequence[Piece], room: int) -> None:
    """Exchange the last hits for others that fill the room better."""
    last = [one for one in packing.chosen[HITS][1:][-EXCHANGED:] if one not in packing.musts]
    before, gap = packing.tokens, room - packing.tokens
    most = gap + sum(piece.tokens for piece in last)
    small = (
        one for one in offered if one not in packing and packing.cost(one) <= most and not packing.is_redundant(one)
    )
    others = list(islice(small, OTHERS))
    if not others:
        return
    for piece in last:
        packing.remove(piece)
    pool = [*last, *others]
    chosen = knapsack([packing.cost(piece) for piece in pool], room - packing.tokens)
    if sum(packing.cost(pool[place]) for place in chosen) + packing.tokens <= before:
        chosen = list(range(len(last)))
    for place in chosen:
        if not packing.is_redundant(pool[place]):  # two of them may say the same
            packing.add(pool[place])


def knapsack(sizes: Sequence[int], room: int) -> list[int]:
    """Give the places of pieces, in order, whose sizes have the greatest sum of at most `room`.

    Of several such choices the one that does without the last pieces: they come in the order of preference. A sum that
    can be reached is a bit of a whole number, so that forty pieces and two thousand tokens take microseconds.

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
