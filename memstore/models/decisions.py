"""The parts of a receipt: what became of each candidate, what strategies did, what was sent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from functools import cache
from typing import Any
from uuid import UUID

from pydantic import TypeAdapter

from memstore.models.rows import Json


class Reason(StrEnum):
    """Why a candidate is not in a context, or not as it was said. A closed set: programs may rely on it."""

    OVER_BUDGET = "over budget"
    BELOW_SCORE = "below score"
    DUPLICATE = "duplicate"
    SHOWN = "shown among the recent turns"
    COVERED = "covered by a summary"
    COMPRESSED = "compressed by a strategy"
    CUT = "cut"
    SUPERSEDED = "superseded"
    FILTERED = "filtered"
    NOT_VISIBLE = "not visible"
    UNPAIRED = "unpaired tool call"


@dataclass(frozen=True, slots=True)
class Decision:
    """What became of one candidate for a context: in, or left out, and the reason.

    What is in has a reason only where it is not as it was said: cut, or compressed. `tokens` are what it was expected
    to add, `parts` what each signal adds to its score. `seqs` are the first and the last message that it is or stands
    for, `others` the ids of a turn's further messages, or of the fact that took the place of a superseded one; `start`
    where in the item the shown text begins, `length` how many characters of it are shown, `said_at` when a fact was
    said, `valid_to` when it ends; `pinned` is in whatever is asked. `says` is how it begins: for people, and kept
    nowhere.
    """

    section: str
    kind: str
    id: UUID | None
    tokens: int
    reason: Reason | None = None
    score: float | None = None
    parts: Mapping[str, float] = field(default_factory=dict)
    note: str = ""
    seqs: tuple[int, int] | None = None
    others: tuple[UUID, ...] = ()
    start: int = 0
    length: int | None = None
    said_at: datetime | None = None
    valid_to: datetime | None = None
    pinned: bool = False
    says: str = field(default="", compare=False)

    def as_dict(self) -> Json:
        """Give the decision as JSON has it; what is nothing is left out, but for id, reason and score."""
        always = {"id": None, "reason": None, "score": None}
        return always | as_json(self, exclude={"says"})


@dataclass(frozen=True, slots=True)
class Compression:
    """What one strategy did to a conversation: about its tokens before and after, and how many turns it took."""

    strategy: str
    before: int
    after: int
    turns: int

    @property
    def saved(self) -> int:
        """The tokens that the conversation is shorter by."""
        return self.before - self.after

    def as_dict(self) -> Json:
        """Give it as JSON has it."""
        counts = {"tokens_before": self.before, "tokens_after": self.after, "saved": self.saved, "turns": self.turns}
        return {"strategy": self.strategy} | counts


@dataclass(frozen=True, slots=True)
class Sent:
    """A finished message: its tokens, and a digest of all messages from the first to this one, 16 hex digits.

    So the first messages of two contexts are the same where their digests are, and no digest but the first is of one
    message alone.
    """

    digest: str
    tokens: int


def as_json(value: Any, **options: Any) -> Json:
    """Give a dataclass as JSON has it, without what is as by default; `options` are pydantic's."""
    kind: Any = type(value)  # mypy takes no type of Any for hashable
    found: Json = adapter(kind).dump_python(value, mode="json", exclude_defaults=True, **options)
    return found


@cache
def adapter(kind: type[Any]) -> TypeAdapter[Any]:
    """Give what reads and writes a dataclass as JSON, made when it is first needed."""
    return TypeAdapter(kind)
