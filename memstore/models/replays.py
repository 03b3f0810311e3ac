"""A context made again from its receipt, or what of it is not to be had any more."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID

from memstore.models.decisions import as_json
from memstore.models.receipts import Receipt
from memstore.models.rows import Json


class Gone(StrEnum):
    """Why a context cannot be made again to the byte."""

    ERASED = "erased"
    REMADE = "made anew by another derivation"
    GONE = "erased, or made anew by another derivation"
    TEXTS = "the texts of the receipt are gone"
    RENDERER = "rendered by another version, or in a format that is not known here"


@dataclass(frozen=True, slots=True)
class Missing:
    """What a replay could not give: a decision's item and why."""

    section: str
    kind: str
    id: UUID | None
    why: Gone


@dataclass(frozen=True, slots=True)
class Replay:
    """A context made again from its receipt. `exact`: the bytes are those that were sent, by their hash.

    Else `missing` says what was not to be had; the messages are those made of what is left.
    """

    receipt: Receipt
    messages: list[Json]
    missing: tuple[Missing, ...] = ()
    exact: bool = False
    system: str | None = None
    text: str | None = None

    def as_dict(self) -> Json:
        """Give the replay as JSON has it."""
        missing = [as_json(one) for one in self.missing]
        id = None if self.receipt.id is None else str(self.receipt.id)
        apart = {"system": self.system, "text": self.text}
        told = {key: value for key, value in apart.items() if value is not None}
        return {"receipt": id, "exact": self.exact, "missing": missing, "messages": self.messages} | told
