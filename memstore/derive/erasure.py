"""Erasure: one transaction over every table, its certificate, and the search for remains.

If it is killed in the middle, nothing was erased. A second erasure of the same finds nothing, and says so. A process
that read before the erasure and writes after it is refused (`transaction_if_unchanged`).

Erasing messages removes their summaries and chunks, rows that quote or name them, and derived facts:
- that no other message says, that have words of erased messages alone, or that are edits of removed facts;
- that had ended other facts, if an erased message said them last: values said in between may hold.
A removed fact that other messages say is derived again from those. Facts entered by hand stay and lose that source.
Facts that a removed fact had superseded become active again.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from itertools import count
from typing import Any
from uuid import UUID

from memstore import ids
from memstore._compat import to_thread
from memstore.derive.facts.drafts import LOOKBACK_MESSAGES
from memstore.derive.facts.normalization import content_words
from memstore.derive.facts.restoring import reapply
from memstore.errors import DatabaseError, InvalidInput, NotFound
from memstore.models import Certificate, ErasureScope, EventType, ScanResult, WebhookEvent
from memstore.store import erasure, facts, grants, messages, postings, queue, vector_indexes, webhooks
from memstore.store.database import Database, Transaction
from memstore.store.erasure import DependentFact, MessageToDelete

BYTES_ON_DISK_HINT = (
    "Rows are deleted. Their bytes stay on disk until VACUUM and reuse of the space, and in the WAL and backups until "
    "those expire (docs/reference/erasure.md)."
)


@dataclass(frozen=True, slots=True)
class ErasureTarget:
    """The target of an erasure: `ids` are messages or facts; messages said until `before` go.

    `spaces` are the certificates of what a user had said in spaces. Of what only an admin of a space erases, `admin` is
    the member who does.
    """

    scope: ErasureScope
    user_id: UUID
    conversation_id: UUID | None = None
    ids: tuple[UUID, ...] = ()
    before: datetime | None = None
    spaces: Mapping[str, Certificate] = field(default_factory=dict)
    admin: UUID | None = None


async def erase(database: Database, target: ErasureTarget, *, dry_run: bool = False) -> Certificate:
    """Erase; return the certificate. With `dry_run` all of it is done and rolled back.

    Raises `NotFound` for a message or a fact that does not exist and was not erased either.
    """
    certificate: Certificate
    certificate, named_items = await _repeat_if_blocked(lambda: _erase(database, target, dry_run))
    if dry_run:
        return certificate
    database.cache.forget(target.user_id)
    return await _remove_jobs(database, target, certificate, named_items)


async def _repeat_if_blocked(work: Callable[[], Any]) -> Any:
    for tries in count(1):
        try:
            return await work()
        except DatabaseError as error:
            if not erasure.is_blocked(error) or tries == erasure.MAX_LOCK_TRIES:
                raise
    raise AssertionError


async def erase_user(
    database: Database, user_id: UUID, name: str, *, admin: UUID | None = None, dry_run: bool = False
) -> Certificate:
    """Erase a user, after what this user said in spaces, which was said under this name; and the grants.

    A space is erased by an `admin`, or by the application.
    """
    async with database.user_transaction(user_id) as tx:
        spaces = await grants.spaces_of(tx)
    in_spaces = dict[str, Certificate]()
    for space_id, space_name in spaces:
        said: list[UUID] = await _repeat_if_blocked(partial(_leave, database, space_id, user_id, name, dry_run))
        if said:
            target = ErasureTarget(ErasureScope.MESSAGE, space_id, ids=tuple(said))
            in_spaces[space_name] = await erase(database, target, dry_run=dry_run)
    target = ErasureTarget(ErasureScope.USER, user_id, spaces=in_spaces, admin=admin)
    certificate = await erase(database, target, dry_run=dry_run)
    if not dry_run:
        for space_id, _ in spaces:
            async with database.user_transaction(space_id) as tx:
                await grants.forget_member(tx, user_id)
    return certificate


async def _leave(database: Database, space_id: UUID, member_id: UUID, name: str, dry_run: bool) -> list[UUID]:
    """End a member's grant; return the messages that the member has said in the space."""
    async with database.user_transaction(space_id) as tx:
        if not dry_run:
            # What is being stored is waited for. It is seen then, or refused.
            await erasure.lock_for_erasure(tx, None)
            await grants.end(tx, member_id)
        return await messages.said_by(tx, name)


