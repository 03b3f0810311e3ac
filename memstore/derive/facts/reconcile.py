"""Decides what a new fact does to known ones, by texts, slots and times, without a store or a clock.

| decision | when | what becomes of the others |
|---|---|---|
| same | the same words, or near ones of the same content; a retracted fact stays so | one: it gains the source |
| supersedes | a later value of a slot that holds one; "no longer" | they end |
| outdated | a known value of the slot is later | they stay; the new fact has ended already, and older ones end |
| conflict | it is unknown which holds | they stay, and so does the new one |
| waits | it would end what protects somebody or what a person has set, and may not | they stay; a person decides |
| new | none of these | none |

The decision does not depend on the order of the known facts; and of facts of one slot with different times, the same
ones are active in the end, whichever comes first. For that, a known fact counts by when it was last said.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Literal

from memstore.derive.facts.denials import denies
from memstore.derive.facts.drafts import ExtractedFact, Successor
from memstore.derive.facts.entities import (
    PARTED,
    ends_relationship,
    has_name,
    is_another_pet,
    is_same_entity,
    same_subjects,
)
from memstore.derive.facts.normalization import (
    NOT,
    adds_nothing,
    content_words,
    is_denied,
    is_protection,
    takes_away_protection,
)
from memstore.derive.rules.slots import COUNTRY, FORMER, PLACES, Modality, Slot, is_country
from memstore.models import ALWAYS, HAND, FactColumns, KnownFact, kind_of

MODEL_RECIPE, READER_RECIPE = "llm-facts/", "reader/"  # how recipes begin
SAME_COSINE = 0.88  # cosine from which statements of equal content words are one: docs/reference/facts.md
CONTRARY = 0.80  # cosine from which statements that differ in a negation only speak of one thing
# "My flight is on Friday", said half a year later, is of another flight. "Moved to Friday" is always of the same one.
PLANS = ("plan/", "appointment/")
ONE_PLAN = timedelta(days=60)

Kind = Literal["new", "same", "supersedes", "outdated", "conflict", "waits"]


@dataclass(frozen=True, slots=True)
class Resolution:
    """A decision about a new fact and known ones.

    `twin` says the same. `ended` are older values, which end at `begins_at`; where there is a `successor` the new value
    ends too. `contradicted` ones stay active. Where it `waits`, nothing is done until a person confirms the new fact.
    """

    begins_at: datetime
    twin: KnownFact | None = None
    ended: tuple[KnownFact, ...] = ()
    successor: Successor | None = None
    contradicted: tuple[KnownFact, ...] = ()
    waits: bool = False

    @property
    def kind(self) -> Kind:
        """The name of the decision."""
        if self.waits:
            return "waits"
        if self.twin is not None:
            return "same"
        if self.successor is not None:
            return "outdated"
        if self.contradicted:
            return "conflict"
        return "supersedes" if self.ended else "new"


def reconcile(
    new: ExtractedFact, known: Sequence[KnownFact], said_at: datetime | None = None, *, find_twin: bool = True
) -> Resolution:
    """Decide about a new fact and known ones: those of its slot, and those near in meaning.

    `said_at` is when it was said last, where that is not only now.
    """
    decision = _decide(new, known, said_at, find_twin=find_twin)
    return replace(decision, waits=True) if _may_not_end(new, decision.ended) else decision


def _may_not_end(new: ExtractedFact, ended: Iterable[KnownFact]) -> bool:
    """Whether a model ends a fact by hand, or one that protects somebody and that no quoted sentence denies."""
    if not _is_by_model(new.fact):
        return False
    others = [one for one in ended if not _fills_alike(new, one)]
    is_set = any(one.fact.recipe == HAND or one.by_hand is not None or one.fact.importance == ALWAYS for one in others)
    return is_set or any(is_protection(one.fact) and not denies(one.fact, new.fact, new.said) for one in others)


def _decide(new: ExtractedFact, known: Sequence[KnownFact], said_at: datetime | None, *, find_twin: bool) -> Resolution:
    fact = new.fact
    begins_at = said_at or fact.occurred_at
    if fact.valid_from is not None and begins_at == fact.occurred_at:
        begins_at = fact.valid_from
    said_at = said_at or fact.occurred_at
    known = [one for one in known if one.fact.state != "erased"]
    if new.ends or new.successor:
        return _end_named(new, known, said_at, find_twin=find_twin)
    facts = [one.fact for one in known]
    subjects = same_subjects(fact, facts)
    mates = [one for one in known if is_same_entity(one.fact, fact, subjects)]
    twin = _find_twin(new, mates) if find_twin else None
    if twin is not None:
        return Resolution(begins_at, twin=twin)
    alike = [one for one in mates if _fills_alike(new, one)]
    if alike and not _is_by_model(fact):  # which says no less: the rules' sentence waits behind it
        return Resolution(begins_at, successor=Successor(begins_at, alike[0].fact.id))
    if new.slot is not None:
        # A statement about one's own daughter, by her name alone, counts as said by the subject.
        kin = bool(new.speaker) and any(one.startswith(f"{new.speaker}'s ") for one in subjects)
        rivals = [one for one in mates if _is_rival(fact, new.slot, said_at, one)]
        found = {one.fact.id for one in rivals}
        rivals += [one for one in known if one.fact.id not in found and _ends_apart(fact, said_at, one, facts)]
        is_own = new.said_by_subject or kin
        decision = _decide_slot(new, new.slot, rivals, said_at, begins_at, is_own)
        if decision is None and not is_own and takes_away_protection(new.slot.attribute, new.slot.value):
            return Resolution(begins_at, waits=True)  # the subject may have said otherwise, in what is read later
        if decision is not None:
            return replace(decision, ended=(*decision.ended, *alike))
    contradicted = [
        one
        for one in mates
        if one.fact.state == "active" and (new.slot is None or one.fact.attribute is None) and _contradicts(fact, one)
    ]
    is_against = not new.said_by_subject and any(is_protection(one.fact) for one in contradicted)
    return Resolution(begins_at, ended=tuple(alike), contradicted=tuple(contradicted), waits=is_against)


def _end_named(new: ExtractedFact, known: Sequence[KnownFact], said_at: datetime, *, find_twin: bool) -> Resolution:
    """Decide as if nothing were named; then also end those of `new.ends` that were said earlier, and the new one."""
    ends = [
        one
        for one in known
        if one.fact.id in new.ends
        and one.last_said < said_at
        and (one.fact.state == "active" or _holds_at(one.fact, said_at))
    ]
    others = [one for one in known if one not in ends]
    decision = _decide(replace(new, ends=(), successor=None), others, said_at, find_twin=find_twin)
    if decision.twin is not None:
        return decision
    successors = [each for each in (decision.successor, new.successor) if each is not None]
    return replace(decision, ended=(*decision.ended, *ends), successor=min(successors, default=None))


def end_of(fact: FactColumns, begins_at: datetime, said_at: datetime) -> datetime:
    """Return when a fact ends by one that begins then and was said then: not before it began, nor after it was over."""
    ends_at = max(min(begins_at, said_at), fact.valid_from or begins_at)
    return min(ends_at, fact.valid_to or ends_at)


def _holds_at(fact: FactColumns, moment: datetime) -> bool:
    """Whether a fact is active, or was superseded after a moment only."""
    ended_later = fact.state == "superseded" and fact.valid_to is not None and fact.valid_to > moment
    return fact.state == "active" or ended_later


# -- the same


def _find_twin(new: ExtractedFact, mates: Iterable[KnownFact]) -> KnownFact | None:
    words = _plain(new.fact.text)
    identical = [one for one in mates if _plain(one.fact.text) == words]
    if identical:
        return min(identical, key=lambda one: (one.fact.state != "active", one.fact.id))
    near = [one for one in mates if _is_near(new, one)]
    return min(near, key=lambda one: (one.fact.state != "active", -(one.cosine or 0.0), one.fact.id), default=None)


def _is_near(new: ExtractedFact, one: KnownFact) -> bool:
    fact, slot = one.fact, new.slot
    if fact.type != new.fact.type or one.cosine is None or one.cosine < SAME_COSINE:
        return False
    if slot is not None and fact.attribute is not None:
        same_value = slot.value.casefold() == (fact.value or "").casefold()
        if slot.attribute != fact.attribute or not same_value:
            return False
    return content_words(new.fact.text) == content_words(fact.text) or _has_same_value(new.fact, fact)


def _has_same_value(fact: FactColumns, other: FactColumns) -> bool:
    """Whether two facts by models give one attribute the same value, in other words."""
    if not (_is_by_model(fact) and _is_by_model(other)) or fact.value is None or fact.attribute != other.attribute:
        return False
    numbers = (sorted(_NUMBER.findall(text)) for text in (fact.text, other.text))
    same = fact.value.casefold() == (other.value or "").casefold() and is_denied(fact.text) == is_denied(other.text)
    return same and next(numbers) == next(numbers)


def _fills_alike(new: ExtractedFact, one: KnownFact) -> bool:
    """Whether one of the two is by a model, and the other by rules, and both fill a slot with the same value."""
    fact, slot = one.fact, new.slot
    if slot is None or fact.state != "active" or fact.attribute != slot.attribute or one.by_hand is not None:
        return False
    by_both = _is_by_model(fact) != _is_by_model(new.fact) and HAND not in (fact.recipe, new.fact.recipe)
    return by_both and slot.value.casefold() == (fact.value or "").casefold()


def _is_by_model(fact: FactColumns) -> bool:
    return fact.recipe.startswith(MODEL_RECIPE)


def says_no_more(new: ExtractedFact, one: KnownFact) -> bool:
    """Whether a known fact says what the new one does, and nothing beyond it."""
    fact, slot = one.fact, new.slot
    if not adds_nothing(new.fact.text, fact.text, subject=new.fact.subject):
        return False
    if slot is None or fact.value is None or slot.attribute != fact.attribute:
        # People may enter one thing twice in other words: both stay.
        return fact.recipe != HAND and reconcile(new, [one]).twin is not None
    if slot.attribute.startswith(PLANS) and abs(new.fact.occurred_at - one.last_said) > ONE_PLAN:
        return False
    return slot.value.casefold() == fact.value.casefold()


# -- of one slot


def related_attributes(slot: Slot | None) -> list[str]:
    """Return the attributes related to a slot: a residence also to the country, and to the former residence."""
    if slot is None:
        return []
    plain = slot.attribute.removeprefix(FORMER).removesuffix(COUNTRY)
    countries = [plain + COUNTRY, plain] if plain in PLACES else []
    ended = [FORMER + slot.attribute, slot.attribute.removeprefix(FORMER)]
    implied = [
        later if earlier == slot.attribute else earlier
        for earlier, later in _IMPLICATIONS
        if slot.attribute in (earlier, later)
    ]
    doses = [plain.replace("medication/", "dose/", 1)] if plain.startswith("medication/") else []
    return [slot.attribute, *ended, plain, *countries, *doses, *implied]


def _decide_slot(
    new: ExtractedFact,
    slot: Slot,
    rivals: Sequence[KnownFact],
    said_at: datetime,
    begins_at: datetime,
    said_by_subject: bool,
) -> Resolution | None:
    """Decide by other values of the slot, and by facts of other subjects that end it or that it ends."""
    active = [one for one in rivals if one.fact.state == "active"]
    of_theirs = bool(new.speaker) and all(f"{one.fact.subject}'s ".startswith(f"{new.speaker}'s ") for one in active)
    if active and not (said_by_subject or of_theirs):
        is_against = any(is_protection(one.fact) for one in active)
        return Resolution(begins_at, contradicted=tuple(active), waits=is_against)
    later = [one for one in rivals if one.last_said > said_at]
    if not any(one.fact.state == "active" for one in later):
        if slot.modality is Modality.HOLDS and (equal := [one for one in active if one.last_said == said_at]):
            return Resolution(begins_at, contradicted=tuple(equal))
        # A value that comes in after its time is outdated even where the later one has ended meanwhile.
        if not later or not said_by_subject or (active and slot.modality is not Modality.HOLDS):
            return Resolution(begins_at, ended=tuple(active)) if active else None
    successor = min(Successor(_holds_since(one, said_at), one.fact.id) for one in later)
    earlier = [one for one in rivals if one.last_said < said_at]
    ended = [
        one for one in earlier if one.fact.state == "active" or (one.fact.valid_to and one.fact.valid_to > begins_at)
    ]
    return Resolution(begins_at, ended=tuple(ended), successor=successor)


def _holds_since(one: KnownFact, moment: datetime) -> datetime:
    """Return since when a fact holds that was last said after this moment."""
    begin = one.fact.valid_from or one.fact.occurred_at
    return begin if begin > moment else one.last_said


def _is_rival(new: FactColumns, slot: Slot, said_at: datetime, one: KnownFact) -> bool:
    """Whether the two cannot both hold now, or could not when the known one did."""
    fact, said = one.fact, one.last_said
    if fact.attribute is None or fact.value is None:
        return False
    if fact.state != "active" and not (fact.state == "superseded" and fact.attribute == slot.attribute):
        return False
    moves = slot.modality is not Modality.HOLDS and said <= said_at  # what was planned before
    if slot.attribute.removeprefix(FORMER).startswith(PLANS) and abs(said - said_at) > ONE_PLAN and not moves:
        return False
    if slot.attribute == fact.attribute:
        return is_other_value(slot, fact.value) or _is_more_specific(slot, said_at, fact.value, said)
    if slot.attribute.endswith(COUNTRY) != fact.attribute.endswith(COUNTRY):
        return _is_elsewhere(slot, said_at, fact.attribute, fact.value, said)
    if slot.attribute == FORMER + fact.attribute:
        if slot.attribute.startswith(f"{FORMER}pet/") and is_another_pet(fact.attribute, new.text, fact.text):
            return False
        # "I quit my job" ends every job before it, and says nothing of the next one.
        return said <= said_at if not slot.value else is_same_value(slot.value, fact.value)
    if fact.attribute == FORMER + slot.attribute:
        return said > said_at if not fact.value else is_same_value(slot.value, fact.value)
    return implies_end(fact, new) if said > said_at else implies_end(new, fact)


def _is_elsewhere(slot: Slot, said_at: datetime, attribute: str, value: str, said: datetime) -> bool:
    """Whether a country and a town exclude each other: a town that is said later may lie elsewhere, a country may not.

    "Berlin" and then "Germany" are one place, said less precisely; "Germany" and then "Porto" may be a move.
    """
    mine, other = slot.attribute.removesuffix(COUNTRY), attribute.removesuffix(COUNTRY)
    if mine != other:  # "I no longer live in Germany"
        return mine.removeprefix(FORMER) == other.removeprefix(FORMER) and slot.value == value
    if is_country(slot.value) and is_country(value):  # "I moved to Spain"
        return slot.value != value
    return said > said_at if slot.attribute.endswith(COUNTRY) else said_at > said


def _is_more_specific(slot: Slot, said_at: datetime, value: str, said: datetime) -> bool:
    """Whether the later of two jobs is the earlier one, said more precisely: "paediatric nurse" after "nurse"."""
    if slot.attribute != "job" or slot.many or said_at == said:
        return False
    earlier, later = (slot.value, value) if said_at < said else (value, slot.value)
    return set(earlier.casefold().split()) < set(later.casefold().split())


def is_other_value(slot: Slot, value: str) -> bool:
    """Whether this is another value of the slot than its own, so that one of the two no longer holds."""
    if slot.attribute.startswith(FORMER):
        return False
    if slot.many:
        return {slot.value.casefold(), value.casefold()} == {"yes", "no"}
    return not is_same_value(slot.value, value)


def is_same_value(value: str, other: str) -> bool:
    """Whether two values may be one, said more and less precisely: "porto" and "porto portugal"."""
    words, others = set(value.casefold().split()), set(other.casefold().split())
    return words <= others or others <= words


def _ends_apart(new: FactColumns, said_at: datetime, one: KnownFact, known: Sequence[FactColumns]) -> bool:
    """Whether the later of the two ends the earlier, which is of another subject."""
    later, earlier = (one.fact, new) if one.last_said > said_at else (new, one.fact)
    return one.fact.state == "active" and ends_relationship(later, earlier, known)


# -- slots whose values end with those of others: who is divorced is no longer anybody's wife

_MARRIED = re.compile(r"\b(?:husband|wife|spouse|married|verheiratet|ehemann|ehefrau)\b", re.IGNORECASE)
_DIVORCE = re.compile(r"\b(?:divorc\w+|scheid\w+|geschieden)\b", re.IGNORECASE)
_DAY = re.compile(r"^the | (?:at|um|à|a las)? ?\d{1,2}[:.]\d\d.*$", re.IGNORECASE)  # all but the day of an appointment


def implies_end(later: FactColumns, earlier: FactColumns) -> bool:
    """Whether a later statement ends an earlier value of another slot."""
    if later.attribute == "appointment/any" and (earlier.attribute or "").startswith("appointment/"):
        return has_name(f"from {_DAY.sub('', earlier.value or '')}", later.text)  # "it is moved from 21 May"
    if earlier.attribute == (later.attribute or "").replace("medication/", "dose/", 1) != later.attribute:
        return later.value == "no"
    implied = _IMPLICATIONS.get((earlier.attribute or "", later.attribute or ""))
    return implied is not None and implied(later, earlier)


def _is_left(later: FactColumns, teaching: FactColumns) -> bool:
    return bool(later.value) and is_same_value(later.value or "", teaching.value or "")


def _is_divorced(later: FactColumns, partner: FactColumns) -> bool:
    """Whether it is a divorce; who is divorced may love somebody else by now."""
    return later.value in PARTED and (has_name(partner.value, later.text) or bool(_MARRIED.search(partner.text)))


def _is_broken_up(later: FactColumns, state: FactColumns) -> bool:
    """Of "my fiancé left me" an engagement is over; of "Leo and I broke up" that to Leo alone."""
    engaged = state.value in ("engaged", "verlobt")
    divorced = state.value in ("married", "verheiratet") and bool(_DIVORCE.search(later.text))
    if not later.value:
        return engaged
    return divorced or (engaged and has_name(later.value, state.text))


# Whether a value of the second attribute, said later, ends one of the first.
_IMPLICATIONS: Mapping[tuple[str, str], Callable[[FactColumns, FactColumns], bool]] = {
    ("plan/wedding", f"{FORMER}marital_status"): lambda later, wedding: later.value == "engaged",
    ("employer/teaching", f"{FORMER}employer"): _is_left,
    ("partner", "marital_status"): _is_divorced,
    ("marital_status", f"{FORMER}partner"): _is_broken_up,
}


# -- without a slot


def _contradicts(fact: FactColumns, one: KnownFact) -> bool:
    """Whether two lasting statements differ in a negation or in a number, and in nothing else.

    Two events, or two plans, that do so are mostly two events, and both happened.
    """
    if one.fact.type != fact.type or kind_of(fact.type) == "episodic":
        return False
    if one.cosine is not None and one.cosine >= CONTRARY:
        words, others = content_words(fact.text), content_words(one.fact.text)
        if words != others and _without_denial(words) == _without_denial(others):
            return True
    text, other = _plain(fact.text), _plain(one.fact.text)
    return text != other and _NUMBER.sub("0", text) == _NUMBER.sub("0", other)


def _without_denial(words: tuple[str, ...]) -> tuple[str, ...]:
    return words[:-1] if words[-1:] == (NOT,) else words


_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")


def _plain(text: str) -> str:
    return " ".join(text.casefold().split()).rstrip(".!\"'” ")
