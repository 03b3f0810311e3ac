"""Erasure: one transaction through every table, its certificate, and the search for what may be left.

All or nothing: killed in the middle, nothing was done. Done twice, the second time there is nothing left to do, and its
certificate says so. A process that read before it and writes after it is refused (`transaction_if_unchanged`).

With messages go summaries, facts, units, and what quotes or names them. A derived fact is removed if no other message
says it, if its words are of a message that is removed, or if such a message said it last and it ended others: what was
said in between may hold. If others say it, it is derived again from those. What people entered by hand stays, without
that source; what they edited a derived fact to be is removed with it. Facts that a removed one had superseded hold
again.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import count
from uuid import UUID

from memstore import ids
from memstore._compat import to_thread
from memstore.derive.facts.deriver import reapply
from memstore.derive.facts.normalization import content_words
from memstore.derive.facts.rule_extractor import BEFORE
from memstore.errors import DatabaseError, NotFound
from memstore.events import Event, EventType
from memstore.models import Certificate, ErasureScope, LeftoverReport, ScanResult
from memstore.store import erasure, fact_history, facts, postings, queue, tombstones, vector_indexes
from memstore.store.database import Database, Transaction
from memstore.store.erasure import DependentFact, LockedUser, MessageToDelete, SourcePosition
from memstore.store.messages import LAST

VACUUM = (
    "rows are gone; their bytes stay in the database's files until VACUUM and new rows take their place, and in "
    "its log and in backups until those are gone (docs/reference/erasure.md)"
)


@dataclass(frozen=True, slots=True)
class ErasureTarget:
    """What is to be erased: `ids` are messages or facts, `before` says until when messages were said."""

    scope: ErasureScope
    user_id: UUID
    conversation_id: UUID | None = None
    ids: tuple[UUID, ...] = ()
    before: datetime | None = None


class _RolledBack(Exception):
    """Takes back a dry run."""

    def __init__(self, certificate: Certificate) -> None:
        super().__init__(certificate)
        self.certificate = certificate


async def erase(database: Database, target: ErasureTarget, *, dry_run: bool = False) -> Certificate:
    """Erase; return the certificate. With `dry_run` all of it is done and rolled back.

    Raises `NotFound` for a message or a fact that does not exist and was not erased either.
    """
    for tries in count(1):
        try:
            certificate = await _erase(database, target, dry_run)
            break
        except _RolledBack as rolled_back:
            return rolled_back.certificate
        except DatabaseError as error:
            if not erasure.is_blocked(error) or tries == erasure.TRIES:
                raise
    database.cache.forget(target.user_id)
    if target.scope in (ErasureScope.USER, ErasureScope.CONVERSATION):
        return await _remove_jobs(database, target, certificate)
    return certificate


async def _erase(database: Database, target: ErasureTarget, dry_run: bool) -> Certificate:
    is_user = target.scope == ErasureScope.USER
    async with database.user_transaction(target.user_id) as scope:
        models = await vector_indexes.indexed(scope) if is_user else []
        certificate = await _remove(scope, target, ids.uuid7())
        if dry_run:
            raise _RolledBack(replace(certificate, id=None, recorded_at=None))
        # Not even ids of what is gone: the certificate has them.
        body = {
            "erasure": str(certificate.id),
            "scope": str(certificate.scope),
            "counts": dict(certificate.counts),
        }
        if not is_user and not certificate.is_empty:
            scope.happened(EventType.ERASED, None, **body)
    if is_user:  # whose outbox is gone
        database.publish([Event(target.user_id, EventType.ERASED, None, body)])
    for model in models:
        await vector_indexes.drop(database, target.user_id, model)
    return certificate


async def _remove(scope: Transaction, target: ErasureTarget, id: UUID) -> Certificate:
    is_user = target.scope == ErasureScope.USER
    locked = await erasure.lock_for_erasure(scope, None if is_user else await _find_conversations(scope, target))
    erased = target.ids or (target.conversation_id or target.user_id,)
    certificate = Certificate(target.scope, target.user_id, erased, target.conversation_id, id=id)
    doomed: list[MessageToDelete] = []
    if locked and target.scope != ErasureScope.FACT:
        conversation, messages = target.conversation_id, target.ids or None
        doomed = await erasure.messages_to_delete(
            scope, conversation=conversation, messages=messages, before=target.before
        )
    digests = await _make_tombstones(scope, target, doomed)
    if is_user:
        counts = Counter(await erasure.remove_user(scope))
        left = await erasure.count_user_rows(scope)
        scan = ScanResult(len(left), 1, {place: rows for place, rows in left.items() if rows})
        certificate = replace(certificate, counts=+counts, scan=scan)
    elif locked is not None:
        removal = await _remove_dependents(scope, target, doomed, locked)
        scan = await scan_for(scope, (*erased, *removal.messages))
        certificate = replace(certificate, counts=+removal.counts, again=dict(removal.again), scan=scan)
    if not digests and certificate.is_empty:  # nothing was there: nothing is kept of it either
        return replace(certificate, id=None)
    await erasure.raise_version(scope)
    kept = await tombstones.add(scope, id, digests)
    certificate = replace(certificate, tombstones=kept, hints=(VACUUM,))
    return replace(certificate, recorded_at=await erasure.keep_certificate(scope, certificate))


async def _find_conversations(scope: Transaction, target: ErasureTarget) -> list[UUID]:
    if target.conversation_id is not None:
        return [target.conversation_id]
    if target.scope == ErasureScope.FACT:
        return []
    doomed = await erasure.messages_to_delete(scope, messages=target.ids)
    return list(dict.fromkeys(message.conversation_id for message in doomed))


async def _make_tombstones(scope: Transaction, target: ErasureTarget, doomed: list[MessageToDelete]) -> set[bytes]:
    """Return the tombstones of what is removed; raise `NotFound` for what does not exist and never did."""
    key = await tombstones.key(scope)
    if target.scope == ErasureScope.FACT:
        await _check_known(scope, target, set(await erasure.known_facts(scope, target.ids)))
        facts = await find_with_former(scope, target.ids)
        return await to_thread(lambda: {tombstones.of_item(key, fact) for fact in facts})
    if target.ids:
        await _check_known(scope, target, {message.id for message in doomed})
    unnamed = [message.id for message in doomed if message.unnamed]
    contents = await erasure.unnamed_messages(scope, unnamed) if unnamed else []
    return await to_thread(
        lambda: (
            {tombstones.of_item(key, message.id) for message in doomed}
            | {tombstones.of_content(key, message) for message in contents}
        )
    )


async def _check_known(scope: Transaction, target: ErasureTarget, known: set[UUID]) -> None:
    missing = set(target.ids) - known
    missing -= await tombstones.erased_items(scope, missing)
    if missing:
        names = ", ".join(str(id) for id in sorted(missing)[:3])
        raise NotFound(f"This user has no {target.scope} {names}. Nothing was erased.")


async def _remove_dependents(
    scope: Transaction, target: ErasureTarget, doomed: list[MessageToDelete], locked: LockedUser
) -> Removal:
    if target.scope == ErasureScope.FACT:
        facts = await find_with_former(scope, target.ids)
        return await remove_facts(scope, facts, locked)
    removal = await remove_messages(scope, doomed, locked)
    if target.scope == ErasureScope.CONVERSATION and target.conversation_id is not None:
        removal.counts.update(await remove_conversation(scope, target.conversation_id))
    return removal


async def _remove_jobs(database: Database, target: ErasureTarget, certificate: Certificate) -> Certificate:
    """Remove jobs from the queue, where there is one. They hold ids, and one that is left finds nothing to do."""
    try:
        if not (await queue.state(database)).made:
            return certificate
        jobs = await queue.forget(database, target.user_id, target.conversation_id)
    except DatabaseError:
        return replace(certificate, hints=(*certificate.hints, "this login may not touch the queue: jobs are left"))
    return replace(certificate, counts=Counter(certificate.counts) + Counter(jobs=jobs))


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
    counts = Counter(await erasure.remove_facts(scope, affected.removed, messages))
    await facts.first_said(scope, affected.staying)
    restored = await fact_history.restore_orphaned(scope, actor=ACTOR) if affected.removed else []
    for fact in restored:
        await reapply(scope, fact, actor=ACTOR)
    await erasure.forget_replaced(scope, affected.removed)
    return counts


MAX_IDS = 20  # that are searched for in every table and column, one after the other
RESTORED = (
    "the tombstones of this erasure are not in this database: was it restored from a backup that is older? "
    "Erase again what the certificate names."
)


async def verify_certificate(database: Database, certificate: Certificate) -> LeftoverReport:
    """Search for the ids of a certificate in the tables of its user and in every other.

    That of a retention names the conversation, which goes on: messages in it that were erased are searched for.
    """
    ids = () if certificate.scope == ErasureScope.RETENTION else certificate.erased
    async with database.user_transaction(certificate.user_id) as scope:
        if certificate.scope == ErasureScope.USER:
            found = Counter(await erasure.count_user_rows(scope))
        elif certificate.scope == ErasureScope.RETENTION:
            messages = await erasure.messages_of(scope, certificate.erased)
            found = Counter(messages=len(await tombstones.erased_items(scope, messages)))
        else:
            found = Counter(await erasure.count_references(scope, ids))
        kept = certificate.tombstones if certificate.id is None else await tombstones.of_erasure(scope, certificate.id)
    tables, elsewhere = await erasure.scan_tables(database, [str(id) for id in ids[:MAX_IDS]])
    found |= Counter(elsewhere)
    hints = () if kept == certificate.tombstones else (RESTORED,)
    return LeftoverReport(max(1, len(certificate.erased)), tables, +found, hints)


async def verify_text(database: Database, text: str) -> LeftoverReport:
    """Search every table, of every user, for a text in capital or small letters."""
    tables, found = await erasure.scan_tables(database, [text])
    return LeftoverReport(1, tables, found)
