"""A new fact beside the known ones: the verdict is carried out, and everything that is done to a fact is logged.

    same        the known fact gains the source, and was first said at the earlier time
    supersedes  the others end when the new one begins
    outdated    the new one is stored as superseded: it ended when a later value of its slot began
    conflict    both stay, and the disagreement is logged

Whichever conversation is derived first, the value that was said last is the active one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from memstore.derive.facts.entry import still_said
from memstore.derive.facts.extracted import ExtractedFact
from memstore.derive.facts.filled import slot_of_fact
from memstore.derive.facts.linked import attributes_beside
from memstore.derive.facts.namesakes import beside, told
from memstore.derive.facts.reconcile import (
    ONE_PLAN,
    PLANS,
    Incoming,
    Known,
    Verdict,
    narrows,
    other_value,
    reconcile,
)
from memstore.derive.rules.places import COUNTRY
from memstore.derive.rules.slots import FORMER, PLACES, Slot
from memstore.models import HAND, QUARANTINED, FactColumns
from memstore.store import fact_changes, facts, items
from memstore.store.database import Transaction
from memstore.store.facts import KnownFact, Source, Taken
from memstore.store.items import new_unit

NEAREST = 3  # facts in other words that a new one is put beside
REFRESHED = ("type", "kind", "attribute", "value", "language", "confidence", "recipe")


async def settle(scope: Transaction, new: ExtractedFact, model: UUID | None, *, taken: Taken | None = None) -> bool:
    """Store a fact, or what it means for known ones; whether it is new. The user is locked.

    In a redo `taken` are the sources that it took back, which are recorded as they were. Facts by other recipes then
    take in no source for being alike: they wait to be made anew themselves.
    """
    attributes = related(new.slot)
    aside = beside(told(new.fact.text, new.fact.type, new.fact.subject, new.slot), new.speaker)
    known = await facts.known(
        scope, new.fact, attributes, new.spans[0], new.vector, model, nearest=NEAREST, aside=aside
    )
    if new.fact.state == QUARANTINED:
        return await _quarantine(scope, new, known)
    waiting = next((one.fact for one in known if one.fact.state == QUARANTINED), None)  # in the same words, if any
    known = [one for one in known if one.fact.state != QUARANTINED]
    twin = _twin(new, known)
    others = [one for one in known if twin is None or one.fact.id != twin.fact.id]
    if taken is not None:
        others = [one if _stays(one, new) else replace(one, cosine=None) for one in others if _counts(one, new)]
    said = new.fact.occurred_at
    if twin is None:
        verdict = _judge(new, said, others)
        if verdict.kind != "same":
            await _place(scope, new, waiting or new.fact, others, verdict, said, model)
            return True
        twin = next(one for one in others if one.fact.id in verdict.others)
        others.remove(twin)
    said_before = taken or {}
    await facts.add_sources(
        scope,
        [Source(twin.fact.id, span, said_before.get((twin.fact.id, span.message_id))) for span in new.spans],
    )
    await _again(scope, new, twin, others, model)
    return False


async def _quarantine(scope: Transaction, new: ExtractedFact, known: Sequence[KnownFact]) -> bool:
    """Store a fact that waits, without a unit of recall; whether it is new.

    It does nothing to what is known: what somebody says who is not believed alone neither ends a fact, nor contradicts
    one, nor says it again. Otherwise an old value could be kept alive by a page that repeats it.
    """
    twin = _twin(new, known)
    if twin is None:
        if _judge(new, new.fact.occurred_at, known).kind == "same":
            return False
        recorded_at = await facts.add(scope, new.fact)
        await facts.add_sources(scope, [Source(new.fact.id, span, recorded_at) for span in new.spans])
        return True
    if twin.fact.state == QUARANTINED:
        await facts.add_sources(scope, [Source(twin.fact.id, span) for span in new.spans])
        await facts.said_at(scope, twin.fact.id, new.fact.occurred_at)
        await _refreshed(scope, new, twin)
    return False


async def settle_entered(
    scope: Transaction, new: ExtractedFact, stored: FactColumns | None, model: UUID | None
) -> None:
    """Store a fact that a person enters, or settle the one that is `stored` with the same words. The user is locked.

    It is active whatever else is known: older values of its slot end, and what it disagrees with is logged. What says
    no more than it, of the same slot or as derived in nearly its words, gives it its place and sources, as by an edit.
    """
    fact, said = stored or new.fact, new.fact.occurred_at
    known = await facts.known(scope, fact, related(new.slot), None, new.vector, model, nearest=NEAREST)
    others = [one for one in known if one.fact.id != fact.id and one.fact.state != QUARANTINED]
    alike = [one for one in others if _says_the_same(new, one, said)]
    others = [one for one in others if one not in alike]
    verdict = _judge(new, said, others)
    while verdict.kind == "same":  # what says more than it, or is no longer active
        others = [one for one in others if one.fact.id not in verdict.others]
        verdict = _judge(new, said, others)
    if verdict.kind == "outdated":  # by what is said to be said in the future
        verdict = replace(verdict, kind="conflict")
    await _place(scope, new, fact, others, verdict, said, model)
    for one in alike:
        await _give_place(scope, one.fact, fact.id)


def _says_the_same(new: ExtractedFact, one: KnownFact, said: datetime) -> bool:
    """Whether a known fact is active and says what the new one does, and nothing beyond it."""
    if one.fact.state != "active" or not still_said(new.fact.text, one.fact.text, new.fact.subject, ""):
        return False
    slot, value = new.slot, one.fact.value
    if slot is None or value is None or slot.attribute != one.fact.attribute:
        # People may enter one thing twice in other words: the audit shows it.
        return one.fact.recipe != HAND and _judge(new, said, [one]).kind == "same"
    if slot.attribute.startswith(PLANS) and abs(said - one.last_said) > ONE_PLAN:
        return False
    return slot.value.casefold() == value.casefold()


async def _give_place(scope: Transaction, was: FactColumns, now: UUID) -> None:
    """Let a fact give its place to another one that says the same; an undo of this brings it back in its place."""
    stored = await facts.fact(scope, was.id)
    assert stored is not None
    await fact_changes.change(scope, stored, "edited", actor=HAND, other=now, state="superseded")
    await facts.add_sources(scope, [Source(now, span) for span in stored.spans])


async def _again(
    scope: Transaction, new: ExtractedFact, twin: KnownFact, others: Sequence[KnownFact], model: UUID | None
) -> None:
    """Let a known fact be said again. What was true before may be true again: "I am back in Leeds"."""
    await facts.said_at(scope, twin.fact.id, new.fact.occurred_at)
    refreshed = await _refreshed(scope, new, twin)
    if twin.fact.state == "superseded" and twin.by_hand != "edited":
        wanted = {"new", "supersedes", "conflict"}
    elif twin.fact.state == "active" and refreshed:
        wanted = {"supersedes", "outdated"}
    else:
        return
    said = max(new.fact.occurred_at, twin.last_said)
    verdict = _judge(new, said, others)
    if verdict.kind in wanted:
        await _place(scope, new, twin.fact, others, verdict, said, model)


async def settle_edited(scope: Transaction, new: ExtractedFact, fact: FactColumns) -> None:
    """End the other values of the slot that an edit has given to a fact, which is `new` as if it were entered now."""
    known = await facts.known(scope, fact, related(new.slot), None, None, None, nearest=0)
    others = [one for one in known if one.fact.id != fact.id]
    verdict = _judge(new, new.fact.occurred_at, others)
    if verdict.kind in ("supersedes", "conflict"):
        await _place(scope, new, fact, others, verdict, new.fact.occurred_at, None)


class Later(NamedTuple):
    """The next value of a slot, and when it began."""

    ends: datetime
    other: UUID


async def later_value(scope: Transaction, fact: FactColumns) -> Later | None:
    """Give the active value of a fact's slot that was said next after it; None where there is none."""
    slot = slot_of_fact(fact)
    if slot is None:
        return None
    known = await facts.known(scope, fact, related(slot), None, None, None, nearest=0)
    said = next((one.last_said for one in known if one.fact.id == fact.id), fact.occurred_at)
    later = [
        one
        for one in known
        if one.fact.state == "active" and one.last_said > said and (_rivals(slot, fact, one) or _ends(fact, one))
    ]
    return min((Later(_since(one, said), one.fact.id) for one in later), default=None)