async def _erase(database: Database, target: ErasureTarget, dry_run: bool) -> tuple[Certificate, Sequence[UUID] | None]:
    """Return the certificate, and the removed items that deliveries in the queue may name; None for all the user's."""
    is_user = target.scope == ErasureScope.USER
    async with database.user_transaction(target.user_id) as tx:
        models = await vector_indexes.indexed_models(tx) if is_user else []
        certificate, items = await _remove(tx, target, ids.uuid7())
        if dry_run:
            await tx.roll_back()
            return replace(certificate, id=None, recorded_at=None, hints=()), ()
        named_items = None if is_user else items
        if not (is_user or items) or not await webhooks.forget(tx, named_items):
            named_items = []
        if not certificate.is_empty:
            # The event has no erased ids; the certificate has them.
            body = {"erasure": str(certificate.id), "scope": str(target.scope), "counts": dict(certificate.counts)}
            tx.notify(WebhookEvent.ERASURE_DONE, **body)
            # Erasing a user removes the outbox too.
            if not is_user:
                tx.record_event(EventType.ERASED, None, **body)
    for model in models:
        await vector_indexes.drop(database, target.user_id, model)
    return certificate, named_items


async def _remove(tx: Transaction, target: ErasureTarget, id: UUID) -> tuple[Certificate, Sequence[UUID]]:
    """Return the certificate, and the facts and summaries that were removed, for other erasures than a user's."""
    is_user, is_fact = target.scope == ErasureScope.USER, target.scope == ErasureScope.FACT
    conversations = [target.conversation_id] if target.conversation_id else []
    if target.ids and not is_fact:
        named_messages = await erasure.messages_to_delete(tx, messages=target.ids)
        conversations = list(dict.fromkeys(message.conversation_id for message in named_messages))
    last_posted_chunk = await erasure.lock_for_erasure(tx, None if is_user else conversations)
    # No grant is changed from here on.
    if target.admin is not None:
        await grants.check_admin(tx, target.admin)
    erased = target.ids or (target.conversation_id or target.user_id,)
    certificate = Certificate(target.scope, target.user_id, erased, target.conversation_id, id=id, spaces=target.spaces)
    doomed: list[MessageToDelete] = []
    if last_posted_chunk is not None and not is_fact:
        doomed = await erasure.messages_to_delete(
            tx, conversation=target.conversation_id, messages=target.ids or None, before=target.before
        )
    fact_ids = await _find_with_earlier_versions(tx, target.ids) if is_fact else []
    items = [*fact_ids, *(message.id for message in doomed)]
    if target.ids:
        await _check_existence(tx, target, set(items))
    removal = Removal()
    digests = await _make_tombstones(tx, items, [message.id for message in doomed if message.unnamed])
    if is_user:
        counts = await erasure.remove_user(tx)
        if ids.is_space(target.user_id):
            await grants.remove_space(tx)
        left = await erasure.count_user_rows(tx)
        certificate = replace(certificate, counts=+counts, scan=ScanResult(len(left), 1, dict(+left)))
    elif last_posted_chunk is not None:
        removal = await _remove_rows(tx, doomed, fact_ids, last_posted_chunk)
        if target.scope == ErasureScope.CONVERSATION and target.conversation_id is not None:
            removal.counts.update(await erasure.remove_conversation(tx, target.conversation_id))
        # Ids of summaries are not searched for: a summary that is made again has the same id.
        searched = (*_searched_ids(certificate), *removal.messages)
        left = await erasure.count_references(tx, searched)
        scan = ScanResult(len(left), len(searched), dict(+left))
        certificate = replace(certificate, counts=+removal.counts, again=dict(removal.rewound_conversations), scan=scan)
    # If nothing was erased, no certificate is kept.
    if not digests and certificate.is_empty:
        return replace(certificate, id=None), ()
    await erasure.raise_version(tx)
    kept = await messages.add_tombstones(tx, id, digests)
    certificate = replace(certificate, tombstones=kept, hints=(BYTES_ON_DISK_HINT,))
    return replace(certificate, recorded_at=await erasure.keep_certificate(tx, certificate)), removal.items


