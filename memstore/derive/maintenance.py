"""Maintenance after deriving: retention, and the indexes of users with very many chunks.

Recall is right without those indexes (postings and one of vectors), and slower. A user with fewer chunks needs none:
all of them are held in the process.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from uuid import UUID

from memstore._compat import to_thread
from memstore.derive.erasure import ErasureTarget, erase
from memstore.models import ErasureScope
from memstore.settings import Settings
from memstore.store import chunks, erasure, postings, vector_indexes
from memstore.store.database import Database
from memstore.store.embedding_models import MODELS, active_model
from memstore.store.errors import ConcurrentUpdate
from memstore.store.postings import PostingReach
from memstore.store.rows import EmbeddingModel


async def run_maintenance(database: Database, users: Iterable[UUID], settings: Settings) -> None:
    """Erase expired rows, and maintain the indexes of users with very many chunks."""
    for user in users:
        await apply_retention(database, user, settings)
        await maintain_indexes(database, user)


async def apply_retention(database: Database, user: UUID, settings: Settings) -> int:
    """Erase a user's expired documents, old events and receipts, and expired messages; return how many messages.

    Each conversation in a transaction of its own. The age of a message is that of its `occurred_at`: old messages of an
    import are not kept for long either.
    """
    now = datetime.now(UTC)
    events, receipts = timedelta(days=settings.event_retention_days), timedelta(days=settings.receipt_retention_days)
    async with database.user_transaction(user) as tx:
        await erasure.trim(tx, events=now - events, receipts=now - receipts)
        expired = await erasure.expired_conversations(tx, settings.message_retention_days)
    erased = 0
    for conversation in expired:
        target = ErasureTarget(ErasureScope.RETENTION, user, conversation.conversation_id, before=conversation.before)
        erased += (await erase(database, target)).counts.get("messages", 0)
    return erased


async def renew_terms(database: Database, user: UUID) -> None:
    """Make the terms of a user's chunks anew where an earlier tokenizer made them, in batches.

    Recall meanwhile finds what both have alike, which is nearly all. Stopped halfway, it begins again the next time.
    """
    after, seen = 0, False
    while True:
        async with database.user_transaction(user, [erasure.VERSION]) as tx:
            version = tx.result(erasure.VERSION)
            batch = await chunks.terms_to_renew(tx, after, limit=2000)
        if not batch:
            break
        seen, renewed = True, await to_thread(chunks.hash_anew, user, batch)
        if renewed:
            try:
                async with erasure.transaction_if_unchanged(database, user, version) as tx:
                    await chunks.renew_terms(tx, renewed)
            except ConcurrentUpdate:  # something was erased meanwhile, maybe one of them
                continue
        after = batch[-1].number
    # Another process may do the same.
    with suppress(ConcurrentUpdate):
        async with database.user_transaction(user) as tx:
            if seen and (await postings.reach(tx)).posted:
                await postings.forget(tx)
            await chunks.finish_terms(tx)


async def list_unindexed_users(database: Database) -> list[str]:
    """Return the names of users with more chunks than are held in a process, and not all of their indexes."""
    async with database.admin_transaction() as tx:
        users = await postings.large(tx, database.max_chunks)
    return [
        user.name
        for user in users
        if user.unposted >= postings.MIN_RUN_CHUNKS or await _find_unindexed(database, user.id) is not None
    ]


async def build_indexes(database: Database) -> list[str]:
    """Build the missing indexes of all users with very many chunks; return users for whom this login may not."""
    async with database.admin_transaction() as tx:
        users = await postings.large(tx, database.max_chunks)
    return [user.name for user in users if not await maintain_indexes(database, user.id)]


async def maintain_indexes(database: Database, user: UUID) -> bool:
    """Make or drop a user's indexes by the number of chunks; False if this login may not make one.

    If another process does so at the same moment, it is left to that one.
    """
    async with database.user_transaction(user) as tx:
        reach = await postings.reach(tx)
    try:
        if reach.chunks > database.max_chunks:
            await _add_postings(database, user, reach)
        elif reach.posted and reach.chunks <= database.max_chunks // 2:  # a user near the limit does not alternate
            async with database.user_transaction(user) as tx:
                await postings.forget(tx)
                models = await tx.get(MODELS)
            for model in models:
                await vector_indexes.drop(database, user, model.id)
    except ConcurrentUpdate:
        pass
    if reach.chunks <= database.max_chunks or (unindexed := await _find_unindexed(database, user)) is None:
        return True
    return await vector_indexes.build(database, user, unindexed.id, unindexed.dimensions, reach.chunks)


async def _add_postings(database: Database, user: UUID, reach: PostingReach) -> None:
    after = reach.posted
    while reach.last_chunk - after >= postings.MIN_RUN_CHUNKS:
        async with database.user_transaction(user) as tx:
            run = await postings.next_run(tx, after)
        # The last ones may be gone.
        if not run:
            return
        async with database.user_transaction(user, async_commit=True) as tx:
            await postings.post(tx, run, after)
        after = run[-1].number


async def _find_unindexed(database: Database, user: UUID) -> EmbeddingModel | None:
    """Return the active model if the user's vectors of it could have an index, and have none."""
    async with database.user_transaction(user) as tx:
        models = await tx.get(MODELS)
        model = active_model(models)
        if model is None or not vector_indexes.is_possible(model.dimensions):
            return None
        return None if await vector_indexes.is_ready(tx, model.id) else model
