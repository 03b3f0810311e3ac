"""Erasing: one transaction through every table, and the certificate of it.

All or nothing: killed in the middle, nothing was done. Done twice, the second time there is nothing left to do, and its
certificate says so. Whoever read before it and writes after it is refused (`erasures.unless_erased`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import count
from uuid import UUID

from memstore import ids
from memstore._compat import to_thread
from memstore.derive.erasure import part, resting
from memstore.derive.erasure.part import Removed
from memstore.errors import DatabaseError, NotFound
from memstore.events import Event, EventType
from memstore.models import Certificate, ErasureScope, ScanResult
from memstore.store import erasures, queue, queue_schema, remains, removals, tombstones, vector_indexes
from memstore.store.database import Database, Transaction
from memstore.store.erasures import Locked
from memstore.store.removals import Doomed

VACUUM = (
    "rows are gone; their bytes stay in the database's files until VACUUM and new rows take their place, and in "
    "its log and in backups until those are gone (docs/reference/erasure.md)"
)


@dataclass(frozen=True, slots=True)
class Target:
    """What is to be erased: `ids` are messages or facts, `before` says until when they were said."""

    scope: ErasureScope
    user_id: UUID
    conversation_id: UUID | None = None
    ids: tuple[UUID, ...] = ()
    before: datetime | None = None

    @property
    def erased(self) -> tuple[UUID, ...]:
        """The ids of what was asked for."""
        return self.ids or (self.conversation_id or self.user_id,)


class _Rehearsed(Exception):
    """Takes back what a rehearsal did."""

    def __init__(self, certificate: Certificate) -> None:
        super().__init__(certificate)
        self.certificate = certificate


async def erase(database: Database, target: Target, *, dry_run: bool = False) -> Certificate:
    """Erase; give the certificate. With `dry_run` all of it is done and taken back.

    Raises `NotFound` for a message or a fact that there is not and that was not erased either.
    """
    for tried in count(1):
        try:
            certificate = await _erased(database, target, dry_run)
            break
        except _Rehearsed as rehearsed:
            return rehearsed.certificate
        except DatabaseError as error:
            if not erasures.is_in_the_way(error) or tried == erasures.TRIES:
                raise
    database.cache.forget(target.user_id)
    return await _cleared(database, target, certificate)


async def _erased(database: Database, target: Target, dry_run: bool) -> Certificate:
    async with database.scope(target.user_id) as scope:
        models = await vector_indexes.indexed(scope) if target.scope == ErasureScope.USER else []
        certificate = await _certified(scope, target, ids.uuid7())
        if dry_run:
            raise _Rehearsed(replace(certificate, id=None, recorded_at=None))
        if target.scope != ErasureScope.USER and not certificate.is_empty:
            scope.happened(EventType.ERASED, None, **_told(certificate))
    if target.scope == ErasureScope.USER:  # whose outbox is gone
        database.dispatcher.publish([Event(target.user_id, EventType.ERASED, None, _told(certificate))])
    for model in models:
        await vector_indexes.drop(database, target.user_id, model)
    return certificate


async def _certified(scope: Transaction, target: Target, id: UUID) -> Certificate:
    everything = target.scope == ErasureScope.USER
    places = None if everything else await _places(scope, target)
    locked = await erasures.lock(scope, places)
    certificate = Certificate(target.scope, target.user_id, target.erased, target.conversation_id, id=id)
    doomed = await _doomed(scope, target) if locked else []
    digests = await _digests(scope, target, doomed)
    if everything:
        counts: Mapping[str, int] = await removals.user(scope)
        counts = Counter(counts) + Counter(await erasures.remove_of_operator(scope))
        scan = ScanResult(remains.TABLES_OF_USER, 1, await remains.of_user(scope))
        certificate = replace(certificate, counts=counts, scan=scan)
    elif locked is not None:
        removed = await _removed(scope, target, doomed, locked)
        scan = await part.scanned(scope, (*target.erased, *removed.messages))
        certificate = replace(certificate, counts=+removed.counts, again=dict(removed.again), scan=scan)
    if not digests and certificate.is_empty:  # nothing was there: nothing is kept of it either
        return replace(certificate, id=None)
    await erasures.count(scope)
    kept = await tombstones.add(scope, id, digests)
    certificate = replace(certificate, tombstones=kept, hints=(VACUUM,))
    return replace(certificate, recorded_at=await erasures.keep(scope, certificate))


async def _places(scope: Transaction, target: Target) -> list[UUID]:
    """Give the conversations of which something is erased."""
    if target.conversation_id is not None:
        return [target.conversation_id]
    if target.scope == ErasureScope.FACT:
        return []
    return list(dict.fromkeys(one.conversation_id for one in await removals.doomed(scope, messages=target.ids)))


async def _doomed(scope: Transaction, target: Target) -> list[Doomed]:
    if target.scope == ErasureScope.FACT:
        return []
    return await removals.doomed(
        scope, conversation=target.conversation_id, messages=target.ids or None, before=target.before
    )


async def _digests(scope: Transaction, target: Target, doomed: list[Doomed]) -> set[bytes]:
    """Give the tombstones of what goes; raise `NotFound` for what is not there and never was."""
    key = await tombstones.key(scope)
    if target.ids:
        await _check_known(scope, target, {one.id for one in doomed})
    if target.scope == ErasureScope.FACT:
        going = await resting.with_former(scope, target.ids)
        return await to_thread(lambda: {tombstones.of_item(key, fact) for fact in going})
    unnamed = [one.id for one in doomed if one.unnamed]
    said = await removals.contents(scope, unnamed) if unnamed else []
    return await to_thread(
        lambda: {tombstones.of_item(key, one.id) for one in doomed} | {tombstones.of_content(key, one) for one in said}
    )


async def _check_known(scope: Transaction, target: Target, found: set[UUID]) -> None:
    if target.scope == ErasureScope.FACT:
        found = set(await removals.known_facts(scope, target.ids))
    missing = set(target.ids) - found
    missing -= await tombstones.erased_items(scope, missing)
    if missing:
        names = ", ".join(str(one) for one in sorted(missing)[:3])
        raise NotFound(f"This user has no {target.scope} {names}. Nothing was erased.")


async def _removed(scope: Transaction, target: Target, doomed: list[Doomed], locked: Locked) -> Removed:
    if target.scope == ErasureScope.FACT:
        return await part.facts(scope, await resting.with_former(scope, target.ids), locked)
    removed = await part.messages(scope, doomed, locked)
    if target.scope == ErasureScope.CONVERSATION and target.conversation_id is not None:
        removed.counts.update(await part.conversation(scope, target.conversation_id))
    return removed


def _told(certificate: Certificate) -> dict[str, object]:
    """Give what the outbox says: not even ids of what is gone, which the certificate has."""
    return {
        "erasure": str(certificate.id),
        "scope": str(certificate.scope),
        "counts": dict(certificate.counts),
    }


async def _cleared(database: Database, target: Target, certificate: Certificate) -> Certificate:
    """Take jobs out of the queue, where there is one. They hold ids, and one that is left finds nothing to do."""
    if target.scope not in (ErasureScope.USER, ErasureScope.CONVERSATION):
        return certificate
    try:
        if not await to_thread(queue_schema.is_made, database.url):
            return certificate
        jobs = await queue.forget(database, target.user_id, target.conversation_id)
    except DatabaseError:
        return replace(certificate, hints=(*certificate.hints, "this login may not touch the queue: jobs are left"))
    return replace(certificate, counts=Counter(certificate.counts) + Counter(jobs=jobs))
