"""What is wrong with stored facts: duplicates, conflicts, and what is stale."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime, timedelta
from itertools import combinations
from uuid import UUID

import numpy as np

from memstore._compat import to_thread
from memstore.derive.facts.normalization import content_words, parse_slot, slot_of_fact
from memstore.derive.facts.reconcile import ONE_PLAN, PLANS, is_other_value
from memstore.derive.rules.slots import Slot
from memstore.models import HAND, FactColumns, Finding
from memstore.store import fact_history, facts
from memstore.store.database import Database
from memstore.store.fact_history import Pair
from memstore.store.facts import Audited

DUPLICATE = 0.92  # cosine from which two facts of one subject with the same content words are shown as duplicates
BLOCK = 1000  # facts compared at once: 1,000 × 10,000 cosines are 40 MB


async def audit(database: Database, user_id: UUID) -> list[Finding]:
    """Look at every active fact of a user; return what is wrong, by kind of problem."""
    async with database.user_transaction(user_id) as scope:
        audited = await facts.audited(scope)
        conflicts = await fact_history.open_conflicts(scope)
        settled = await fact_history.settled_conflicts(scope)
    return await to_thread(_findings, audited, conflicts, settled, datetime.now(UTC))


def _findings(
    audited: Sequence[Audited], conflicts: Sequence[Pair], settled: Sequence[Pair], now: datetime
) -> list[Finding]:
    active = [one for one in audited if one.fact.state == "active"]
    texts = {one.fact.id: one.fact.text for one in active}
    found = list(_duplicates(active))
    found += [Finding("conflict", pair, f"{texts[pair[0]]} / {texts[pair[1]]}") for pair in conflicts]
    seen = {frozenset(one.facts) for one in found} | {frozenset(pair) for pair in settled}
    found += [one for one in _in_one_slot(active, now) if frozenset(one.facts) not in seen]
    return [*found, *_stale(active, now)]


def _duplicates(active: Sequence[Audited]) -> Iterator[Finding]:
    """Return pairs of facts about one subject that say the same in nearly the same words."""
    subjects = defaultdict[str, list[Audited]](list)
    for one in active:
        if one.vector is not None:
            subjects[one.fact.subject.casefold()].append(one)
    for same in subjects.values():
        matrix = np.stack([one.vector for one in same if one.vector is not None])
        for start in range(0, len(same), BLOCK):
            cosines = matrix[start : start + BLOCK] @ matrix.T
            for row, column in np.argwhere(cosines >= DUPLICATE):
                first, second = same[start + row].fact, same[column].fact
                if start + row < column and content_words(first.text) == content_words(second.text):
                    detail = f"{first.text} / {second.text} (cosine {cosines[row, column]:.2f})"
                    yield Finding("duplicate", (first.id, second.id), detail)


def _in_one_slot(active: Sequence[Audited], now: datetime) -> Iterator[Finding]:
    """Return pairs of facts that fill one slot with one value, or a slot that has one value with two."""
    slots = defaultdict[tuple[str, str], list[Audited]](list)
    for one in active:
        fact = one.fact
        if fact.value and fact.attribute and (fact.valid_to is None or fact.valid_to > now):
            slots[fact.subject.casefold(), fact.attribute].append(one)
    for (_, attribute), filled in slots.items():
        read = {one.fact.id: _certain_slot(one.fact) for one in filled} if len(filled) > 1 else {}
        for one, other in combinations(filled, 2):
            if attribute.startswith(PLANS) and abs(one.last_said - other.last_said) > ONE_PLAN:
                continue
            first, second = one.fact, other.fact
            pair, detail = (first.id, second.id), f"{first.text} / {second.text}"
            value, other_value = str(first.value), str(second.value)
            slot, other_slot = read[first.id], read[second.id]
            if value.casefold() == other_value.casefold():
                yield Finding("duplicate", pair, f"{detail} (both: {attribute} is {value})")
            elif (slot and is_other_value(slot, other_value)) or (other_slot and is_other_value(other_slot, value)):
                yield Finding("conflict", pair, f"{detail} (of {attribute})")


def _certain_slot(fact: FactColumns) -> Slot | None:
    """Return the slot of a fact where it is known whether that has one value: chat models name any attribute."""
    named = fact.recipe == HAND or parse_slot(fact.text, fact.subject, fact.language) is not None
    return slot_of_fact(fact) if named else None


def _stale(active: Sequence[Audited], now: datetime) -> Iterator[Finding]:
    """Return plans and goals whose day is over, and facts that have ended."""
    for one in active:
        fact = one.fact
        over = fact.valid_to or (_end_of_day(fact.value) if fact.type in ("plan", "goal") else None)
        if over is not None and over < now and fact.type != "event":
            yield Finding("stale", (fact.id,), f"{fact.text} (it was for {over:%Y-%m-%d})")


def _end_of_day(value: str | None) -> datetime | None:
    """Return the end of the day that a value names in ISO 8601, if it names one."""
    try:
        day = date.fromisoformat((value or "")[:10])
    except ValueError:
        return None
    return datetime(day.year, day.month, day.day, tzinfo=UTC) + timedelta(days=1)
