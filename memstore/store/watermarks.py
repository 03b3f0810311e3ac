"""How far a deriver got in a conversation: what waits for it. Pure; the rows are `derivations`'."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID


@dataclass(frozen=True, slots=True)
class Pending:
    """Messages done_seq + 1 … last_seq of a conversation wait for a deriver."""

    user_id: UUID
    conversation_id: UUID
    deriver: str
    done_seq: int
    last_seq: int


@dataclass(frozen=True, slots=True)
class Outdated(Pending):
    """Messages 1 … done_seq were derived by this recipe, which is not the deriver's own; None for several."""

    recipe: str | None


@dataclass(frozen=True, slots=True)
class Behind(Pending):
    """What is pending, and whose it is: a backfill's, in a state, or nobody's. `in_line`: it is its turn.

    `timed`: the backfill has a cap in seconds.
    """

    backfill: UUID | None
    state: str | None
    timed: bool
    in_line: bool


class LostRace(Exception):
    """Another worker moved the watermark first; what was derived here is dropped."""
