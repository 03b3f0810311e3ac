"""Whether everything is derived, whole and rightly counted, and no job is left over."""

from __future__ import annotations

from uuid import UUID

from memstore.models import Wrong
from memstore.store import messages, queue, verify
from memstore.store.database import Database


async def verified(database: Database, *, user: UUID | None = None, queued: bool) -> list[Wrong]:
    """Give what is wrong, of one user or of all; nothing where all is as it should be. `queued`: there is a queue."""
    found = []
    async for owner, name in messages.everybody(database):
        if user in (None, owner):
            async with database.scope(owner) as own:
                found += [Wrong(name, problem, rows) for problem, rows in (await verify.problems(own)).items()]
    if queued:
        counts = await queue.counts(database)
        if counts.failed:
            found.append(Wrong(None, "jobs were given up: memstore jobs list --failed", counts.failed))
    return found
