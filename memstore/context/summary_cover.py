"""The cover: which summaries stand for what is older than the recent turns. Old coarse, near fine. Pure."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from typing import Generic, NamedTuple, Protocol, TypeVar
from uuid import UUID

INDENTED = 0.9  # of a summary's tokens in a context: the rest are blanks, and the fence


class Covering(Protocol):
    """What a cover needs to know of a summary: a `Summary` is one, and so is its outline without the text."""

    @property
    def id(self) -> UUID:
        """Its name, to tell equals apart."""

    @property
    def level(self) -> int:
        """How far above the messages it stands."""

    @property
    def from_seq(self) -> int:
        """The first message under it."""

    @property
    def to_seq(self) -> int:
        """The last message under it."""

    @property
    def tokens(self) -> int:
        """How long it is."""


S = TypeVar("S", bound=Covering)


class _Node(NamedTuple, Generic[S]):
    """A summary, the places of the finer ones that say the same range together, and how much longer those are."""

    summary: S
    under: Sequence[int]
    finer_by: int


class _Nest(Generic[S]):
    """Summaries in such an order that those under another follow it. What is under one is found when it is asked for:
    a cover refines few of them."""

    def __init__(self, summaries: Iterable[S], upto_seq: int) -> None:
        self._ordered = sorted(summaries, key=lambda one: (one.from_seq, -one.to_seq, -one.level, one.id))
        self._starts = [one.from_seq for one in self._ordered]
        self._upto_seq = upto_seq

    def roots(self) -> list[_Node[S]]:
        """Return those that are under no other, in order."""
        return [self.node(place) for place in self._side_by_side(0, math.inf)]

    def node(self, place: int) -> _Node[S]:
        """Return a summary with those right under it; none where they leave out messages: refining must lose none."""
        own = self._ordered[place]
        under = self._side_by_side(place + 1, own.to_seq)
        reach = own.from_seq
        for one in under:
            if self._starts[one] != reach:
                break
            reach = self._ordered[one].to_seq + 1
        if reach <= min(own.to_seq, self._upto_seq):
            return _Node(own, (), 0)
        return _Node(own, under, sum(self._ordered[one].tokens for one in under) - own.tokens)

    def _side_by_side(self, place: int, to_seq: float) -> list[int]:
        """Return the places, from one on, of the largest ones up to a message; of two that overlap, the first."""
        found = []
        while place < len(self._starts) and self._starts[place] <= to_seq:
            reach = self._ordered[place].to_seq
            if reach <= to_seq:
                found.append(place)
                place = bisect_right(self._starts, reach, place)
            else:
                place += 1
        return found


def cover(summaries: Sequence[S], upto_seq: int, tokens: int) -> list[S]:
    """Return the finest summaries that cover the messages up to `upto_seq` within `tokens`, the newest first.

    `summaries` are those of one conversation in any order, of level 1 and above; others (level 0, made on demand) take
    no part. Each message up to `upto_seq` that is under one of them is under exactly one of those given; the newest may
    reach beyond `upto_seq`, where no finer one that fits ends nearer to it.

    The coarsest come first: as many as fit, without a gap from the newest on, so where even they are too many the
    oldest are left out. Then each is replaced by the finer ones under it while they fit, the newest first. So with more
    tokens never fewer messages are covered, and nothing that is given could be refined within the tokens left.
    """
    nest = [one for one in summaries if one.level >= 1 and one.from_seq <= upto_seq]
    found = _Nest(nest, upto_seq)
    chosen: list[_Node[S]] = []
    for root in reversed(found.roots()):
        if root.summary.tokens > tokens:
            break
        chosen.append(root)
        tokens -= root.summary.tokens
    return [one.summary for one in _refined(found, chosen, tokens)]


def summaries_for_context(summaries: Sequence[S], upto_seq: int, tokens: int) -> list[S]:
    """Return the cover of what is older than the recent turns, in `tokens` of a context."""
    newest = max((one.to_seq for one in summaries), default=0)
    return cover(summaries, min(upto_seq, newest), int(tokens * INDENTED))


def _refined(nest: _Nest[S], chosen: list[_Node[S]], left: int) -> list[_Node[S]]:
    """Replace nodes, the newest first, by those under them, until none can be replaced with the tokens left."""
    place = 0
    while place < len(chosen):
        node = chosen[place]
        if node.under and node.finer_by <= left:
            left -= node.finer_by
            chosen[place : place + 1] = [nest.node(one) for one in reversed(node.under)]
            if node.finer_by < 0:
                place = 0  # what did not fit may fit now
        else:
            place += 1
    return chosen