async def resettle(scope: Transaction, fact: FactColumns, *, actor: str) -> None:
    """Let a fact that was restored end again where a later value of its slot is active."""
    stored, later = await facts.fact(scope, fact.id), await later_value(scope, fact)
    if stored is not None and stored.state == "active" and later is not None:
        await _supersede(scope, stored, later.other, later.ends, actor)


def related(slot: Slot | None) -> list[str]:
    """Give the attributes whose facts a slot has to do with: where somebody lives, in which country, and no longer."""
    if slot is None:
        return []
    plain = slot.attribute.removeprefix(FORMER).removesuffix(COUNTRY)
    countries = [plain + COUNTRY, plain] if plain in PLACES else []
    ended = [FORMER + slot.attribute, slot.attribute.removeprefix(FORMER)]
    return [slot.attribute, *ended, plain, *countries, *attributes_beside(slot.attribute)]


def _twin(new: ExtractedFact, known: Sequence[KnownFact]) -> KnownFact | None:
    """Give the same statement, or what somebody has made of it by hand."""
    exact = next((one for one in known if one.fact.id == new.fact.id), None)
    return exact or next((one for one in known if one.same_words), None)


def _stays(one: KnownFact, new: ExtractedFact) -> bool:
    return one.by_hand is not None or one.fact.recipe in (HAND, new.fact.recipe)


