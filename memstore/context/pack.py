"""Packing: which pieces go in. Pure arithmetic over tokens; what is packed here is counted again as a whole.

    always                                   the minimums in tokens
    steady, in the order of the context      standing facts · the user's own · the window of recent turns · summaries
    for the question                         the user's own · facts · hits, each within its share
    what is left                             `leftover`

What is steady is chosen first and without a look at the question, so that it stays the same between turns. What the
window leaves (it moves in steps) goes to what answers to the question, so that nothing is wasted.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any
from uuid import UUID

from memstore.context.dedupe import SaidIndex, TextFingerprint
from memstore.context.sections import FACTS, HITS, RECENT, SUMMARIES, WEIGHTS, Allowance
from memstore.context.window import window
from memstore.models import Hit, Reason

# Of the room, that standing facts may have at most, their fence included: all of them, and the first one alone. These
# are allergies and the like, and no filler is worth one. Parts of the room alone, so that more room never drops one.
PINNED, FIRST = 1 / 3, 0.6
OVER_SHARE = "over what its section may have"
HAD_SHARE = "its section had its share, and others took what was left of the room"
NOTHING = TextFingerprint("")


@dataclass(frozen=True, slots=True, eq=False)
class Heading:
    """Something that stands over pieces, such as a fence or a day: paid once, by the first of them."""

    name: str
    tokens: int


@dataclass(frozen=True, slots=True, eq=False)
class Piece:
    """Something that may go into a section; `tokens` is what it is expected to add, below its headings.

    A turn `shows` messages; a summary begins at `first_seq`, as a turn does. `pinned` is in whatever is asked, as far
    as it fits; `wording` is what it says, and `sources` are the messages that it was made from. `note` is for the
    receipt; `whole` is the piece that this is the beginning of.
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
    wording: TextFingerprint = NOTHING
    sources: tuple[UUID, ...] = ()
    under: tuple[Heading, ...] = ()
    whole: Piece | None = None


class Headings(dict[Heading, int]):
    """The headings that pieces stand under, and how many pieces each: none that none stands under."""

    def stand_over(self, piece: Piece) -> None:
        """Note what stands over a piece."""
        for one in piece.under:
            self[one] = self.get(one, 0) + 1

    def leave(self, piece: Piece) -> None:
        """Forget what stands over a piece."""
        for one in piece.under:
            self[one] -= 1
            if not self[one]:
                del self[one]

    def missing(self, under: Sequence[Heading]) -> int:
        """Give the tokens of those headings that are not there."""
        tokens = 0
        for one in under:
            if one not in self:
                tokens += one.tokens
        return tokens


Offers = Mapping[str, Sequence[Piece]]
Plan = Mapping[str, Allowance]