async def _find_with_earlier_versions(tx: Transaction, ids: Sequence[UUID]) -> list[UUID]:
    facts = await erasure.known_facts(tx, ids)
    while earlier := await erasure.edited_into(tx, facts) if facts else []:
        facts += earlier
    return facts


async def _check_existence(tx: Transaction, target: ErasureTarget, items: set[UUID]) -> None:
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


async def _remove_jobs(
    database: Database, target: ErasureTarget, certificate: Certificate, named_items: Sequence[UUID] | None
) -> Certificate:
    """Remove the jobs of erased conversations from the queue, and clear deliveries to webhooks about erased facts.

    They hold ids. A job that is left finds nothing to do.
    """
    has_jobs = target.scope in (ErasureScope.USER, ErasureScope.CONVERSATION)
    is_named = named_items is None or bool(named_items)
    try:
        if not (has_jobs or is_named) or not (await queue.state(database)).made:
            return certificate
        jobs = await queue.forget(database, target.user_id, target.conversation_id) if has_jobs else 0
        if is_named:
            await queue.clear_deliveries(database, user=target.user_id, facts=named_items)
    except DatabaseError:
        return replace(certificate, hints=(*certificate.hints, "this login may not touch the queue: jobs are left"))
    return replace(certificate, counts=Counter(certificate.counts) + Counter(jobs=jobs))


SeqRange = tuple[int, int]
ACTOR = "erasure"


@dataclass(slots=True)
class Removal:
    """Removed rows by table, rewound conversations by deriver, and ids; `items` are facts and summaries."""

    counts: Counter[str] = field(default_factory=Counter)
    rewound_conversations: Counter[str] = field(default_factory=Counter)
    messages: list[UUID] = field(default_factory=list)
    items: list[UUID] = field(default_factory=list)


async def _remove_rows(
    tx: Transaction, doomed: Sequence[MessageToDelete], fact_ids: Sequence[UUID], last_posted_chunk: int
) -> Removal:
    """Remove messages with what depends on them, and facts. The user and the conversations are locked."""
    ids = [message.id for message in doomed]
    removal = Removal(messages=ids)
    runs = _group_runs(doomed)
    for conversation, conversation_runs in runs.items():
        await _remove_summaries(tx, conversation, conversation_runs, removal)
    with_erased_words = set(await _find_facts_with_words_of(tx, ids, runs))
    dependent = await erasure.dependent_facts(tx, ids, list(with_erased_words))
    removed = [fact for fact in dependent if not fact.entered and (not _stays(fact) or fact.id in with_erased_words)]
    gone = [*fact_ids, *(fact.id for fact in removed)]
    staying = [fact.id for fact in dependent if fact.said_elsewhere and fact.id not in set(gone)]
    derived_again = [fact.id for fact in removed if fact.said_elsewhere and not fact.retracted]
    other_sources = await erasure.sources_of(tx, derived_again, ids) if derived_again else []
    while edits := await erasure.edits_of(tx, gone, ids) if removed else []:
        gone += edits
    removal.items += gone
    since = min((message.recorded_at for message in doomed), default=None)
    removal.counts["invalid_responses"] += await erasure.remove_answers_about_facts(tx, gone, since)
    removal.counts.update(await erasure.remove_chunks(tx, [*ids, *removal.items]))
    # Postings hold chunks by number: the next maintenance of the user makes them anew.
    if last_posted_chunk:
        removal.counts["term_postings"] += await postings.forget(tx)
    later = _find_later(await erasure.successions(tx, gone), set(gone)) if gone else {}
    removal.counts.update(await erasure.remove_facts(tx, gone, ids))
    await facts.recompute_first_said(tx, staying)
    await erasure.move_chunks(tx, staying)
    for fact in await facts.restore_orphaned(tx, actor=ACTOR) if gone else []:
        await reapply(tx, fact, actor=ACTOR, later=later.get(fact.id))
    await erasure.forget_replaced(tx, gone)
    for source in other_sources:
        await _rewind_deriver(tx, source.conversation_id, "facts", source.seq - 1, removal)
    await _remove_quotes(tx, doomed, removal)
    removal.counts.update(await erasure.remove_messages(tx, ids))
    await erasure.note_pending_since(tx, {*runs, *(source.conversation_id for source in other_sources)})
    return removal


