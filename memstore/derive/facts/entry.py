"""A fact as somebody enters it by hand, checked before anything is stored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from memstore.derive.facts.filled import slot_in
from memstore.derive.facts.wording import NOT, content
from memstore.errors import InvalidInput
from memstore.ingest.check import check_name, check_text, one_of
from memstore.ingest.redaction import Redactor
from memstore.models import FACT_KINDS, FACT_TYPES, Fact

LONGEST = 2000  # characters: a fact is a sentence, and is recalled whole
# Subject and attribute stand in one row of an index, which holds 2,704 bytes.
LONGEST_PARTS = {"subject": 300, "attribute": 300, "value": LONGEST, "language": 35}


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
EDITED = tuple(name for name in EDITABLE if name not in ("text", "subject"))  # where the words stay


def with_slot(new: NewFact) -> NewFact:
    """Give a fact with the slot that its words fill, where nobody has named one."""
    named = new.attribute is not None or new.value is not None
    slot = None if named else slot_in(new.text, new.subject, new.language)
    return new if slot is None else replace(new, attribute=slot.attribute, value=slot.value)


def redact_fact(new: NewFact, redactor: Redactor) -> NewFact:
    """Return a fact with its secrets marked: those of its text also where they stand alone as its value.

    The attribute alone may tell that the value is one, as "password" does.
    """
    value = new.value
    for secret in redactor.find(new.text):
        value = value and value.replace(new.text[secret.start : secret.stop], secret.mark)
    if value is not None:
        (value,) = redactor.redact_json({(new.attribute or "").replace(" ", "_"): value}).values()
    names = ("text", "subject", "attribute", "language")
    return replace(new, value=value, **{name: redactor.redact(getattr(new, name)) for name in names})


def edited(fact: Fact, new: Mapping[str, Any]) -> NewFact:
    """Give a fact with some of its columns new.

    The kind follows the type where that is new, and the slot the text: what its words no longer say is dropped.
    """
    kept = {name: getattr(fact, name) for name in EDITABLE}
    if "type" in new:
        kept["kind"] = None
    text = new.get("text")
    if isinstance(text, str) and not {"attribute", "value"} & new.keys():
        slot = slot_in(text, new.get("subject", fact.subject), fact.language)
        if slot is not None or not _still_fills(fact, text):
            kept |= {"attribute": slot and slot.attribute, "value": slot and slot.value}
    return replace(NewFact(**kept), **new)


def _still_fills(fact: Fact, text: str) -> bool:
    """Whether other words of a fact still name the value of its slot, and neither deny it newly nor no longer."""
    denied = {content(words)[-1:] == (NOT,) for words in (fact.text, text)}
    return fact.value is not None and fact.value.casefold() in text.casefold() and len(denied) == 1


def still_said(was: str, now: str, subject: str, said: str) -> bool:
    """Whether what was said says a fact in other words too: all that is new in them must stand there."""
    before, after = set(content(was)), set(content(now))
    return (NOT in before) == (NOT in after) and after - before - set(content(subject)) <= set(content(said))


def check_fact(new: NewFact) -> None:
    """Raise `InvalidInput` for a fact that cannot be stored as it was entered."""
    check_text(new.text, "the text of a fact")
    if not new.text.strip():
        raise InvalidInput(f"text={new.text!r:.60} says nothing; give a sentence that stands for itself.")
    check_name(new.subject, "subject")
    for name in ("attribute", "value"):
        if getattr(new, name) is not None:
            check_name(getattr(new, name), name)
    check_text(new.language, "the language")
    for name, longest in LONGEST_PARTS.items():
        given = getattr(new, name)
        if given is not None and len(given) > longest:
            raise InvalidInput(f"A fact's {name} has at most {longest:,} characters, not {len(given):,}.")
    if new.type is None:
        raise InvalidInput(f"type=None: give one of {', '.join(FACT_TYPES)}.")
    one_of("type", new.type, FACT_TYPES)
    one_of("kind", new.kind, FACT_KINDS)
    if len(new.text) > LONGEST:
        raise InvalidInput(
            f"A fact has at most {LONGEST:,} characters, not {len(new.text):,}: a sentence that stands alone."
        )
    if not isinstance(new.confidence, int | float) or not 0 <= new.confidence <= 1:
        raise InvalidInput(f"confidence={new.confidence!r}: give a number from 0 to 1.")
