"""Decides what a new fact does to known ones, by texts, slots and times, without a store or a clock.

| decision | when | what becomes of the others |
|---|---|---|
| same | the same words, or near ones of the same content; a retracted fact stays so | one: it gains the source |
| supersedes | a later value of a slot; what the reader or a model says that it ends | they end |
| outdated | a known value of the slot is later | they stay; the new fact has ended already, and older ones end |
| conflict | it is unknown which holds | they stay, and so does the new one |
| waits | it would end what protects somebody or what a person has set, and may not | they stay; a person decides |
| new | none of these | none |

The decision does not depend on the order of the known facts; and of facts of one slot with different times, the same
ones are active in the end, whichever comes first. For that, a known fact counts by when it was last said.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal

from memstore.derive.facts import normalization
from memstore.derive.facts.denials import denies
from memstore.derive.facts.drafts import FactDraft, Successor
from memstore.derive.facts.entities import is_same_entity, same_subjects
from memstore.derive.facts.normalization import NOT, content_words, is_denied, is_protection
from memstore.derive.facts.slots import Slot
from memstore.language import NUMBER, WORD
from memstore.models import ALWAYS, HAND, FactColumns, KnownFact, kind_of

MODEL_RECIPE_PREFIX = "llm-facts/"
# Of statements of equal content words: docs/reference/facts.md.
MIN_SAME_COSINE = 0.88
MIN_CONTRARY_COSINE = 0.80

Kind = Literal["new", "same", "supersedes", "outdated", "conflict", "waits"]


@dataclass(frozen=True, slots=True)
class Resolution:
    """A decision about a new fact and known ones.

    `duplicate` says the same. `ended` are older values, which end at `begins_at`; where there is a `successor` the new
    value ends too. `contradicted` ones stay active. Where it `waits`, nothing is done until a person confirms it.
    """

    begins_at: datetime
    duplicate: KnownFact | None = None
    ended: tuple[KnownFact, ...] = ()
    successor: Successor | None = None
    contradicted: tuple[KnownFact, ...] = ()
    waits: bool = False

    @property
    def kind(self) -> Kind:
        if self.waits:
            return "waits"
        if self.duplicate is not None:
            return "same"
        if self.successor is not None:
            return "outdated"
        if self.contradicted:
            return "conflict"
        return "supersedes" if self.ended else "new"


def reconcile(
    new: FactDraft, known: Sequence[KnownFact], said_at: datetime | None = None, *, find_duplicate: bool = True
) -> Resolution:
    """Decide about a new fact and known ones: those of its slot, and those near in meaning.

    `said_at` is when it was said last, where that is not only now.
    """
    decision = _decide(new, known, said_at, find_duplicate)
    return replace(decision, waits=True) if _may_not_end(new, decision.ended) else decision


def _may_not_end(new: FactDraft, ended: Iterable[KnownFact]) -> bool:
    """Whether a model ends a fact by hand, or one that protects somebody and that no quoted sentence denies."""
    if not _is_by_model(new.fact):
        return False
    known = [prior for prior in ended if not _fills_same_slot(new, prior)]
    return any(
        is_set_by_hand(prior) or (is_protection(prior.fact) and not denies(prior.fact, new.fact, new.said))
        for prior in known
    )


def is_set_by_hand(prior: KnownFact) -> bool:
    """Whether a person has entered, changed or pinned a fact."""
    return prior.by_hand is not None or prior.fact.recipe == HAND or prior.fact.importance == ALWAYS


def _decide(new: FactDraft, known: Sequence[KnownFact], said_at: datetime | None, find_duplicate: bool) -> Resolution:
    fact = new.fact
    begins_at = said_at or fact.occurred_at
    if fact.valid_from is not None and begins_at == fact.occurred_at:
        begins_at = fact.valid_from
    said_at = said_at or fact.occurred_at
    known = [prior for prior in known if prior.fact.state != "erased"]
    if new.ends or new.successor:
        return _end_named(new, known, said_at, find_duplicate)
    subjects = same_subjects(fact, [prior.fact for prior in known])
    same_entity = [prior for prior in known if is_same_entity(prior.fact, fact, subjects)]
    duplicate = _find_duplicate(new, same_entity) if find_duplicate else None
    if duplicate is not None:
        return Resolution(begins_at, duplicate=duplicate)
    same_value = [prior for prior in same_entity if _fills_same_slot(new, prior)]
    # The model's fact says no less: the reader's sentence waits behind it.
    if same_value and not _is_by_model(fact):
        return Resolution(begins_at, successor=Successor(begins_at, same_value[0].fact.id))
    if new.slot is not None:
        # A statement about one's own daughter, by her name alone, counts as said by the subject.
        is_of_kin = bool(new.speaker) and any(subject.startswith(f"{new.speaker}'s ") for subject in subjects)
        is_own = new.said_by_subject or is_of_kin
        competing = [prior for prior in same_entity if _competes(new.slot, said_at, prior)]
        decision = _decide_slot(new, competing, said_at, begins_at, is_own)
        if decision is None and not is_own and normalization.takes_away_protection(new.slot.attribute, new.slot.value):
            # The subject may have said otherwise, in what is read later.
            return Resolution(begins_at, waits=True)
        if decision is not None:
            return replace(decision, ended=(*decision.ended, *same_value))
    return replace(_decide_words(new, same_entity, begins_at), ended=tuple(same_value))


def _end_named(new: FactDraft, known: Sequence[KnownFact], said_at: datetime, find_duplicate: bool) -> Resolution:
    """Decide as if nothing were named; then also end those of `new.ends` that were said earlier, and the new one."""
    ends = [
        prior
        for prior in known
        if prior.fact.id in new.ends
        and prior.last_said < said_at
        and (prior.fact.state == "active" or (prior.fact.state == "superseded" and _ends_after(prior, said_at)))
    ]
    other_facts = [prior for prior in known if prior not in ends]
    decision = _decide(replace(new, ends=(), successor=None), other_facts, said_at, find_duplicate)
    if decision.duplicate is not None:
        return decision
    successors = [each for each in (decision.successor, new.successor) if each is not None]
    return replace(decision, ended=(*decision.ended, *ends), successor=min(successors, default=None))


def _ends_after(prior: KnownFact, moment: datetime) -> bool:
    return prior.fact.valid_to is not None and prior.fact.valid_to > moment


def end_of(fact: FactColumns, begins_at: datetime, said_at: datetime) -> datetime:
    """Return when a fact ends by one that begins then and was said then: not before it began, nor after it was over."""
    ends_at = max(min(begins_at, said_at), fact.valid_from or begins_at)
    return min(ends_at, fact.valid_to or ends_at)


def _find_duplicate(new: FactDraft, same_entity: Iterable[KnownFact]) -> KnownFact | None:
    words = _plain(new.fact.text)
    identical = [prior for prior in same_entity if _plain(prior.fact.text) == words]
    if identical:
        return min(identical, key=lambda prior: (prior.fact.state != "active", prior.fact.id))
    near = [prior for prior in same_entity if _is_near(new, prior)]
    return min(
        near, key=lambda prior: (prior.fact.state != "active", -(prior.cosine or 0.0), prior.fact.id), default=None
    )


def _is_near(new: FactDraft, prior: KnownFact) -> bool:
    fact, slot = prior.fact, new.slot
    if fact.type != new.fact.type or prior.cosine is None or prior.cosine < MIN_SAME_COSINE:
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
    numbers = (sorted(NUMBER.findall(text)) for text in (fact.text, other.text))
    same = fact.value.casefold() == (other.value or "").casefold() and is_denied(fact.text) == is_denied(other.text)
    return same and next(numbers) == next(numbers)


def _fills_same_slot(new: FactDraft, prior: KnownFact) -> bool:
    """Whether one of the two is by a model, and the other by the reader, and both fill a slot with the same value."""
    fact, slot = prior.fact, new.slot
    if slot is None or fact.state != "active" or fact.attribute != slot.attribute or prior.by_hand is not None:
        return False
    by_both = _is_by_model(fact) != _is_by_model(new.fact) and HAND not in (fact.recipe, new.fact.recipe)
    return by_both and slot.value.casefold() == (fact.value or "").casefold()


def _is_by_model(fact: FactColumns) -> bool:
    return fact.recipe.startswith(MODEL_RECIPE_PREFIX)


def says_no_more(new: FactDraft, prior: KnownFact) -> bool:
    """Whether a known fact says what the new one does, and nothing beyond it."""
    fact, slot = prior.fact, new.slot
    if not normalization.adds_nothing(new.fact.text, fact.text, subject=new.fact.subject):
        return False
    if slot is None or fact.value is None or slot.attribute != fact.attribute:
        # People may enter one thing twice in other words: both stay.
        return fact.recipe != HAND and reconcile(new, [prior]).duplicate is not None
    return slot.value.casefold() == fact.value.casefold()


def _decide_slot(
    new: FactDraft, competing: Sequence[KnownFact], said_at: datetime, begins_at: datetime, said_by_subject: bool
) -> Resolution | None:
    active = [prior for prior in competing if prior.fact.state == "active"]
    of_theirs = bool(new.speaker) and all(
        f"{prior.fact.subject}'s ".startswith(f"{new.speaker}'s ") for prior in active
    )
    if active and not (said_by_subject or of_theirs):
        is_against = any(is_protection(prior.fact) for prior in active)
        return Resolution(begins_at, contradicted=tuple(active), waits=is_against)
    later = [prior for prior in competing if prior.last_said > said_at]
    if not any(prior.fact.state == "active" for prior in later):
        if equal := [prior for prior in active if prior.last_said == said_at]:
            return Resolution(begins_at, contradicted=tuple(equal))
        # A value that comes in after its time is outdated even where the later one has ended meanwhile.
        if not later or not said_by_subject:
            return Resolution(begins_at, ended=tuple(active)) if active else None
    begins = [(prior.fact.valid_from or prior.fact.occurred_at, prior) for prior in later]
    successor = min(Successor(begin if begin > said_at else prior.last_said, prior.fact.id) for begin, prior in begins)
    earlier = [prior for prior in competing if prior.last_said < said_at]
    ended = [prior for prior in earlier if prior.fact.state == "active" or _ends_after(prior, begins_at)]
    return Resolution(begins_at, ended=tuple(ended), successor=successor)


def _competes(slot: Slot, said_at: datetime, prior: KnownFact) -> bool:
    """Whether the two cannot both hold now, or could not when the known one did."""
    fact = prior.fact
    if fact.attribute != slot.attribute or fact.value is None or fact.state not in ("active", "superseded"):
        return False
    value, other = slot.value.casefold(), fact.value.casefold()
    # The later of two jobs may be the earlier one, said more precisely: "paediatric nurse" after "nurse".
    if slot.attribute == "job" and said_at != prior.last_said:
        earlier, later = (value, other) if said_at < prior.last_said else (other, value)
        if set(earlier.split()) < set(later.split()):
            return True
    if slot.many:
        return {value, other} == {"yes", "no"}
    # "porto" and "porto portugal" may be one.
    words, other_words = set(WORD.findall(value)), set(WORD.findall(other))
    return not (words <= other_words or other_words <= words)


def _decide_words(new: FactDraft, same_entity: Iterable[KnownFact], begins_at: datetime) -> Resolution:
    contradicted = [
        prior
        for prior in same_entity
        if prior.fact.state == "active"
        and (new.slot is None or prior.fact.attribute is None)
        and _contradicts(new.fact, prior)
    ]
    is_against = not new.said_by_subject and any(is_protection(prior.fact) for prior in contradicted)
    return Resolution(begins_at, contradicted=tuple(contradicted), waits=is_against)


def _contradicts(fact: FactColumns, prior: KnownFact) -> bool:
    """Whether two lasting statements differ in a negation or in a number, and in nothing else.

    Two events, or two plans, that do so are mostly two events, and both happened.
    """
    if prior.fact.type != fact.type or kind_of(fact.type) == "episodic":
        return False
    if prior.cosine is not None and prior.cosine >= MIN_CONTRARY_COSINE:
        words, other_words = content_words(fact.text), content_words(prior.fact.text)
        if words == (*other_words, NOT) or other_words == (*words, NOT):
            return True
    text, other = _plain(fact.text), _plain(prior.fact.text)
    return text != other and NUMBER.sub("0", text) == NUMBER.sub("0", other)


def _plain(text: str) -> str:
    return " ".join(text.casefold().split()).rstrip(".!\"'” ")
