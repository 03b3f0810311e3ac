"""Which slot a fact fills that comes as a sentence of its own: entered by hand, or found by a chat model. Pure."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from memstore.derive.facts.wording import NOT, content
from memstore.derive.rules.engine import extract_slots
from memstore.derive.rules.pack import LANGUAGES, language_of
from memstore.derive.rules.slots import FORMER, Modality, Slot, holds_many
from memstore.derive.rules.utterances import Utterance
from memstore.models import FactColumns, Role

STAND_IN = "Xanthia"  # for the subject: the rules know a name by its capital, and "the user" by nothing
ANY_TIME = datetime(2000, 1, 1, tzinfo=UTC)  # no slot depends on it
_JOINED = re.compile(r"\b(?:and|but|und|aber|et|mais|y|pero)\b", re.IGNORECASE)


def slot_in(text: str, subject: str, language: str) -> Slot | None:
    """Give the slot of its subject that a sentence fills by the rules; None for none, for several, for others' ones.

    Where one value of several, or of two joined statements, were superseded, the rest of the sentence would go with it.
    """
    spoken = language if language in LANGUAGES else language_of(text)
    told = _as_said(text, subject)
    said = Utterance(told, Role.USER, subject, ANY_TIME)
    found = extract_slots(said, spoken if spoken in LANGUAGES else "en")
    if len(found) != 1 or (not found[0].slot.many and _JOINED.search(told)):
        return None
    return found[0].slot if found[0].subject.casefold() in (STAND_IN.casefold(), subject.casefold()) else None


def slot_of_fact(fact: FactColumns) -> Slot | None:
    """Give the slot of a fact as it is stored: how its value holds is read from its text, else known of its attribute.

    None where it has none, and where it has ended, which says nothing of what holds.
    """
    if fact.attribute is None or fact.value is None:
        return None
    read = slot_in(fact.text, fact.subject, fact.language)
    if read is not None and read.attribute == fact.attribute:
        return Slot(fact.attribute, fact.value, read.many, read.manner)
    manner = Modality.ENDED if fact.attribute.startswith(FORMER) else Modality.HOLDS
    return Slot(fact.attribute, fact.value, holds_many(fact.attribute), manner)


def named_slot(attribute: str | None, value: str | None, text: str, *, single: bool) -> Slot | None:
    """Give the slot that a chat model names; None where it denies something: "no longer in Leeds" is no residence."""
    if not attribute or not value or content(text)[-1:] == (NOT,):
        return None
    return Slot(attribute.casefold(), value, not single, Modality.HOLDS)


def _as_said(text: str, subject: str) -> str:
    """Give a sentence as the rules read it: of somebody with a name, or in the speaker's own words."""
    if text[: len(subject)].casefold() != subject.casefold():
        return text
    rest = text[len(subject) :]
    if rest.startswith(': "') and rest.endswith('"'):
        return rest[3:-1]
    if rest.startswith(("'s ", "’s ")):
        return f"My{rest[2:]}"
    return STAND_IN + rest if rest[:1] == " " else text