@dataclass(slots=True)
class Packing:
    """The pieces chosen, by section and in the order of choice, and what they are expected to take.

    `musts` are never taken out, unless the recent turns show what they are. `usual` is what any question would have
    found to stand before it.
    """

    chosen: dict[str, list[Piece]] = field(default_factory=lambda: {section: [] for section in WEIGHTS})
    tokens: int = 0
    shown: set[UUID] = field(default_factory=set)
    oldest: float = math.inf
    musts: Sequence[Piece] = ()
    usual: dict[str, list[Piece]] | None = None
    _inside: set[Piece] = field(default_factory=set)
    _taken: Counter[str] = field(default_factory=Counter)
    _open: defaultdict[str, Headings] = field(default_factory=lambda: defaultdict(Headings))
    _everywhere: Headings = field(default_factory=lambda: Headings())
    _said: SaidIndex = field(default_factory=SaidIndex)
    _duplicates: set[Piece] = field(default_factory=set)
    _over_share: set[Piece] = field(default_factory=set)
    _had_share: dict[Piece, int] = field(default_factory=dict)  # those over it while there was room: what others had

    def __contains__(self, piece: Piece) -> bool:
        """Whether a piece is chosen."""
        return piece in self._inside

    def add(self, piece: Piece) -> None:
        """Take a piece in."""
        self.tokens += self.cost(piece)
        self._taken[piece.section] += self._alone(piece)
        self.chosen.setdefault(piece.section, []).append(piece)
        self._inside.add(piece)
        self._open[piece.section].stand_over(piece)
        self._everywhere.stand_over(piece)
        self._over_share.discard(piece)
        self.shown |= piece.shows
        if piece.section == RECENT:
            self.oldest = min(self.oldest, piece.first_seq)
        if piece.wording.text:
            self._said.add(piece.wording, piece.sources)

    def remove(self, piece: Piece) -> None:
        """Take a chosen piece out again, and what it says with it."""
        self.chosen[piece.section].remove(piece)
        self._inside.discard(piece)
        self._open[piece.section].leave(piece)
        self._everywhere.leave(piece)
        self.tokens -= self.cost(piece)
        self._taken[piece.section] -= self._alone(piece)
        self.shown -= piece.shows
        if piece.section == RECENT:
            self.oldest = min((one.first_seq for one in self.chosen[RECENT]), default=math.inf)
        if piece.wording.text:
            self._said.remove(piece.wording, piece.sources)
            self._duplicates.clear()

    def cost(self, piece: Piece) -> int:
        """Give what the piece would add now: itself, and the headings that are not there yet."""
        return piece.tokens + self._everywhere.missing(piece.under)

    def taken(self, section: str) -> int:
        """Give what a section's pieces take, with their headings; the fence around facts and hits is the facts'."""
        return self._taken[section] - self._shared(section)

    def would_take(self, piece: Piece) -> int:
        """Give what the section of a piece would take with it."""
        return self._taken[piece.section] + self._alone(piece) - self._shared(piece.section, piece.under)

    def _alone(self, piece: Piece) -> int:
        """Give what the piece adds to its section, if there were no other."""
        return piece.tokens + self._open[piece.section].missing(piece.under)

    def _shared(self, section: str, under: Sequence[Heading] = ()) -> int:
        if section != HITS:
            return 0
        over = self._open[HITS]
        return sum(one.tokens for one in self._open[FACTS] if one in over or one in under)

    def is_settled(self) -> bool:
        """Whether what stands before the question is what any question would have found."""
        return self.usual is not None and all(_steady(self, name) == found for name, found in self.usual.items())

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
        if piece.section != HITS or not self._said.says(piece.wording, piece.id):
            return False
        if not piece.wording.rows:  # not for good: what it answers may be chosen yet
            return not self._answers(piece)
        self._duplicates.add(piece)
        return True

    def _answers(self, piece: Piece) -> bool:
        """Whether a hit stands right behind one that is chosen: a "yes" may answer anything."""
        hit = piece.content
        if not isinstance(hit, Hit) or hit.seq is None:
            return False
        before = hit.conversation_id, hit.seq - 1
        return any((one.content.conversation_id, one.content.seq) == before for one in self.chosen[HITS])

    def why_not(self, piece: Piece) -> tuple[Reason, str]:
        """Give the reason for which a piece that is not chosen is not, by what is chosen now, and a note."""
        if self.is_shown(piece):
            return Reason.ALREADY_IN_RECENT, ""
        if self.is_redundant(piece):
            return Reason.DUPLICATE, ""
        if piece in self._over_share:
            return Reason.OVER_BUDGET, OVER_SHARE
        others = self.tokens - self._taken[piece.section]
        return Reason.OVER_BUDGET, HAD_SHARE if others > self._had_share.get(piece, others) else ""

    def why_passed(self, piece: Piece) -> Reason:
        """Give the reason without a look at what it says, unless that was asked before."""
        if self.is_shown(piece):
            return Reason.ALREADY_IN_RECENT
        return Reason.DUPLICATE if piece in self._duplicates else Reason.OVER_BUDGET

    def take(self, pieces: Iterable[Piece], section: str, most: int, room: int, *, gaps: bool = True) -> None:
        """Take pieces of a section in their order while it has at most `most` tokens; without gaps, up to the first
        that does not fit."""
        ended, fits, over_share = False, True, False
        for piece in pieces:
            if piece in self._inside:
                continue
            if not ended:
                fits = self.tokens + piece.tokens <= room and self.tokens + self.cost(piece) <= room
                over_share = fits and self.would_take(piece) > most
            if ended or over_share or not fits:
                (self._over_share.add if over_share else self._over_share.discard)(piece)
                if over_share:
                    self._had_share.setdefault(piece, self.tokens - self._taken[section])
                ended = not gaps
            elif not self.is_redundant(piece):
                self.add(piece)

    def keep_musts(self) -> None:
        """Take in what must be there, where the recent turns do not show it."""
        for piece in self.musts:
            if piece not in self and not self.is_shown(piece):
                self.add(piece)

    def drop(self, section: str | None = None) -> bool:
        """Take the least needed piece out: what came last, of the section or of that which can best spare it.

        Standing facts go last of all. False where nothing is left that may go.
        """
        added = [name for name in self.chosen if name not in WEIGHTS]
        order = (HITS, FACTS, *added, SUMMARIES, RECENT) if section is None else (section,)
        for pinned in (False, True):
            for name in order:
                spare = [one for one in self.chosen.get(name, ()) if one.pinned == pinned and one not in self.musts]
                if spare:
                    self.remove(spare[-1])
                    self.keep_musts()
                    return True
        return False