def _counts(one: KnownFact, new: ExtractedFact) -> bool:
    return _stays(one, new) or (new.slot is not None and _rivals(new.slot, new.fact, one))


def _judge(new: ExtractedFact, said: datetime, known: Sequence[KnownFact]) -> Verdict:
    fact, own = new.fact, new.said_by_subject
    incoming = Incoming(fact.text, fact.type, fact.subject, new.slot, said, fact.confidence, own, new.speaker)
    return reconcile(incoming, [_known(one) for one in known])


def _known(one: KnownFact) -> Known:
    fact = one.fact
    return Known(
        id=fact.id,
        text=fact.text,
        type=fact.type,
        subject=fact.subject,
        attribute=fact.attribute,
        value=fact.value,
        occurred_at=one.last_said,
        confidence=fact.confidence,
        state=fact.state,
        by_hand=one.by_hand is not None or fact.recipe == HAND,
        cosine=one.cosine,
    )


async def _refreshed(scope: Transaction, new: ExtractedFact, twin: KnownFact) -> bool:
    """Let the same statement be what this recipe makes of it, unless somebody has had a hand in it."""
    same = twin.fact.id == new.fact.id
    if not same or twin.by_hand is not None or twin.fact.recipe in (HAND, new.fact.recipe):
        return False
    columns = {name: getattr(new.fact, name) for name in REFRESHED}
    await fact_changes.change(scope, twin.fact, "edited", actor=new.fact.recipe, **columns)
    return True


async def _place(
    scope: Transaction,
    new: ExtractedFact,
    fact: FactColumns,
    known: Sequence[KnownFact],
    verdict: Verdict,
    said: datetime,
    model: UUID | None,
) -> None:
    """Let a fact be active, or outdated at once; it is `new.fact`, or a known one that is said again."""
    others = [one for one in known if one.fact.id in verdict.others]
    begin = new.fact.valid_from if new.fact.valid_from and said == new.fact.occurred_at else said
    actor = new.fact.recipe
    if verdict.kind == "supersedes":
        settled = await fact_changes.settled_by_hand(scope, verdict.others, fact.id)
        for one in others:
            decided = one.by_hand_at is not None and one.by_hand_at >= new.heard_at
            if one.fact.id not in settled and not decided:
                await _supersede(scope, one.fact, fact.id, begin, actor)
    recorded_at = await _activate(scope, new, fact, model)
    if verdict.kind == "outdated":
        await _outdate(scope, new, fact, known, verdict, (said, begin), recorded_at)
    elif verdict.kind == "conflict":
        for one in others:  # logged of the one that was said later, whichever of them was derived first
            later, earlier = (fact, one.fact) if (said, fact.id) > (one.last_said, one.fact.id) else (one.fact, fact)
            await fact_changes.change(scope, later, "conflicted", actor=actor, other=earlier.id, at=recorded_at)


