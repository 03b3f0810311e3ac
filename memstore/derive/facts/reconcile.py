"""What a new fact means for the known ones: arithmetic on texts, slots and times, without a store or a clock.

| verdict | when | what becomes of the others |
|---|---|---|
| same | the same words, or near ones of the same content; a retracted fact stays so | one: it gains the source |
| supersedes | a later value of a slot that holds one; "no longer" | they end |
| outdated | a known value of the slot is later | they stay; the new fact has ended already |
| conflict | it cannot be told which holds | they stay, beside the new one |
| new | none of these | none |

The verdict does not depend on the order of the known facts; and of facts of one slot with different times, the same
ones are active in the end, whichever is judged first. For that, `Known.occurred_at` is when the fact was last said.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Literal
from uuid import UUID

from memstore.derive.facts.linked import Filled, compatible, ends_too
from memstore.derive.facts.namesakes import Told, alike, is_another_pet, is_of, parts, told
from memstore.derive.facts.wording import NOT, content
from memstore.derive.rules.places import COUNTRY, is_country
from memstore.derive.rules.slots import FORMER, Modality, Slot
from memstore.models import kind_of

NEAR = 0.88  # cosine from which statements of equal content words are one: docs/reference/facts-dedupe.md
CONTRARY = 0.80  # cosine from which statements that differ in a negation only speak of one thing
# "My flight is on Friday", said half a year later, is of another flight. "Moved to Friday" is always of the same one.
PLANS = ("plan/", "appointment/")
ONE_PLAN = timedelta(days=60)
JOB = "job"

Kind = Literal["new", "same", "supersedes", "outdated", "conflict"]


@dataclass(frozen=True, slots=True)
class Incoming:
    """A fact that comes in. `said_by_subject` is also true of what speakers say of their own kin, pets and things."""

    text: str
    type: str
    subject: str
    slot: Slot | None
    occurred_at: datetime
    confidence: float
    said_by_subject: bool
    speaker: str = ""  # who says it, where that is known


@dataclass(frozen=True, slots=True)
class Known:
    """A stored fact. `occurred_at` is when it was last said; `cosine` is that with the fact that comes in, if known."""

    id: UUID
    text: str
    type: str
    subject: str
    attribute: str | None
    value: str | None
    occurred_at: datetime
    confidence: float
    state: str
    by_hand: bool
    cosine: float | None


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is to be done, and the known facts that it is done to, in the order of their ids."""

    kind: Kind
    others: tuple[UUID, ...] = ()


def reconcile(incoming: Incoming, known: Sequence[Known]) -> Verdict:
    """Judge a new fact by the known ones of its subject: those of its slot, and those that are near in meaning."""
    known = [one for one in known if one.state != "erased"]
    new = _told(incoming)
    subjects = alike(new, map(_told, known))
    if incoming.speaker and any(one.startswith(f"{incoming.speaker}'s ") for one in subjects):
        incoming = replace(incoming, said_by_subject=True)  # what one says of one's own daughter, by her name alone
    mates = [one for one in known if is_of(_told(one), new, subjects)]
    twin = _twin(incoming, mates)
    if twin is not None:
        return Verdict("same", (twin.id,))
    active = [one for one in mates if one.state == "active"]
    slot = incoming.slot
    if slot is not None:
        apart = [one for one in known if one.state == "active" and _ends_apart(incoming, one, known)]
        verdict = _of_slot(incoming, slot, active, apart)
        if verdict is None or (verdict.kind == "supersedes" and slot.manner is Modality.HOLDS):
            verdict = _of_past(incoming, slot, mates) or verdict
        if verdict is not None:
            return verdict
    others = [one for one in active if (slot is None or one.attribute is None) and _disagree(incoming, one)]
    return _verdict("conflict", others) if others else Verdict("new")


# The same. ------------------------------------------------------------------------------------------------------------
def _twin(incoming: Incoming, mates: Iterable[Known]) -> Known | None:
    words = _plain(incoming.text)
    identical = [one for one in mates if _plain(one.text) == words]
    if identical:
        return min(identical, key=lambda one: (one.state != "active", one.id))
    near = [one for one in mates if _near(incoming, one)]
    return min(near, key=lambda one: (one.state != "active", -(one.cosine or 0.0), one.id), default=None)


def _near(incoming: Incoming, one: Known) -> bool:
    if one.type != incoming.type or one.cosine is None or one.cosine < NEAR:
        return False
    slot = incoming.slot
    if slot is not None and one.attribute is not None and _filled(slot) != _filled(one):
        return False
    return content(incoming.text) == content(one.text)


def _filled(one: Slot | Known) -> tuple[str | None, str]:
    return one.attribute, (one.value or "").casefold()


# Of one slot. ---------------------------------------------------------------------------------------------------------
def _of_slot(incoming: Incoming, slot: Slot, active: Iterable[Known], apart: Iterable[Known]) -> Verdict | None:
    """Judge by the values of the slot, and by what is `apart`: facts of other subjects that end it, or that it ends."""
    rivals = list({one.id: one for one in (*(one for one in active if _rivals(incoming, slot, one)), *apart)}.values())
    if not rivals:
        return None
    later = [one for one in rivals if one.occurred_at > incoming.occurred_at]
    of_theirs = all(f"{one.subject}'s ".startswith(f"{incoming.speaker}'s ") for one in rivals)
    if not (incoming.said_by_subject or (incoming.speaker and of_theirs)):
        return _verdict("conflict", rivals)
    if later:
        return _verdict("outdated", later)
    equal = [one for one in rivals if one.occurred_at == incoming.occurred_at]
    if slot.manner is Modality.HOLDS and equal:
        return _verdict("conflict", equal)
    return _verdict("supersedes", rivals)


