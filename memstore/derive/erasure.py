"""Erasure: one transaction through every table, its certificate, and the search for remains.

All or nothing: killed in the middle, nothing was done. Done twice, the second time there is nothing left to do, and its
certificate says so. A process that read before it and writes after it is refused (`transaction_if_unchanged`).

With messages go summaries, facts, chunks, and rows that quote or name them. A derived fact is removed if no other
message says it, if it has words of a removed message alone, or if such a message said it last and it had ended others:
values said in between may hold. If others say it, it is derived again from those. Facts entered by hand stay, without
that source; an edited fact is removed with the derived one. Facts that a removed one had superseded hold again.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import count
from uuid import UUID

from memstore import ids
from memstore._compat import to_thread
from memstore.derive.facts.drafts import LOOKBACK_MESSAGES
from memstore.derive.facts.normalization import content_words
from memstore.derive.facts.restoring import reapply
from memstore.errors import DatabaseError, InvalidInput, NotFound
from memstore.models import Certificate, ErasureScope, EventType, ScanResult
from memstore.store import erasure, facts, messages, postings, queue, vector_indexes
from memstore.store.database import Database, Transaction
from memstore.store.erasure import DependentFact, MessageToDelete

_NAME_OR_NUMBER = re.compile(r"\b[^\W\d_a-zäöüß]\w+|\b\d+\b")
VACUUM = (
    "rows are gone; their bytes stay in the database's files until VACUUM and new rows take their place, and in "
    "its log and in backups until those are gone (docs/reference/erasure.md)"
)


@dataclass(frozen=True, slots=True)
class ErasureTarget:
    """The target of an erasure: `ids` are messages or facts; messages said until `before` go."""

    scope: ErasureScope
    user_id: UUID
    conversation_id: UUID | None = None
    ids: tuple[UUID, ...] = ()
    before: datetime | None = None


async def erase(database: Database, target: ErasureTarget, *, dry_run: bool = False) -> Certificate:
    """Erase; return the certificate. With `dry_run` all of it is done and rolled back.

    Raises `NotFound` for a message or a fact that does not exist and was not erased either.
    """
    for tries in count(1):
        try:
            certificate = await _erase(database, target, dry_run)
            break
        except DatabaseError as error:
            if not erasure.is_blocked(error) or tries == erasure.MAX_LOCK_TRIES:
                raise
    if dry_run:
        return certificate
    database.cache.forget(target.user_id)
    if target.scope in (ErasureScope.USER, ErasureScope.CONVERSATION):
        return await _remove_jobs(database, target, certificate)
    return certificate


async def _erase(database: Database, target: ErasureTarget, dry_run: bool) -> Certificate:
    is_user = target.scope == ErasureScope.USER
    async with database.user_transaction(target.user_id) as tx:
        models = await vector_indexes.indexed_models(tx) if is_user else []
        certificate = await _remove(tx, target, ids.uuid7())
        if dry_run:
            await tx.roll_back()
            return replace(certificate, id=None, recorded_at=None, hints=())
        # Of a user the outbox is gone.
        if not is_user and not certificate.is_empty:
            # Not even ids of what is gone: the certificate has them.
            body = {"erasure": str(certificate.id), "scope": str(target.scope), "counts": dict(certificate.counts)}
            tx.record_event(EventType.ERASED, None, **body)
    for model in models:
        await vector_indexes.drop(database, target.user_id, model)
    return certificate


async def _remove(tx: Transaction, target: ErasureTarget, id: UUID) -> Certificate:
    is_user, is_fact = target.scope == ErasureScope.USER, target.scope == ErasureScope.FACT
    conversations = [target.conversation_id] if target.conversation_id else []
    if target.ids and not is_fact:
        named_messages = await erasure.messages_to_delete(tx, messages=target.ids)
        conversations = list(dict.fromkeys(message.conversation_id for message in named_messages))
    locked = await erasure.lock_for_erasure(tx, None if is_user else conversations)
    erased = target.ids or (target.conversation_id or target.user_id,)
    certificate = Certificate(target.scope, target.user_id, erased, target.conversation_id, id=id)
    doomed: list[MessageToDelete] = []
    if locked is not None and not is_fact:
        doomed = await erasure.messages_to_delete(
            tx, conversation=target.conversation_id, messages=target.ids or None, before=target.before
        )
    fact_ids = await _find_with_former(tx, target.ids) if is_fact else []
    items = [*fact_ids, *(message.id for message in doomed)]
    if target.ids:
        await _check_known(tx, target, set(items))
    digests = await _make_tombstones(tx, items, [message.id for message in doomed if message.unnamed])
    if is_user:
        counts = await erasure.remove_user(tx)
        left = await erasure.count_user_rows(tx)
        certificate = replace(certificate, counts=+counts, scan=ScanResult(len(left), 1, dict(+left)))
    elif locked is not None:
        removal = await _remove_rows(tx, doomed, fact_ids, locked)
        if target.scope == ErasureScope.CONVERSATION and target.conversation_id is not None:
            removal.counts.update(await erasure.remove_conversation(tx, target.conversation_id))
        # Not for ids of summaries, which are made again under the same.
        searched = (*_searched_ids(certificate), *removal.messages)
        left = await erasure.count_references(tx, searched)
        scan = ScanResult(len(left), len(searched), dict(+left))
        certificate = replace(certificate, counts=+removal.counts, again=dict(removal.again), scan=scan)
    # Where nothing was, nothing is kept of it either.
    if not digests and certificate.is_empty:
        return replace(certificate, id=None)
    await erasure.raise_version(tx)
    kept = await messages.add_tombstones(tx, id, digests)
    certificate = replace(certificate, tombstones=kept, hints=(VACUUM,))
    return replace(certificate, recorded_at=await erasure.keep_certificate(tx, certificate))


async def _find_with_former(tx: Transaction, ids: Sequence[UUID]) -> list[UUID]:
    """Return the stored ones of these facts, and their versions before edits."""
    facts = await erasure.known_facts(tx, ids)
    while former := await erasure.edited_into(tx, facts) if facts else []:
        facts += former
    return facts


async def _check_known(tx: Transaction, target: ErasureTarget, items: set[UUID]) -> None:
    missing = set(target.ids) - items
    missing -= await messages.erased_items(tx, missing)
    if missing:
        names = ", ".join(str(id) for id in sorted(missing)[:3])
        raise NotFound(f"This user has no {target.scope} {names}. Nothing was erased.")


async def _make_tombstones(tx: Transaction, items: Sequence[UUID], unnamed: Sequence[UUID]) -> set[bytes]:
    """Return the tombstones of removed rows: of their ids, and of the content of messages without an external id."""
    key = await messages.tombstone_key(tx)
    contents = await erasure.unnamed_messages(tx, unnamed) if unnamed else []
    return await to_thread(
        lambda: (
            {messages.item_tombstone(key, id) for id in items}
            | {messages.content_tombstone(key, message) for message in contents}
        )
    )


async def _remove_jobs(database: Database, target: ErasureTarget, certificate: Certificate) -> Certificate:
    """Remove jobs from the queue, where there is one. They hold ids, and one that is left finds nothing to do."""
    try:
        if not (await queue.state(database)).made:
            return certificate
        jobs = await queue.forget(database, target.user_id, target.conversation_id)
    except DatabaseError:
        return replace(certificate, hints=(*certificate.hints, "this login may not touch the queue: jobs are left"))
    return replace(certificate, counts=Counter(certificate.counts) + Counter(jobs=jobs))


SeqRange = tuple[int, int]
ACTOR = "erasure"


@dataclass(slots=True)
class Removal:
    """Removals so far: rows by table, ids, and how many conversations each deriver looks at again.

    Its items are facts and summaries.
    """

    counts: Counter[str] = field(default_factory=Counter)
    again: Counter[str] = field(default_factory=Counter)
    messages: list[UUID] = field(default_factory=list)
    items: list[UUID] = field(default_factory=list)


async def _remove_rows(
    tx: Transaction, doomed: Sequence[MessageToDelete], fact_ids: Sequence[UUID], posted: int
) -> Removal:
    """Remove messages with what depends on them, and facts. The user and the conversations are locked."""
    ids = [message.id for message in doomed]
    removal = Removal(messages=ids)
    runs = _group_runs(doomed)
    for conversation, conversation_runs in runs.items():
        await _remove_summaries(tx, conversation, conversation_runs, removal)
    named = set(await _find_facts_read_with(tx, ids, runs))
    resting = await erasure.dependent_facts(tx, ids, list(named))
    removed = [fact for fact in resting if not fact.entered and (not _stays(fact) or fact.id in named)]
    gone = [*fact_ids, *(fact.id for fact in removed)]
    staying = [fact.id for fact in resting if fact.said_elsewhere and fact.id not in set(gone)]
    said_again = [fact.id for fact in removed if fact.said_elsewhere and not fact.retracted]
    begins = await erasure.sources_of(tx, said_again, ids) if said_again else []
    while edits := await erasure.edits_of(tx, gone, ids) if removed else []:
        gone += edits
    removal.items += gone
    since = min((message.recorded_at for message in doomed), default=None)
    removal.counts["invalid_responses"] += await erasure.remove_answers_about_facts(tx, gone, since)
    removal.counts.update(await erasure.remove_chunks(tx, [*ids, *removal.items]))
    # Postings hold chunks by number: the next maintenance of the user makes them anew.
    if posted:
        removal.counts["term_postings"] += await postings.forget(tx)
    later = _find_later(await erasure.successions(tx, gone), set(gone)) if gone else {}
    removal.counts.update(await erasure.remove_facts(tx, gone, ids))
    await facts.recompute_first_said(tx, staying)
    await erasure.move_chunks(tx, staying)
    for fact in await facts.restore_orphaned(tx, actor=ACTOR) if gone else []:
        await reapply(tx, fact, actor=ACTOR, later=later.get(fact.id))
    await erasure.forget_replaced(tx, gone)
    for begin in begins:
        await _derive_again(tx, begin.conversation_id, "facts", begin.seq - 1, removal)
    await _remove_quotes(tx, doomed, removal)
    removal.counts["messages"] += await erasure.remove_messages(tx, ids)
    await erasure.note_pending_since(tx, {*runs, *(begin.conversation_id for begin in begins)})
    return removal


def _stays(fact: DependentFact) -> bool:
    if not fact.said_elsewhere or fact.ended_others:
        return False
    if not fact.born_here:
        return True
    spoken = {*content_words(fact.said), *content_words(fact.subject)}
    # It has no word of the erased alone, and keeps its id and marks.
    return set(content_words(fact.text)) <= spoken


def _find_later(successions: Iterable[tuple[UUID, UUID]], gone: Collection[UUID]) -> dict[UUID, UUID]:
    """Return for each fact whose successor goes the next one in line that stays."""
    successor = dict(successions)
    later = {}
    for fact in successor.keys() - gone:
        line = [fact]
        # Values may come back.
        while (other := successor.get(line[-1])) is not None and other not in line:
            line.append(other)
            if other not in gone:
                later[fact] = other
                break
    return later


def _group_runs(doomed: Iterable[MessageToDelete]) -> defaultdict[UUID, list[SeqRange]]:
    runs: defaultdict[UUID, list[SeqRange]] = defaultdict(list)
    for message in doomed:
        conversation_runs = runs[message.conversation_id]
        if conversation_runs and conversation_runs[-1][1] == message.seq - 1:
            conversation_runs[-1] = (conversation_runs[-1][0], message.seq)
        else:
            conversation_runs.append((message.seq, message.seq))
    return runs


async def _remove_summaries(tx: Transaction, conversation: UUID, runs: Sequence[SeqRange], removal: Removal) -> None:
    """Remove the summaries over these messages; other messages under them are to be summarized once more."""
    removed = await erasure.remove_summaries(tx, conversation, runs)
    removal.items += [summary.id for summary in removed]
    removal.counts["summaries"] += len(removed)
    firsts = [summary.from_seq for summary in removed if summary.level == 1]
    if firsts:
        await _derive_again(tx, conversation, "summaries", min(firsts) - 1, removal)


async def _derive_again(tx: Transaction, conversation: UUID, deriver: str, to_seq: int, removal: Removal) -> None:
    if await erasure.rewind_watermark(tx, conversation, deriver, to_seq):
        removal.again[deriver] += 1


async def _remove_quotes(tx: Transaction, doomed: Sequence[MessageToDelete], removal: Removal) -> None:
    since = min((message.recorded_at for message in doomed), default=None)
    receipts = await erasure.remove_receipts(tx, [*removal.messages, *removal.items], since)
    first_messages = {message.conversation_id: message for message in reversed(doomed)}
    for conversation, first in first_messages.items():
        assert since is not None
        receipts += await erasure.remove_receipts_of(tx, conversation, since)
        removal.counts["invalid_responses"] += await erasure.remove_invalid_responses(tx, conversation, first.seq)
    removal.counts["receipts"] += len(receipts)
    removal.counts["events"] += await erasure.remove_events(tx, [*removal.items, *receipts])


async def _find_facts_read_with(
    tx: Transaction, messages: Sequence[UUID], runs: Mapping[UUID, Sequence[SeqRange]]
) -> list[UUID]:
    """Return facts that have words of these messages which their own do not say.

    Rules read the messages before, of which any word counts. A chat model reads a whole segment and is shown facts of
    all conversations: names from these.
    """
    if not messages:
        return []
    read = {
        fact: set(content_words(text))
        for conversation, conversation_runs in runs.items()
        for fact, text in (
            await erasure.facts_after(tx, conversation, [last for _, last in conversation_runs], LOOKBACK_MESSAGES)
        ).items()
    }
    for fact, text in (await erasure.facts_by_models(tx)).items():
        names = set(content_words(" ".join(_NAME_OR_NUMBER.findall(text))))
        read[fact] = read.get(fact, set()) | names
    erased = set(content_words(" ".join(await erasure.texts(tx, messages)))) if read else set()
    shared = {fact: words & erased for fact, words in read.items() if words & erased}
    said = await erasure.texts_of_facts(tx, list(shared), messages)
    return [fact for fact, words in shared.items() if words - set(content_words(said.get(fact, "")))]


# Each is searched for in every table and column, one after the other.
MAX_SCANNED_IDS = 20


def _searched_ids(certificate: Certificate) -> Sequence[UUID]:
    """Return the ids that must be gone: none for a retention, which names a conversation that goes on."""
    return () if certificate.scope == ErasureScope.RETENTION else certificate.erased


async def verify_certificate(database: Database, certificate: Certificate) -> ScanResult:
    """Search for the ids of a certificate in the tables of its user and in every other."""
    # Every erasure names one id: of none, all would be found to be gone.
    if not certificate.erased:
        raise InvalidInput("This certificate names nothing that was erased: give it whole.")
    ids = _searched_ids(certificate)
    async with database.user_transaction(certificate.user_id) as tx:
        is_user = certificate.scope == ErasureScope.USER
        rows = await (erasure.count_user_rows(tx) if is_user else erasure.count_references(tx, ids))
    texts = [str(id) for id in ids[:MAX_SCANNED_IDS]]
    tables, elsewhere = await erasure.scan_tables(database, certificate.user_id, texts)
    return ScanResult(tables, len(ids), dict(+(rows | Counter(elsewhere))))
