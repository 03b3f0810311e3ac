"""The cover: which summaries stand for what is older than the recent turns. Old coarse, near fine. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar
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


@dataclass(slots=True)
class _Node(Generic[S]):
    """A summary and, in order, the finer ones that say the same stretch together; none where there are no such."""

    summary: S
    under: list[_Node[S]] = field(default_factory=list)

    @property
    def finer_by(self) -> int:
        return sum(one.summary.tokens for one in self.under) - self.summary.tokens


def cover(summaries: Sequence[S], upto_seq: int, tokens: int) -> list[S]:
    """Give the finest summaries that cover the messages up to `upto_seq` within `tokens`, the newest first.

    `summaries` are those of one conversation in any order, of level 1 and above; others (level 0, made on demand) take
    no part. Each message up to `upto_seq` that is under one of them is under exactly one of those given; the newest may
    reach beyond `upto_seq`, where no finer one that fits ends nearer to it.

    The coarsest come first: as many as fit, without a gap from the newest on, so where even they are too many the
    oldest are left out. Then each is replaced by the finer ones under it while they fit, the newest first. So with more
    tokens never fewer messages are covered, and nothing that is given could be refined within the tokens left.
    """
    nest = [one for one in summaries if one.level >= 1 and one.from_seq <= upto_seq]
    roots = _forest(sorted(nest, key=lambda one: (one.from_seq, -one.to_seq, -one.level, one.id)), upto_seq)
    chosen: list[_Node[S]] = []
    for root in reversed(roots):
        if root.summary.tokens > tokens:
            break
        chosen.append(root)
        tokens -= root.summary.tokens
    return [one.summary for one in _refined(chosen, tokens)]


def offered(summaries: Sequence[S], upto_seq: int, tokens: int) -> list[S]:
    """Give the cover of what is older than the recent turns, in `tokens` of a context."""
    newest = max((one.to_seq for one in summaries), default=0)
    return cover(summaries, min(upto_seq, newest), int(tokens * INDENTED))


def _refined(chosen: list[_Node[S]], left: int) -> list[_Node[S]]:
    """Replace nodes, the newest first, by those under them, until none can be replaced with the tokens left."""
    place = 0
    while place < len(chosen):
        node = chosen[place]
        if node.under and node.finer_by <= left:
            left -= node.finer_by
            chosen[place : place + 1] = reversed(node.under)
            if node.finer_by < 0:
                place = 0  # what did not fit may fit now
        else:
            place += 1
    return chosen


def _forest(ordered: Sequence[S], upto_seq: int) -> list[_Node[S]]:
    """Give the summaries that are under no other, each with those under it, in order."""
    roots: list[_Node[S]] = []
    open_: list[_Node[S]] = []  # from a root to the summary before, each under the one before it
    for summary in ordered:
        while open_ and open_[-1].summary.to_seq < summary.from_seq:
            _close(open_.pop(), upto_seq)
        siblings = open_[-1].under if open_ else roots
        if open_ and open_[-1].summary.to_seq < summary.to_seq:
            continue  # it overlaps with one that begins earlier: no part of a nest
        node: _Node[S] = _Node(summary)
        siblings.append(node)
        open_.append(node)
    for node in reversed(open_):
        _close(node, upto_seq)
    return roots


def _close(node: _Node[S], upto_seq: int) -> None:
    """Forget what is under a summary if it leaves out some of its messages: refining must lose none."""
    reach = node.summary.from_seq
    for one in node.under:
        if one.summary.from_seq != reach:
            break
        reach = one.summary.to_seq + 1
    if reach <= min(node.summary.to_seq, upto_seq):
        node.under = []