def minimums(offers: Offers, plan: Plan) -> dict[str, list[Piece]]:
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


def pack(offers: Offers, plan: Plan, steady: Sequence[str], base: int, asked: int) -> Packing:
    """Choose pieces that are expected to take at most `base` tokens, with the `asked` ones of the question.

    `steady` are the user's own sections that stand at the start.
    """
    packing = steady_part(offers, plan, steady, base, asked)
    answering = _answering(plan, steady)
    for section in sorted(answering, key=lambda name: (name in WEIGHTS, -plan[name].priority)):
        packing.take(unpinned(offers, section), section, _share(offers, plan, section), base - asked)
    return packing


def steady_part(offers: Offers, plan: Plan, steady: Sequence[str], base: int, asked: int) -> Packing:
    """Choose what stands before the question, as `pack` does, and what must be in.

    Most questions find what any other would: the usual. Something else is chosen only where everything fits, where
    nothing answers, where the question takes more than half of what is left for it and its answers, or where the best
    hit takes more than all hits may count on.
    """
    answering = _answering(plan, steady)
    musts = minimums(offers, plan)
    ahead = [piece for name, found in musts.items() for piece in found if name not in answering or piece.pinned]
    behind = [piece for name in answering for piece in musts.get(name, ()) if not piece.pinned]
    counted = sum(plan[name].share for name in answering if name in (FACTS, HITS) or offers.get(name))
    promised = sum(plan[name].minimum for name in answering if plan[name].required)
    half = counted // 2
    usual = _start(ahead, offers, plan, steady, base, base - half - promised, base - promised)
    _window(usual, offers, plan, base - half - promised, max(0, counted - half - promised))

    expected = {name: _steady(usual, name) for name in (*steady, FACTS, SUMMARIES, RECENT)}
    must = together([*ahead, *behind]) - together(ahead)
    room = base - asked - must
    needs = sum(_share(offers, plan, name) for name in answering if any(True for _ in unpinned(offers, name)))
    found = _start(ahead, offers, plan, steady, base, room, room)
    if _all_fit(found, offers, plan, answering, room):
        _window(found, offers, plan, room, 0, every=True)
    elif needs and needs <= counted and asked <= half and _steady(found, FACTS) == expected[FACTS]:
        found = usual
    else:
        _window(found, offers, plan, room, max(0, max(needs - asked, needs // 2) - must))
    found.usual = expected
    found.musts = (*ahead, *behind)
    found.keep_musts()
    return found


def unpinned(offers: Offers, section: str) -> Iterable[Piece]:
    """Give the pieces that answer to the question. Those that are pinned have had their room, which no other moves."""
    return (piece for piece in offers.get(section, ()) if not piece.pinned)


def _answering(plan: Plan, steady: Sequence[str]) -> list[str]:
    return [name for name in plan if name not in (*steady, SUMMARIES, RECENT)]


def _steady(packing: Packing, section: str) -> list[Piece]:
    return [piece for piece in packing.chosen.get(section, ()) if section != FACTS or piece.pinned]


def _start(
    musts: Sequence[Piece], offers: Offers, plan: Plan, steady: Sequence[str], base: int, room: int, always: int
) -> Packing:
    """Take standing facts, and before all else what must be in, so that no section of another can push them out.

    Standing facts may go up to `always` tokens in all, what else is steady up to `room`.
    """
    packing = Packing()
    for piece in musts:
        packing.add(piece)
    pinned = [piece for piece in offers.get(FACTS, ()) if piece.pinned]
    for some, part in ((pinned[:1], FIRST), (pinned, PINNED)):
        most = min(max(plan[FACTS].share, int(part * base)), plan[FACTS].maximum)
        packing.take(some, FACTS, most, always, gaps=False)
    for section in steady:
        packing.take(offers.get(section, ()), section, plan[section].share, room)
    return packing


def _window(packing: Packing, offers: Offers, plan: Plan, room: int, needs: int, *, every: bool = False) -> None:
    """Take the window of recent turns, which has all but what others need, and summaries of what is older."""
    turns = offers.get(RECENT, ())
    tokens = [piece.tokens for piece in turns]
    left = room - packing.tokens + packing.taken(RECENT) + packing.taken(SUMMARIES)
    told = min(plan[SUMMARIES].share, sum(piece.tokens for piece in offers.get(SUMMARIES, ())))
    most = min(plan[RECENT].maximum, max(left - told - needs, min(left, plan[RECENT].share)))
    count = len(turns)
    if not every:
        starts = [int(piece.first_seq) for piece in turns]
        steps = all(piece.kind != "block" for piece in turns)  # strategies move what they made in steps of their own
        count = window(starts, tokens, most, steps=steps)
    least = sum(1 for so_far in accumulate(tokens) if so_far <= plan[RECENT].minimum)
    packing.take(turns[: max(count, least)], RECENT, room, room, gaps=False)
    packing.take(offers.get(SUMMARIES, ()), SUMMARIES, plan[SUMMARIES].share, room)


def _all_fit(packing: Packing, offers: Offers, plan: Plan, answering: Sequence[str], room: int) -> bool:
    """Whether all recent turns fit, beside what answers and is not among them, within its share."""
    turns = offers.get(RECENT, ())
    tokens, left = sum(piece.tokens for piece in turns), room - packing.tokens + packing.taken(RECENT)
    if tokens > min(plan[RECENT].maximum, left):  # of a long conversation: nobody needs to look at what answers
        return False
    shown = frozenset[UUID]().union(*(piece.shows for piece in turns))
    others = 0
    for name in answering:
        outside = (one for one in unpinned(offers, name) if not shown.intersection((one.id, *one.sources)))
        share = max(0, _share(offers, plan, name) - packing.taken(name))
        others += min(share, sum(one.tokens for one in outside))
    return tokens <= left - others


def _share(offers: Offers, plan: Plan, section: str) -> int:
    """Give a section's share; the best hit is worth more than it."""
    if section == HITS and offers.get(HITS):
        return min(plan[HITS].maximum, max(plan[HITS].share, together(offers[HITS][:1])))
    return plan[section].share
