"""Retention as ordinary work: messages older than they are kept are erased, with all that rests on them.

So are documents whose time is over.
"""

from __future__ import annotations

from uuid import UUID

from memstore.derive.erasure.erase import Target, erase
from memstore.models import ErasureScope
from memstore.settings import Settings
from memstore.store import documents, retention
from memstore.store.database import Database


async def retain(database: Database, user: UUID, settings: Settings) -> int:
    """Erase the messages of a user that are older than they are kept; give how many.

    Each conversation in a transaction of its own; killed in between, the next time goes on. How old a message is goes
    by when it was said: what an import brings of a time before is not kept for long either.
    """
    async with database.scope(user) as scope:
        await documents.expire(scope)
        expired = await retention.expired(scope, settings.message_retention_days)
    erased = 0
    for one in expired:
        target = Target(ErasureScope.RETENTION, user, one.conversation_id, before=one.before)
        erased += (await erase(database, target)).counts.get("messages", 0)
    return erased