def _stays(fact: DependentFact) -> bool:
    if not fact.said_elsewhere or fact.ended_others:
        return False
    if not fact.born_here:
        return True
    words_elsewhere = {*content_words(fact.said), *content_words(fact.subject)}
    # No word of it stands in erased messages alone.
    return set(content_words(fact.text)) <= words_elsewhere


def _find_later(successions: Iterable[tuple[UUID, UUID]], gone: Collection[UUID]) -> dict[UUID, UUID]:
    """Return, for each fact whose successor is removed, the next successor that stays."""
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
    """Remove the summaries over these messages; the other messages under them will be summarized again."""
    removed = await erasure.remove_summaries(tx, conversation, runs)
    removal.items += [summary.id for summary in removed]
    removal.counts["summaries"] += len(removed)
    firsts = [summary.from_seq for summary in removed if summary.level == 1]
    if firsts:
        await _rewind_deriver(tx, conversation, "summaries", min(firsts) - 1, removal)


async def _rewind_deriver(tx: Transaction, conversation: UUID, deriver: str, to_seq: int, removal: Removal) -> None:
    if await erasure.rewind_watermark(tx, conversation, deriver, to_seq):
        removal.rewound_conversations[deriver] += 1


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


async def _find_facts_with_words_of(
    tx: Transaction, messages: Sequence[UUID], runs: Mapping[UUID, Sequence[SeqRange]]
) -> list[UUID]:
    """Return the facts that have a word of the erased messages which their own source messages do not have.

    - Facts derived by rules from one of the next `LOOKBACK_MESSAGES` messages: any word counts.
    - Facts of chat models, from any conversation, because a model is shown known facts: names and numbers count.
    """
    if not messages:
        return []
    words_of = {
        fact: set(content_words(text))
        for conversation, conversation_runs in runs.items()
        for fact, text in (
            await erasure.facts_after(tx, conversation, [last for _, last in conversation_runs], LOOKBACK_MESSAGES)
        ).items()
    }
    for fact, text in (await erasure.facts_by_models(tx)).items():
        names = set(content_words(" ".join(re.findall(r"\b[^\W\d_a-zäöüß]\w+|\b\d+\b", text))))
        words_of[fact] = words_of.get(fact, set()) | names
    erased = set(content_words(" ".join(await erasure.texts(tx, messages)))) if words_of else set()
    shared = {fact: words & erased for fact, words in words_of.items() if words & erased}
    said = await erasure.texts_of_facts(tx, list(shared), messages)
    return [fact for fact, words in shared.items() if words - set(content_words(said.get(fact, "")))]


# Each id costs a query for every table. Erased ids after these are searched for in the user's tables alone.
MAX_SCANNED_IDS = 20


def _searched_ids(certificate: Certificate) -> Sequence[UUID]:
    """Return the ids that must be gone: none for a retention, because its conversation goes on."""
    return () if certificate.scope == ErasureScope.RETENTION else certificate.erased


async def verify_certificate(database: Database, certificate: Certificate) -> ScanResult:
    """Search for a certificate's ids: all in its user's tables, the first `MAX_SCANNED_IDS` in every other table."""
    # A search for no id would find nothing, and look like a proof.
    if not certificate.erased:
        raise InvalidInput("This certificate names nothing that was erased: give it whole.")
    ids = _searched_ids(certificate)
    async with database.user_transaction(certificate.user_id) as tx:
        is_user = certificate.scope == ErasureScope.USER
        rows = await (erasure.count_user_rows(tx) if is_user else erasure.count_references(tx, ids))
    texts = [str(id) for id in ids[:MAX_SCANNED_IDS]]
    tables, elsewhere = await erasure.scan_tables(database, certificate.user_id, texts)
    found, count = +(rows | Counter(elsewhere)), len(ids)
    for in_space in certificate.spaces.values():
        scan = await verify_certificate(database, in_space)
        found, count = found + Counter(scan.found), count + scan.ids
    return ScanResult(tables, count, dict(found))
