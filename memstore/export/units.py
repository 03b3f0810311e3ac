"""Units of recall beside their items: what of them must be said, and what follows from the item. Pure."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from memstore.derive.chunks import speaker_prefixed
from memstore.errors import InvalidInput
from memstore.export.shapes import UnitShape
from memstore.models import Json, Message, Summary, Tier, Unit
from memstore.providers import Vectors
from memstore.store.archived import Row, UnitKept

UNIT_LENGTH = 1e-3  # how far from it a vector may be
TOLD = ("conversation_id", "seq", "role", "speaker", "occurred_at")  # where they are not as the item has them


def expected(row: Row, chunk: int, start: int, stop: int) -> Unit:
    """Give the unit that an item has there, as far as that follows from the item."""
    if isinstance(row, Message):
        speaker = row.name or row.role
        place = row.conversation_id, row.seq, row.role, speaker
        return Unit(row.id, chunk, Tier.MESSAGES, *place, start, stop, row.occurred_at)
    if isinstance(row, Summary):
        until = row.occurred_until
        return Unit(row.id, chunk, Tier.SUMMARIES, row.conversation_id, row.to_seq, None, None, start, stop, until)
    return Unit(row.id, chunk, Tier.FACTS, None, None, None, row.subject, start, stop, row.occurred_at)


def as_json(row: Row, units: Sequence[UnitKept]) -> list[Json]:
    """Give an item's units as a line has them."""
    return [_told(row, kept) for kept in units]


def _told(row: Row, kept: UnitKept) -> Json:
    unit = kept.unit
    usual = expected(row, unit.chunk, unit.start, unit.stop)
    line: Json = {"start": unit.start, "stop": unit.stop, "recorded_at": kept.recorded_at}
    line |= {name: getattr(unit, name) for name in TOLD if getattr(unit, name) != getattr(usual, name)}
    return line if kept.vector is None else line | {"vector": _told_vector(kept.vector)}


def named_vector(path: str, model_id: str, sent: str, text: str | None) -> Json:
    """Give the vector of a document's text as a line has it; it was sent as text."""
    vector = np.array(sent.strip("[]").split(","), np.float32)
    return {"path": path, "model_id": model_id, "vector": _told_vector(vector), "text": text}


def read_vector(told: str, where: str) -> Vectors:
    """Give the vector that a line tells; InvalidInput for what is none."""
    try:
        vector = np.frombuffer(b64decode(told, validate=True), "<f4").astype(np.float32)
    except ValueError:
        raise InvalidInput(f"the vector of {where} is not base64 of float32") from None
    if not len(vector) or not np.isfinite(vector).all():
        raise InvalidInput(f"the vector of {where} has no components, or some that are not finite")
    return vector


def _told_vector(vector: Vectors) -> str:
    return b64encode(vector.astype("<f4").tobytes()).decode()


def kept(row: Row, units: Sequence[UnitShape], dimensions: int | None) -> list[UnitKept]:
    """Give an item's units; InvalidInput for what lies outside of its text, or is no vector of so many components."""
    length = len(row.text or "")
    found = []
    for chunk, line in enumerate(units):
        if not line.start <= line.stop <= length:
            raise InvalidInput(f"its unit {chunk} is {line.start} to {line.stop}, and its text has {length} characters")
        own: dict[str, Any] = {name: getattr(line, name) for name in TOLD if name in line.model_fields_set}
        unit = replace(expected(row, chunk, line.start, line.stop), **own)
        found.append(UnitKept(unit, line.recorded_at, _vector(line.vector, dimensions, chunk)))
    return found


def _vector(told: str | None, dimensions: int | None, chunk: int) -> Vectors | None:
    if told is None or dimensions is None:
        return None
    try:
        vector = np.frombuffer(b64decode(told, validate=True), "<f4").astype(np.float32)
    except ValueError:
        raise InvalidInput(f"the vector of its unit {chunk} is not base64 of float32") from None
    # A longer one would be found for whatever is asked; of what is not finite nothing would come out right.
    if len(vector) != dimensions or not abs(np.linalg.norm(vector) - 1) < UNIT_LENGTH:
        raise InvalidInput(f"the vector of its unit {chunk} is not {dimensions} components of length 1")
    return vector


def text_of(row: Row, unit: Unit) -> str:
    """Give the text by which a unit is found."""
    text = (row.text or "")[unit.start : unit.stop]
    return speaker_prefixed(unit.speaker or "", text) if isinstance(row, Message) else text
