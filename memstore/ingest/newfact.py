"""A fact as somebody enters it by hand, checked before anything is stored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from memstore.errors import InvalidInput
from memstore.ingest.check import check_name, check_text
from memstore.models import FACT_KINDS, FACT_TYPES, Fact

EDITED = ("type", "kind", "attribute", "value", "language", "confidence", "valid_from", "valid_to")
LONGEST = 2000  # characters: a fact is a sentence, and is recalled whole


@dataclass(frozen=True, slots=True)
class NewFact:
    """A fact as somebody enters it; `sources` are ids of messages that say it."""

    text: str
    type: str
    subject: str = "The user"
    kind: str | None = None
    attribute: str | None = None
    value: str | None = None
    language: str = "und"
    confidence: float = 1.0
    valid_from: datetime | None = None
    valid_to: datetime | None = None
    sources: Sequence[UUID] = ()


EDITABLE = tuple(one.name for one in fields(NewFact) if one.name != "sources")


def edited(fact: Fact, new: Mapping[str, Any]) -> NewFact:
    """Give a fact with some of its columns new; the kind follows the type where that is new."""
    kept = {name: getattr(fact, name) for name in EDITABLE}
    if "type" in new:
        kept["kind"] = None
    return replace(NewFact(**kept), **new)


def check_fact(new: NewFact) -> None:
    """Raise `InvalidInput` for a fact that cannot be stored as it was entered."""
    check_name(new.text, "fact")
    check_name(new.subject, "subject")
    for name in ("attribute", "value"):
        if getattr(new, name) is not None:
            check_name(getattr(new, name), name)
    check_text(new.language, "the language")
    one_of("type", new.type, FACT_TYPES)
    one_of("kind", new.kind, FACT_KINDS)
    if len(new.text) > LONGEST:
        raise InvalidInput(
            f"A fact has at most {LONGEST:,} characters, not {len(new.text):,}: a sentence that stands alone."
        )
    if not isinstance(new.confidence, int | float) or not 0 <= new.confidence <= 1:
        raise InvalidInput(f"confidence={new.confidence!r}: give a number from 0 to 1.")


def one_of(name: str, value: str | None, known: Sequence[str]) -> None:
    """Raise `InvalidInput` for what is none of the known words; None is."""
    if value is not None and value not in known:
        raise InvalidInput(f"{name}={value!r}: give one of {', '.join(known)}.")
