"""Erasure: one transaction through every table, and its certificate.

All or nothing: killed in the middle, nothing was done. Done twice, the second time there is nothing left to do, and its
certificate says so. A process that read before it and writes after it is refused (`erasures.unless_erased`).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import count
from uuid import UUID

from memstore import ids
from memstore._compat import to_thread
from memstore.derive.erasure import dependents
from memstore.derive.erasure.dependents import Removal
from memstore.errors import DatabaseError, NotFound
from memstore.events import Event, EventType
from memstore.models import Certificate, ErasureScope, ScanResult
from memstore.store import erasure, queue, tombstones, vector_indexes
from memstore.store.database import Database, Transaction
from memstore.store.erasure import LockedUser, MessageToDelete

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
        database.dispatcher.publish([Event(target.user_id, EventType.ERASED, None, body)])
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
        scan = await dependents.scan_for(scope, (*erased, *removal.messages))
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
        facts = await dependents.find_with_former(scope, target.ids)
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
        facts = await dependents.find_with_former(scope, target.ids)
        return await dependents.remove_facts(scope, facts, locked)
    removal = await dependents.remove_messages(scope, doomed, locked)
    if target.scope == ErasureScope.CONVERSATION and target.conversation_id is not None:
        removal.counts.update(await dependents.remove_conversation(scope, target.conversation_id))
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
