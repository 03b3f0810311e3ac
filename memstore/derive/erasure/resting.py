"""Facts that rest on messages which go: which ones go with them, and what comes back that they had superseded.

A derived fact goes where no other message says it, where its words are of a message that goes, or where such a message
has said it last and it ended others: what was said in between may hold. If others say it, it is derived again from
those. What people have entered by hand is theirs and stays, without that source; what they have made of a derived fact
goes with it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from memstore.derive.facts.by_rules import BEFORE
from memstore.derive.facts.settle import resettle
from memstore.derive.facts.wording import content
from memstore.store import fact_changes, facts, removals
from memstore.store.database import Transaction
from memstore.store.removals import Begin, Resting

ACTOR = "erasure"


@dataclass(frozen=True, slots=True)
class Going:
    """Facts that go, those that stay with fewer sources, and where those that go are said by messages that stay."""

    facts: Sequence[UUID] = ()
    staying: Sequence[UUID] = ()
    begins: Sequence[Begin] = ()


async def of_messages(scope: Transaction, messages: Sequence[UUID], named: Collection[UUID]) -> Going:
    """Return what becomes of the facts that these messages say; `named` ones go wherever they are said."""
    resting = await removals.resting_facts(scope, messages, list(named))
    going = [one for one in resting if not one.entered and (not _stays(one) or one.id in named)]
    ids = [one.id for one in going]
    staying = [one.id for one in resting if one.said_elsewhere and one.id not in set(ids)]
    again = [one.id for one in going if one.said_elsewhere and not one.retracted]
    begins = await removals.sources_of(scope, again, messages) if again else []
    return Going([*ids, *await _edited(scope, ids, messages)], staying, begins)


async def understood_through(
    scope: Transaction, messages: Sequence[UUID], runs: Mapping[UUID, Sequence[tuple[int, int]]]
) -> list[UUID]:
    """Return the facts of the next messages that have words of these, which the extractor read before them."""
    follows = [
        one
        for conversation, own in runs.items()
        for one in await removals.facts_after(scope, conversation, [last for _, last in own], BEFORE)
    ]
    if not follows:
        return []
    erased = set(content(" ".join(await removals.texts(scope, messages))))
    return [one.id for one in follows if (set(content(one.text)) - set(content(one.said or ""))) & erased]


def _stays(one: Resting) -> bool:
    return one.said_elsewhere and not one.born_here and not one.ended_others


async def _edited(scope: Transaction, ids: Sequence[UUID], messages: Sequence[UUID]) -> list[UUID]:
    """Give what people have edited these facts to be, and that again."""
    found: list[UUID] = []
    while new := await removals.edits_of(scope, [*ids, *found], messages) if ids else []:
        found += new
    return found


async def with_former(scope: Transaction, ids: Sequence[UUID]) -> list[UUID]:
    """Give those of these facts that there are, and what they were before people edited them."""
    found = await removals.known_facts(scope, ids)
    while new := await removals.edited_into(scope, found) if found else []:
        found += new
    return found


async def remove(scope: Transaction, going: Going, messages: Sequence[UUID]) -> Counter[str]:
    """Remove facts and sources; what they had superseded holds again. Gives how many rows are gone, by table.

    Their units are the caller's to remove, with those of the messages.
    """
    counts = Counter(fact_sources=len(await removals.sources(scope, going.facts, messages)))
    counts.update(await removals.facts(scope, going.facts))
    await facts.first_said(scope, going.staying)
    restored = await fact_changes.restore_orphaned(scope, actor=ACTOR) if going.facts else []
    for fact in restored:
        await resettle(scope, fact, actor=ACTOR)
    await removals.forget_others(scope, going.facts)
    return counts
