"""What is wrong with stored facts: duplicates, conflicts, and what is stale."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime, timedelta
from itertools import combinations
from uuid import UUID

import numpy as np

from memstore._compat import to_thread
from memstore.derive.facts.filled import slot_in, slot_of_fact
from memstore.derive.facts.reconcile import ONE_PLAN, PLANS, other_value
from memstore.derive.facts.wording import content
from memstore.derive.rules.slots import Slot
from memstore.models import HAND, FactColumns, Finding
from memstore.store import fact_changes, facts
from memstore.store.database import Database
from memstore.store.fact_changes import Pair
from memstore.store.facts import Audited

DUPLICATE = 0.92  # cosine from which two facts of one subject with the same numbers and names are shown as duplicates
STALE_DAYS, DOUBTFUL = 365, 0.7  # not said again for so long, and less sure than this
BLOCK = 1000  # facts compared at once: 1,000 × 10,000 cosines are 40 MB


async def audit(database: Database, user_id: UUID, *, now: datetime | None = None) -> list[Finding]:
    """Look at every fact of a user; give what is wrong, by kind of problem."""
    async with database.scope(user_id) as scope:
        every = await facts.audited(scope)
        conflicts = await fact_changes.open_conflicts(scope)
        settled = await fact_changes.settled_conflicts(scope)
    return await to_thread(_findings, every, conflicts, settled, now or datetime.now(UTC))


def _findings(
    every: Sequence[Audited], conflicts: Sequence[Pair], settled: Sequence[Pair], now: datetime
) -> list[Finding]:
    active = [one for one in every if one.fact.state == "active"]
    texts = {one.fact.id: one.fact.text for one in every}
    same = list(duplicates(active))
    disagree = [Finding("conflict", pair, f"{texts[pair[0]]} / {texts[pair[1]]}") for pair in conflicts]
    told = {frozenset(one.facts) for one in (*same, *disagree)} | {frozenset(pair) for pair in settled}
    by_slot = [one for one in in_one_slot(active, now) if frozenset(one.facts) not in told]
    return [*same, *disagree, *by_slot, *_stale(active, now)]


def duplicates(active: Sequence[Audited]) -> Iterator[Finding]:
    """Give pairs of facts about one subject that say the same in nearly the same words."""
    subjects: dict[str, list[Audited]] = {}
    for one in active:
        if one.vector is not None:
            subjects.setdefault(one.fact.subject.casefold(), []).append(one)
    for same in subjects.values():
        matrix = np.stack([one.vector for one in same if one.vector is not None])
        for start in range(0, len(same), BLOCK):
            cosines = matrix[start : start + BLOCK] @ matrix.T
            for row, column in np.argwhere(cosines >= DUPLICATE):
                first, second = same[start + row], same[column]
                if start + row < column and content(first.fact.text) == content(second.fact.text):
                    told = f"{first.fact.text} / {second.fact.text} (cosine {cosines[row, column]:.2f})"
                    yield Finding("duplicate", (first.fact.id, second.fact.id), told)


def in_one_slot(active: Sequence[Audited], now: datetime) -> Iterator[Finding]:
    """Give pairs of facts that fill one slot with one value, or a slot that has one value with two."""
    slots: dict[tuple[str, str], list[Audited]] = {}
    for one in active:
        fact = one.fact
        holds = fact.valid_to is None or fact.valid_to > now
        if holds and fact.value and fact.attribute:
            slots.setdefault((fact.subject.casefold(), fact.attribute), []).append(one)
    for (_, attribute), filled in slots.items():
        read = {one.fact.id: _surely(one.fact) for one in filled} if len(filled) > 1 else {}
        for first, second in combinations(filled, 2):
            if attribute.startswith(PLANS) and abs(first.last_said - second.last_said) > ONE_PLAN:
                continue
            pair, told = (first.fact.id, second.fact.id), f"{first.fact.text} / {second.fact.text}"
            value, other = str(first.fact.value), str(second.fact.value)
            mine, others = read[first.fact.id], read[second.fact.id]
            if value.casefold() == other.casefold() and first.fact.attribute == second.fact.attribute:
                yield Finding("duplicate", pair, f"{told} (both: {attribute} is {value})")
            elif (mine and other_value(mine, other)) or (others and other_value(others, value)):
                yield Finding("conflict", pair, f"{told} (of {attribute})")


def _surely(fact: FactColumns) -> Slot | None:
    """Give the slot of a fact where it is known whether that has one value: chat models find attributes of any kind."""
    slot = slot_of_fact(fact)
    named = fact.recipe == HAND or slot_in(fact.text, fact.subject, fact.language) is not None
    return slot if named else None


def _stale(active: Sequence[Audited], now: datetime) -> Iterator[Finding]:
    for one in active:
        fact = one.fact
        over = fact.valid_to or (_day(fact.value) if fact.type in ("plan", "goal", "event") else None)
        quiet = now - one.last_said
        if over is not None and over < now and fact.type != "event":
            yield Finding("stale", (fact.id,), f"{fact.text} (it was for {over:%Y-%m-%d})")
        elif fact.recipe != HAND and fact.confidence < DOUBTFUL and quiet > timedelta(days=STALE_DAYS):
            yield Finding(
                "stale", (fact.id,), f"{fact.text} ({fact.confidence:.2f} sure, not said for {quiet.days} days)"
            )


def _day(value: str | None) -> datetime | None:
    """Give the end of the day that a value names in ISO 8601, if it names one."""
    try:
        day = date.fromisoformat((value or "")[:10])
    except ValueError:
        return None
    return datetime(day.year, day.month, day.day, tzinfo=UTC) + timedelta(days=1)