def _ends_apart(incoming: Incoming, one: Known, known: Sequence[Known]) -> bool:
    """Whether the later of the two ends the earlier, which is of another subject."""
    mine, other = _told(incoming), _told(one)
    later, earlier = (other, mine) if one.occurred_at > incoming.occurred_at else (mine, other)
    return parts(later, earlier, map(_told, known))


def _told(one: Incoming | Known) -> Told:
    if isinstance(one, Known):
        return Told(one.subject, one.text, one.type, one.attribute, one.value)
    return told(one.text, one.type, one.subject, one.slot)


def _of_past(incoming: Incoming, slot: Slot, mates: Iterable[Known]) -> Verdict | None:
    """Let a value be outdated by a later one, even where that has ended meanwhile: it comes in after its time."""
    later = [
        one
        for one in mates
        if one.state == "superseded"
        and one.attribute == slot.attribute
        and one.occurred_at > incoming.occurred_at
        and _rivals(incoming, slot, one)
    ]
    return _verdict("outdated", later) if later and incoming.said_by_subject else None


def _rivals(incoming: Incoming, slot: Slot, one: Known) -> bool:
    """Whether the two cannot both hold now."""
    if one.attribute is None or one.value is None:
        return False
    apart = abs(one.occurred_at - incoming.occurred_at)
    moves = slot.manner is not Modality.HOLDS and one.occurred_at <= incoming.occurred_at  # what was planned before
    if slot.attribute.removeprefix(FORMER).startswith(PLANS) and apart > ONE_PLAN and not moves:
        return False
    if slot.attribute == one.attribute:
        return other_value(slot, one.value) or narrows(slot, incoming.occurred_at, one.value, one.occurred_at)
    if slot.attribute.endswith(COUNTRY) != one.attribute.endswith(COUNTRY):
        return _abroad(incoming, slot, one.attribute, one.value, one.occurred_at)
    if slot.attribute == FORMER + one.attribute:
        if slot.attribute.startswith(f"{FORMER}pet/") and is_another_pet(one.attribute, incoming.text, one.text):
            return False
        # "I quit my job" ends every job before it, and says nothing of the next one.
        return one.occurred_at <= incoming.occurred_at if not slot.value else compatible(slot.value, one.value)
    if one.attribute == FORMER + slot.attribute:
        return one.occurred_at > incoming.occurred_at if not one.value else compatible(slot.value, one.value)
    return _ended_beside(incoming, slot, one)


def _ended_beside(incoming: Incoming, slot: Slot, one: Known) -> bool:
    """Whether the later of two values of different slots ends the earlier: a divorce the marriage."""
    assert one.attribute is not None and one.value is not None
    mine, other = Filled(slot.attribute, slot.value, incoming.text), Filled(one.attribute, one.value, one.text)
    if one.occurred_at > incoming.occurred_at:
        return ends_too(other, mine)
    return ends_too(mine, other)


def _abroad(incoming: Incoming, slot: Slot, attribute: str, value: str, said: datetime) -> bool:
    """Whether of a country and a town not both can hold: a town that is said later may lie elsewhere, a country not.

    "Berlin" and then "Germany" are one place, told less exactly; "Germany" and then "Porto" may be a move.
    """
    mine, other = slot.attribute.removesuffix(COUNTRY), attribute.removesuffix(COUNTRY)
    if mine != other:  # "I no longer live in Germany"
        return mine.removeprefix(FORMER) == other.removeprefix(FORMER) and slot.value == value
    if is_country(slot.value) and is_country(value):  # "I moved to Spain"
        return slot.value != value
    return said > incoming.occurred_at if slot.attribute.endswith(COUNTRY) else incoming.occurred_at > said


def narrows(slot: Slot, said: datetime, value: str, other_said: datetime) -> bool:
    """Whether the later of two jobs is the earlier one told more exactly: "paediatric nurse" after "nurse"."""
    if slot.attribute != JOB or slot.many or said == other_said:
        return False
    earlier, later = (slot.value, value) if said < other_said else (value, slot.value)
    return set(earlier.casefold().split()) < set(later.casefold().split())


def other_value(slot: Slot, value: str) -> bool:
    """Whether this is another value of the slot than its own, so that one of the two no longer holds."""
    if slot.attribute.startswith(FORMER):
        return False
    if slot.many:
        return {slot.value.casefold(), value.casefold()} == {"yes", "no"}
    return not compatible(slot.value, value)


# Without a slot. ------------------------------------------------------------------------------------------------------
def _disagree(incoming: Incoming, one: Known) -> bool:
    """Whether two lasting statements differ in a negation or in a number, and in nothing else.

    Two events, or two plans, that do so are mostly two events, and both happened.
    """
    if one.type != incoming.type or kind_of(incoming.type) == "episodic":
        return False
    if one.cosine is not None and one.cosine >= CONTRARY:
        mine, others = content(incoming.text), content(one.text)
        if mine != others and _affirmed(mine) == _affirmed(others):
            return True
    words, other_words = _plain(incoming.text), _plain(one.text)
    return words != other_words and _NUMBER.sub("0", words) == _NUMBER.sub("0", other_words)


def _affirmed(words: tuple[str, ...]) -> tuple[str, ...]:
    return words[:-1] if words[-1:] == (NOT,) else words


_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")


def _plain(text: str) -> str:
    return " ".join(text.casefold().split()).rstrip(".!\"'” ")


def _verdict(kind: Kind, others: Iterable[Known]) -> Verdict:
    return Verdict(kind, tuple(sorted(one.id for one in others)))
