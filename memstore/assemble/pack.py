"""Packing: which pieces go in. Pure arithmetic over tokens; what is packed here is counted again as a whole."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from memstore.models import Reason

# The share of the room that a section may count on. What one leaves others may use, in this order.
SHARES: Mapping[str, float] = {"hits": 0.35, "recent": 0.35, "facts": 0.15, "summaries": 0.15}
# These follow from what is stored and not from the question, as far as their share goes; they are packed first.
STABLE = ("recent", "summaries")
MEMORY, MEMORY_SECTIONS = "memory", ("facts", "hits")


@dataclass(frozen=True, slots=True)
class Piece:
    """Something that may go into a section; `tokens` is what it is expected to add.

    A turn `shows` messages; a summary begins at `first_seq`, as a turn does. `note` is for the receipt.
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


@dataclass(slots=True)
class Packing:
    """The pieces chosen, by section and in the order of choice.

    `settled` tells how many pieces a section took within its share alone: another question would not change those.

    `fences` are the tokens of what stands around a section's pieces, paid by its first one; facts and hits stand inside
    one more, `MEMORY`.
    """

    fences: Mapping[str, int] = field(default_factory=dict)
    chosen: dict[str, list[Piece]] = field(default_factory=lambda: {section: [] for section in SHARES})
    settled: dict[str, int] = field(default_factory=dict)
    tokens: int = 0
    shown: set[UUID] = field(default_factory=set)
    oldest: float = math.inf

    def add(self, piece: Piece) -> None:
        """Take a piece in."""
        self.tokens += self.cost(piece)
        self.chosen[piece.section].append(piece)
        if piece.section == "recent":
            self.shown |= piece.shows
            self.oldest = min(self.oldest, piece.first_seq)

    def cost(self, piece: Piece) -> int:
        """Give what the piece would add now."""
        fences = 0 if self.chosen[piece.section] else self.fences.get(piece.section, 0)
        if piece.section in MEMORY_SECTIONS and not any(self.chosen[section] for section in MEMORY_SECTIONS):
            fences += self.fences.get(MEMORY, 0)
        return piece.tokens + fences

    def is_settled(self, section: str) -> bool:
        """Whether the section is what any question would have made it."""
        return self.settled.get(section) == len(self.chosen[section])

    def redundant(self, piece: Piece) -> bool:
        """Whether the recent turns say it already."""
        if piece.section == "summaries":
            return piece.first_seq >= self.oldest
        return piece.section == "hits" and piece.id in self.shown

    def why_not(self, piece: Piece) -> Reason:
        """Give the reason for which a piece that is not chosen is not."""
        return Reason.SHOWN if self.redundant(piece) else Reason.OVER_BUDGET

    def drop(self) -> None:
        """Take the least needed piece out again: what came last, of the section that can best spare it."""
        section = next(name for name in ("hits", "facts", "summaries", "recent") if self.chosen[name])
        dropped = self.chosen[section].pop()
        self._recount()
        if section == "recent":
            self.shown -= dropped.shows
            self.oldest = min((piece.first_seq for piece in self.chosen[section]), default=math.inf)

    def drop_redundant(self) -> bool:
        """Take out what turns that came in later say; True where there was something."""
        before = self.tokens
        for section in ("hits", "summaries"):
            self.chosen[section] = [piece for piece in self.chosen[section] if not self.redundant(piece)]
        self._recount()
        return self.tokens < before

    def _recount(self) -> None:
        filled = {section for section, pieces in self.chosen.items() if pieces}
        fences = filled | ({MEMORY} if filled & set(MEMORY_SECTIONS) else set())
        self.tokens = sum(piece.tokens for pieces in self.chosen.values() for piece in pieces)
        self.tokens += sum(self.fences.get(name, 0) for name in fences)


def pack(
    offers: Mapping[str, Sequence[Piece]],
    fences: Mapping[str, int],
    room: int,
    base: int,
    shares: Mapping[str, float] = SHARES,
) -> Packing:
    """Choose pieces that are expected to take at most `room` tokens.

    Each section takes its pieces in their order, first within its share of `base` tokens (the budget without the
    question), then from what others have left. Recent turns are taken without gaps.
    """
    packing = Packing(fences)
    for section in (*STABLE, *(one for one in shares if one not in STABLE)):
        share, left = int(base * shares[section]), room - packing.tokens
        if section == "hits" and offers.get(section):
            share = max(share, packing.cost(offers[section][0]))  # the best hit is worth more than its share
        _take(packing, offers.get(section, ()), min(share, left))
        if share <= left:
            packing.settled[section] = len(packing.chosen[section])
    for section in shares:
        _take(packing, offers.get(section, ()), room - packing.tokens)
    if packing.drop_redundant():
        for section in shares:
            _take(packing, offers.get(section, ()), room - packing.tokens)
        packing.drop_redundant()
    return packing


def _take(packing: Packing, offers: Sequence[Piece], room: int) -> None:
    """Take pieces while they fit."""
    known = {id(piece) for pieces in packing.chosen.values() for piece in pieces}
    most = packing.tokens + room
    for piece in offers:
        if id(piece) in known or packing.redundant(piece):
            continue
        if packing.tokens + packing.cost(piece) <= most:
            packing.add(piece)
        elif piece.section == "recent":
            break
