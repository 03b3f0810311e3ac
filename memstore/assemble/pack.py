"""Packing: which pieces go in. Pure arithmetic over tokens; what is packed here is counted again as a whole."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

# The share of the room that a section may count on. What one leaves others may use, in this order.
SHARES: Mapping[str, float] = {"hits": 0.35, "recent": 0.35, "facts": 0.15, "summaries": 0.15}
# These follow from what is stored and not from the question, as far as their share goes; they are packed first.
STABLE = ("recent", "summaries")
SHOWN = "among the recent turns"
OVER = "over budget"


@dataclass(frozen=True, slots=True)
class Piece:
    """Something that may go into a section; `tokens` is what it is expected to add.

    A turn `shows` messages; a summary begins at `first_seq`, as a turn does.
    """

    section: str
    kind: str
    id: UUID | None
    tokens: int
    content: Any
    score: float | None = None
    shows: frozenset[UUID] = frozenset()
    first_seq: int | None = None


@dataclass(slots=True)
class Packing:
    """The pieces chosen, by section and in the order of choice; `extended` sections got more than their share."""

    chosen: dict[str, list[Piece]] = field(default_factory=lambda: {section: [] for section in SHARES})
    extended: set[str] = field(default_factory=set)

    @property
    def tokens(self) -> int:
        """What the chosen pieces are expected to take."""
        return sum(piece.tokens for pieces in self.chosen.values() for piece in pieces)

    def redundant(self, piece: Piece) -> bool:
        """Whether the recent turns say it already."""
        turns = self.chosen["recent"]
        if piece.section == "summaries":
            return any(turn.first_seq is not None and piece.first_seq >= turn.first_seq for turn in turns)  # type: ignore[operator]
        return any(piece.id in turn.shows for turn in turns) if piece.section == "hits" else False

    def why_not(self, piece: Piece) -> str:
        """Give the reason for which a piece that is not chosen is not."""
        return SHOWN if self.redundant(piece) else OVER

    def drop(self) -> None:
        """Take the least needed piece out again: what came last, of the section that can best spare it."""
        section = next(name for name in ("hits", "facts", "summaries", "recent") if self.chosen[name])
        self.chosen[section].pop()


def pack(offers: Mapping[str, Sequence[Piece]], room: int, base: int) -> Packing:
    """Choose pieces that are expected to take at most `room` tokens.

    Each section takes its pieces in their order, first within its share of `base` tokens (the budget without the
    question), then from what others have left. Recent turns are taken without gaps.
    """
    packing = Packing()
    for section in (*STABLE, *(one for one in SHARES if one not in STABLE)):
        _take(packing, offers.get(section, ()), min(int(base * SHARES[section]), room - packing.tokens))
    for section in SHARES:
        if _take(packing, offers.get(section, ()), room - packing.tokens):
            packing.extended.add(section)
    for section in ("hits", "summaries"):  # turns may have come in that say the same
        packing.chosen[section] = [piece for piece in packing.chosen[section] if not packing.redundant(piece)]
    return packing


def _take(packing: Packing, offers: Sequence[Piece], room: int) -> bool:
    """Take pieces while they fit; True where there was one."""
    if not offers:
        return False
    chosen = packing.chosen[offers[0].section]
    known = {id(piece) for piece in chosen}
    for piece in offers:
        if id(piece) in known or packing.redundant(piece):
            continue
        if piece.tokens <= room:
            chosen.append(piece)
            room -= piece.tokens
        elif piece.section == "recent":
            break
    return len(chosen) > len(known)
