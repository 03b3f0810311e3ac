"""Messages out: with them goes what was derived of them, and what quotes them or names them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from uuid import UUID

from memstore.derive.erasure import resting
from memstore.derive.erasure.resting import Going
from memstore.models import ScanResult
from memstore.store import postings, queue, remains, removals
from memstore.store.database import Transaction
from memstore.store.erasures import Locked
from memstore.store.messages import LAST
from memstore.store.removals import Doomed

Run = tuple[int, int]
BEGINNING = datetime.min.replace(tzinfo=UTC)


@dataclass(slots=True)
class Removed:
    """What was removed so far: rows by table, items, and how many conversations a deriver looks at once more."""

    counts: Counter[str] = field(default_factory=Counter)
    again: Counter[str] = field(default_factory=Counter)
    messages: list[UUID] = field(default_factory=list)
    others: list[UUID] = field(default_factory=list)  # facts and summaries


async def messages(scope: Transaction, doomed: Sequence[Doomed], locked: Locked) -> Removed:
    """Remove messages, and what rests on them. The user and the conversations are locked."""
    ids = [one.id for one in doomed]
    removed = Removed(messages=ids)
    runs = runs_of(doomed)
    for conversation, own in runs.items():
        await _summaries(scope, conversation, own, removed)
    going = await resting.of_messages(scope, ids, await resting.understood_through(scope, ids, runs))
    await _items(scope, going, [*ids, *removed.others], ids, locked, removed)
    await _quoted(scope, doomed, removed)
    removed.counts["messages"] += await removals.messages(scope, ids)
    return removed


async def _items(
    scope: Transaction,
    going: Going,
    items: Sequence[UUID],
    messages: Sequence[UUID],
    locked: Locked,
    removed: Removed,
) -> None:
    """Remove facts, and the units of them and of other items; what is said elsewhere too is to be derived again."""
    removed.others += going.facts
    await _units(scope, [*items, *going.facts], locked, removed)
    removed.counts.update(await resting.remove(scope, going, messages))
    for begin in going.begins:
        await _again(scope, begin.conversation_id, "facts", begin.seq - 1, removed)


async def conversation(scope: Transaction, conversation: UUID) -> Counter[str]:
    """Remove what is left of a conversation whose messages are gone."""
    counts = Counter(receipts=len(await removals.receipts(scope, (), conversation, BEGINNING)))
    counts["dead_letters"] = await removals.letters(scope, conversation, 0)
    counts["summaries"] = len(await removals.summaries_over(scope, conversation, [(0, LAST)]))
    counts.update(await removals.conversation(scope, conversation))
    return counts


async def facts(scope: Transaction, ids: Sequence[UUID], locked: Locked) -> Removed:
    """Remove facts; the messages that say them stay. The user is locked."""
    removed = Removed(others=list(ids))
    await _units(scope, ids, locked, removed)
    removed.counts.update(await resting.remove(scope, Going(ids), ()))
    await _quoted(scope, (), removed)
    return removed


async def scanned(scope: Transaction, ids: Sequence[UUID]) -> ScanResult:
    """Look in every table for the ids of what was removed; not of summaries, which are made again under the same."""
    found = await remains.ids(scope, ids)
    return ScanResult(remains.TABLES, len(ids), {table: rows for table, rows in found.items() if rows})


def runs_of(doomed: Iterable[Doomed]) -> defaultdict[UUID, list[Run]]:
    """Give the numbers of messages as runs, the first and the last of each, by conversation."""
    runs: defaultdict[UUID, list[Run]] = defaultdict(list)
    for one in doomed:
        own = runs[one.conversation_id]
        if own and own[-1][1] == one.seq - 1:
            own[-1] = (own[-1][0], one.seq)
        else:
            own.append((one.seq, one.seq))
    return runs


async def _summaries(scope: Transaction, conversation: UUID, runs: Sequence[Run], removed: Removed) -> None:
    """Remove the summaries over these messages; what they were over besides is to be summarized once more."""
    gone = await removals.summaries_over(scope, conversation, runs)
    removed.others += [one.id for one in gone]
    removed.counts["summaries"] += len(gone)
    nest = [one.from_seq for one in gone if one.level == 1]
    if nest:
        await _again(scope, conversation, "summarize", min(nest) - 1, removed)


async def _again(scope: Transaction, conversation: UUID, deriver: str, to_seq: int, removed: Removed) -> None:
    if await removals.back_to(scope, conversation, deriver, to_seq):
        removed.again[deriver] += 1
        if scope.enqueue:
            await scope.run_together([queue.enqueued(conversation, to_seq + 1)])


async def _units(scope: Transaction, ids: Sequence[UUID], locked: Locked, removed: Removed) -> None:
    removed.counts.update(await removals.units(scope, ids))
    # Postings tell of units by number: whoever looks after the user next makes them anew.
    if locked.posted and not removed.counts["term_postings"]:
        removed.counts["term_postings"] += await postings.forget(scope)


async def _quoted(scope: Transaction, doomed: Sequence[Doomed], removed: Removed) -> None:
    """Remove receipts, letters and events that quote messages or name items."""
    ids = [*removed.messages, *removed.others]
    receipts = await removals.receipts(scope, ids)
    for conversation, first in _firsts(doomed).items():
        receipts += await removals.receipts(scope, (), conversation, first[1])
        removed.counts["dead_letters"] += await removals.letters(scope, conversation, first[0])
    removed.counts["receipts"] += len(receipts)
    removed.counts["events"] += await removals.events(scope, [*removed.others, *receipts])


def _firsts(doomed: Iterable[Doomed]) -> dict[UUID, tuple[int, datetime]]:
    """Give the first message of each conversation: its number and when it was stored."""
    firsts: dict[UUID, tuple[int, datetime]] = {}
    for one in doomed:
        firsts.setdefault(one.conversation_id, (one.seq, one.recorded_at))
    return firsts
