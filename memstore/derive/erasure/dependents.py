"""Removes messages or facts with what depends on them: summaries, facts, units, and what quotes or names them.

A derived fact is removed if no other message says it, if its words are of a message that is removed, or if such a
message said it last and it ended others: what was said in between may hold. If others say it, it is derived again from
those. What people entered by hand stays, without that source; what they edited a derived fact to be is removed with it.
Facts that a removed one had superseded hold again.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from uuid import UUID

from memstore.derive.facts.apply import reapply
from memstore.derive.facts.normalization import content_words
from memstore.derive.facts.rule_extractor import BEFORE
from memstore.models import ScanResult
from memstore.store import erasure, fact_history, facts, postings, queue
from memstore.store.database import Transaction
from memstore.store.erasure import DependentFact, LockedUser, MessageToDelete, SourcePosition
from memstore.store.messages import LAST

Run = tuple[int, int]  # the first and the last number of messages in a row
ACTOR = "erasure"
BEGINNING = datetime.min.replace(tzinfo=UTC)


@dataclass(slots=True)
class Removal:
    """What was removed so far: rows by table, ids, and how many conversations each deriver looks at once more."""

    counts: Counter[str] = field(default_factory=Counter)
    again: Counter[str] = field(default_factory=Counter)
    messages: list[UUID] = field(default_factory=list)
    items: list[UUID] = field(default_factory=list)  # facts and summaries


@dataclass(frozen=True, slots=True)
class AffectedFacts:
    """Facts to remove, those that stay with fewer sources, and where messages that stay say removed ones."""

    removed: Sequence[UUID] = ()
    staying: Sequence[UUID] = ()
    begins: Sequence[SourcePosition] = ()


async def remove_messages(scope: Transaction, doomed: Sequence[MessageToDelete], locked: LockedUser) -> Removal:
    """Remove messages, and what depends on them. The user and the conversations are locked."""
    ids = [message.id for message in doomed]
    removal = Removal(messages=ids)
    runs = _group_runs(doomed)
    for conversation, own in runs.items():
        await _remove_summaries(scope, conversation, own, removal)
    affected = await _find_affected_facts(scope, ids, await _find_facts_read_with(scope, ids, runs))
    removal.items += affected.removed
    await _remove_units(scope, [*ids, *removal.items], locked, removal)
    removal.counts.update(await _remove_facts(scope, affected, ids))
    for begin in affected.begins:
        await _derive_again(scope, begin.conversation_id, "facts", begin.seq - 1, removal)
    await _remove_quotes(scope, doomed, removal)
    removal.counts["messages"] += await erasure.remove_messages(scope, ids)
    return removal


async def remove_conversation(scope: Transaction, conversation: UUID) -> Counter[str]:
    """Remove what is left of a conversation whose messages are gone; return how many rows, by table."""
    counts = Counter(receipts=len(await erasure.remove_receipts(scope, (), conversation, BEGINNING)))
    counts["dead_letters"] = await erasure.remove_letters(scope, conversation, 0)
    counts["summaries"] = len(await erasure.remove_summaries(scope, conversation, [(0, LAST)]))
    counts.update(await erasure.remove_conversation(scope, conversation))
    return counts


async def remove_facts(scope: Transaction, ids: Sequence[UUID], locked: LockedUser) -> Removal:
    """Remove facts; the messages that say them stay. The user is locked."""
    removal = Removal(items=list(ids))
    await _remove_units(scope, ids, locked, removal)
    removal.counts.update(await _remove_facts(scope, AffectedFacts(ids), ()))
    await _remove_quotes(scope, (), removal)
    return removal


async def find_with_former(scope: Transaction, ids: Sequence[UUID]) -> list[UUID]:
    """Return those of these facts that there are, and what they were before people edited them."""
    facts = await erasure.known_facts(scope, ids)
    while former := await erasure.edited_into(scope, facts) if facts else []:
        facts += former
    return facts


async def scan_for(scope: Transaction, ids: Sequence[UUID]) -> ScanResult:
    """Search every table for removed ids; not of summaries, which are made again under the same."""
    rows = await erasure.count_references(scope, ids)
    return ScanResult(erasure.TABLES, len(ids), {table: number for table, number in rows.items() if number})


def _group_runs(doomed: Iterable[MessageToDelete]) -> defaultdict[UUID, list[Run]]:
    """Return the numbers of messages as runs, by conversation."""
    runs: defaultdict[UUID, list[Run]] = defaultdict(list)
    for message in doomed:
        own = runs[message.conversation_id]
        if own and own[-1][1] == message.seq - 1:
            own[-1] = (own[-1][0], message.seq)
        else:
            own.append((message.seq, message.seq))
    return runs


async def _remove_summaries(scope: Transaction, conversation: UUID, runs: Sequence[Run], removal: Removal) -> None:
    """Remove the summaries over these messages; what else they were over is to be summarized once more."""
    removed = await erasure.remove_summaries(scope, conversation, runs)
    removal.items += [summary.id for summary in removed]
    removal.counts["summaries"] += len(removed)
    firsts = [summary.from_seq for summary in removed if summary.level == 1]
    if firsts:
        await _derive_again(scope, conversation, "summarize", min(firsts) - 1, removal)


async def _derive_again(scope: Transaction, conversation: UUID, deriver: str, to_seq: int, removal: Removal) -> None:
    if await erasure.rewind_watermark(scope, conversation, deriver, to_seq):
        removal.again[deriver] += 1
        if scope.enqueue:
            await scope.run_together([queue.enqueued(conversation, to_seq + 1)])


async def _remove_units(scope: Transaction, ids: Sequence[UUID], locked: LockedUser, removal: Removal) -> None:
    removal.counts.update(await erasure.remove_chunks(scope, ids))
    # Postings hold units by number: the next maintenance of the user makes them anew.
    if locked.posted and not removal.counts["term_postings"]:
        removal.counts["term_postings"] += await postings.forget(scope)


async def _remove_quotes(scope: Transaction, doomed: Sequence[MessageToDelete], removal: Removal) -> None:
    """Remove receipts, responses of models and events that quote messages or name items."""
    receipts = await erasure.remove_receipts(scope, [*removal.messages, *removal.items])
    first_messages = {message.conversation_id: message for message in reversed(doomed)}
    for conversation, first in first_messages.items():
        receipts += await erasure.remove_receipts(scope, (), conversation, first.recorded_at)
        removal.counts["dead_letters"] += await erasure.remove_letters(scope, conversation, first.seq)
    removal.counts["receipts"] += len(receipts)
    removal.counts["events"] += await erasure.remove_events(scope, [*removal.items, *receipts])


async def _find_affected_facts(scope: Transaction, messages: Sequence[UUID], named: Collection[UUID]) -> AffectedFacts:
    """Return what becomes of the facts that these messages say; `named` ones are removed wherever they are said."""
    resting = await erasure.dependent_facts(scope, messages, list(named))
    removed = [fact for fact in resting if not fact.entered and (not _stays(fact) or fact.id in named)]
    ids = [fact.id for fact in removed]
    staying = [fact.id for fact in resting if fact.said_elsewhere and fact.id not in set(ids)]
    again = [fact.id for fact in removed if fact.said_elsewhere and not fact.retracted]
    begins = await erasure.sources_of(scope, again, messages) if again else []
    edited: list[UUID] = []
    while edits := await erasure.edits_of(scope, [*ids, *edited], messages) if ids else []:
        edited += edits
    return AffectedFacts([*ids, *edited], staying, begins)


def _stays(fact: DependentFact) -> bool:
    return fact.said_elsewhere and not fact.born_here and not fact.ended_others


async def _find_facts_read_with(
    scope: Transaction, messages: Sequence[UUID], runs: Mapping[UUID, Sequence[Run]]
) -> list[UUID]:
    """Return the facts of the next messages that have words of these, which the extractor read before them."""
    following = [
        fact
        for conversation, own in runs.items()
        for fact in await erasure.facts_after(scope, conversation, [last for _, last in own], BEFORE)
    ]
    if not following:
        return []
    erased = set(content_words(" ".join(await erasure.texts(scope, messages))))
    return [
        fact.id for fact in following if (set(content_words(fact.text)) - set(content_words(fact.said or ""))) & erased
    ]


async def _remove_facts(scope: Transaction, affected: AffectedFacts, messages: Sequence[UUID]) -> Counter[str]:
    """Remove facts and sources, but not their units; return how many rows, by table."""
    counts = Counter(fact_sources=len(await erasure.remove_sources(scope, affected.removed, messages)))
    counts.update(await erasure.remove_facts(scope, affected.removed))
    await facts.first_said(scope, affected.staying)
    restored = await fact_history.restore_orphaned(scope, actor=ACTOR) if affected.removed else []
    for fact in restored:
        await reapply(scope, fact, actor=ACTOR)
    await erasure.forget_replaced(scope, affected.removed)
    return counts