async def _activate(scope: Transaction, new: ExtractedFact, fact: FactColumns, model: UUID | None) -> datetime | None:
    """Store a new fact with its source and unit, or restore a known one; give when it was recorded, if it is new."""
    if fact is not new.fact:
        if fact.state == QUARANTINED:
            await _let_out(scope, new, fact, model)
        elif fact.state != "active":
            await fact_changes.change(scope, fact, "restored", actor=new.fact.recipe, state="active", valid_to=None)
        return None
    recorded_at = await facts.add(scope, fact)
    await facts.add_sources(scope, [Source(fact.id, span, recorded_at) for span in new.spans])
    await items.add(scope, [new_unit(scope.user_id, new.unit, fact.text, new.vector)], model)
    return recorded_at


async def _let_out(scope: Transaction, new: ExtractedFact, fact: FactColumns, model: UUID | None) -> None:
    """Let a quarantined fact hold that is now said by somebody who is believed: it rests on that alone."""
    columns = {name: getattr(new.fact, name) for name in (*REFRESHED, "valid_from", "valid_to")}
    await fact_changes.change(scope, fact, "confirmed", actor=new.fact.recipe, state="active", **columns)
    await facts.drop_sources(scope, fact.id)
    await facts.add_sources(scope, [Source(fact.id, span) for span in new.spans])
    await facts.first_said(scope, [fact.id])
    await make_findable(scope, new, model)


async def make_findable(scope: Transaction, new: ExtractedFact, model: UUID | None) -> None:
    """Give a fact its unit of recall where it has none: one that was never active has not."""
    if not await items.are_units(scope, new.fact.id):
        await items.add(scope, [new_unit(scope.user_id, new.unit, new.fact.text, new.vector)], model)


async def _outdate(
    scope: Transaction,
    new: ExtractedFact,
    fact: FactColumns,
    known: Sequence[KnownFact],
    verdict: Verdict,
    held: tuple[datetime, datetime],
    at: datetime | None,
) -> None:
    """Let a fact end where the next value of its slot began, and an older value end where it began itself."""
    (said, begin), actor = held, new.fact.recipe
    rivals = [one for one in known if one.fact.id in verdict.others or (new.slot and _rivals(new.slot, fact, one))]
    ends = min(
        (_since(one, said), one.fact.id) for one in rivals if one.last_said > said or one.fact.id in verdict.others
    )
    await _supersede(scope, fact, ends[1], ends[0], actor, at)
    for one in rivals:
        holds_too_long = one.fact.state == "active" or (one.fact.valid_to is not None and one.fact.valid_to > begin)
        if holds_too_long and one.by_hand is None and one.last_said < said:
            await _supersede(scope, one.fact, fact.id, begin, actor)


def _rivals(slot: Slot, fact: FactColumns, one: KnownFact) -> bool:
    """Whether a fact gives another value to the same slot, or did."""
    if one.fact.value is None or (one.fact.subject, one.fact.attribute) != (fact.subject, slot.attribute):
        return False
    if one.fact.state not in ("active", "superseded"):
        return False
    return other_value(slot, one.fact.value) or narrows(slot, fact.occurred_at, one.fact.value, one.last_said)


def _ends(fact: FactColumns, one: KnownFact) -> bool:
    """Whether a fact says that what another one says has ended."""
    of_same = (one.fact.subject, one.fact.attribute) == (fact.subject, f"{FORMER}{fact.attribute}")
    return of_same and one.fact.value in ("", fact.value)


def _since(one: KnownFact, moment: datetime) -> datetime:
    """Give since when a fact holds that was last said after this moment."""
    begin = one.fact.valid_from or one.fact.occurred_at
    return begin if begin > moment else one.last_said


async def _supersede(
    scope: Transaction, fact: FactColumns, other: UUID, ends: datetime, actor: str, at: datetime | None = None
) -> None:
    columns: dict[str, Any] = {"state": "superseded", "valid_to": ends}
    await fact_changes.change(scope, fact, "superseded", actor=actor, other=other, at=at, **columns)
