"""Watermarks: how far each deriver got in each conversation. They are the queue: no job rows, nothing to reap.

Measured with 101 kills of workers during ingest: nothing lost, nothing doubled. A watermark moves by compare-and-set in
the transaction of the rows that it covers, and no transaction is open while a model works.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from typing import NamedTuple, TypeVar
from uuid import UUID

from memstore.models import HAND, UserSize
from memstore.store.database import Database, Transaction
from memstore.store.errors import ConcurrentUpdate
from memstore.store.rows import LaggingWork, PendingWork, StaleWork
from memstore.store.sql import statements

SQL = statements("watermarks")
DERIVERS = ("chunks", "summaries", "facts")
W = TypeVar("W", bound=PendingWork)


class ConversationKey(NamedTuple):
    user_id: UUID
    conversation_id: UUID


class Backlog(NamedTuple):
    """Pending work of a deriver: messages, conversations, and how many of these have failed so far."""

    deriver: str
    messages: int
    conversations: int
    failing: int


class PendingMessages(NamedTuple):
    """Pending work of a deriver: conversations, messages, their tokens, and the segments in which they are read."""

    deriver: str
    conversations: int
    messages: int
    tokens: int
    segments: int

    def plus(self, other: PendingMessages) -> PendingMessages:
        return PendingMessages(self.deriver, *(a + b for a, b in zip(self[1:], other[1:], strict=True)))


CONVERSATIONS_PER_PAGE = 500
BEGINNING = ConversationKey(UUID(int=0), UUID(int=0))


async def pending_work(
    tx: Transaction,
    deriver: str,
    *,
    only: UUID | None,
    conversation: UUID | None,
    after: PendingWork | None,
) -> list[PendingWork]:
    """Return conversations in which a deriver is behind, in the order of ids; those of one user with `only`."""
    values = {"deriver": deriver, "only": only, "conversation_id": conversation, "limit": CONVERSATIONS_PER_PAGE}
    return await tx.all(SQL["pending"], PendingWork, **values, **_after(after))


async def in_order(tx: Transaction, works: Sequence[W]) -> list[W]:
    """Return works of the user by the time of their next messages; stale ones begin with their first message."""
    done = [0 if isinstance(work, StaleWork) else work.done_seq for work in works]
    rows = await tx.tuples(SQL["next_said"], conversations=[work.conversation_id for work in works], done=done)
    # Where all is erased there is none.
    places, never = dict(rows), datetime.max.replace(tzinfo=UTC)
    return sorted(works, key=lambda work: places.get(work.conversation_id, never))


async def lagging_work(tx: Transaction, user: UUID, conversation: UUID) -> list[LaggingWork]:
    """Return the pending work of a conversation, in the order of derivers; in the operator's scope."""
    rows = await tx.all(SQL["behind"], LaggingWork, user=user, conversation_id=conversation)
    return sorted(rows, key=lambda work: DERIVERS.index(work.deriver))


async def next_in_line(tx: Transaction, work: LaggingWork) -> ConversationKey | None:
    """Return the conversation of the same user and backfill whose facts come next; in the operator's scope."""
    return await tx.one(SQL["next_in_line"], ConversationKey, user=work.user_id, backfill=work.backfill)


async def unfinished(
    tx: Transaction, backfill: UUID | None, *, unlike: Collection[UUID], after: ConversationKey
) -> list[ConversationKey]:
    """Return conversations in which a deriver may work, by id: of `backfill`, or with None of none in `unlike`."""
    values = {"backfill": backfill, "open": list(unlike), "limit": CONVERSATIONS_PER_PAGE}
    return await tx.all(SQL["unfinished"], ConversationKey, **values, **_after(after))


async def assign(tx: Transaction, backfill: UUID, derivers: Sequence[str], *, unlike: Collection[UUID]) -> int:
    """Assign the user's pending conversations, except those `unlike`, to a backfill; return how many watermarks."""
    return await tx.run(SQL["assign"], backfill=backfill, derivers=list(derivers), unlike=list(unlike))


async def pending_messages(tx: Transaction, *, gap_seconds: float, segment_tokens: int) -> list[PendingMessages]:
    """Return what waits for each deriver of the user.

    A segment ends at a silence of `gap_seconds` and at `segment_tokens`.
    """
    values = {"gap_seconds": gap_seconds, "segment_tokens": segment_tokens}
    return await tx.all(SQL["pending_messages"], PendingMessages, **values)


async def backfill_backlog(tx: Transaction, backfill: UUID) -> list[Backlog]:
    return await tx.all(SQL["backfill_backlog"], Backlog, backfill=backfill)


async def user_sizes(tx: Transaction, users: Sequence[UUID]) -> dict[UUID, UserSize]:
    """Return the sizes of those of these users who have conversations; in the operator's scope."""
    rows = await tx.tuples(SQL["user_sizes"], users=list(users))
    return {user: UserSize(conversations, messages) for user, conversations, messages in rows}


async def reopen_ended_sessions(database: Database, *, only: UUID | None) -> None:
    """Make sessions pending that have no summary yet and are over, by the clock or as another conversation begins."""
    async with database.admin_transaction() as tx:
        users: list[UUID] = await tx.column(SQL["ending"], only=only)
    for user in users:
        async with database.user_transaction(user) as tx:
            await tx.run(SQL["reopen"])


async def is_session_over(tx: Transaction, closes_at: datetime, recorded_at: datetime) -> bool:
    """Return whether a session is over: it is `closes_at`, or a conversation was begun since its last message."""
    return bool(await tx.value(SQL["is_over"], bool, closes_at=closes_at, recorded_at=recorded_at))


async def advance(
    tx: Transaction, work: PendingWork, to_seq: int, recipe: str | None, closes_at: datetime | None = None
) -> None:
    """Move the watermark from where it was read, or raise `ConcurrentUpdate`; note the recipe, None for several.

    At `closes_at` the deriver will have something to do even if no message comes (None: it has not).
    """
    values = {"conversation_id": work.conversation_id, "deriver": work.deriver}
    values |= {"recipe": recipe, "closes_at": closes_at}
    if not await tx.run(SQL["advance"], from_seq=work.done_seq, to_seq=to_seq, **values):
        raise ConcurrentUpdate


async def watermark(tx: Transaction, work: PendingWork) -> PendingWork | None:
    """Return where a deriver stands in a conversation by now; None where that is gone."""
    values = {"conversation_id": work.conversation_id, "deriver": work.deriver}
    return await tx.one(SQL["watermark"], PendingWork, **values)


async def fail(tx: Transaction, work: PendingWork, error: str) -> None:
    """Note why a deriver could not go on; its watermark stays."""
    values = {"conversation_id": work.conversation_id, "deriver": work.deriver, "from_seq": work.done_seq}
    await tx.run(SQL["fail"], error=error, **values)


async def backlog(tx: Transaction, *, only: UUID | None) -> dict[str, int]:
    return dict(await tx.tuples(SQL["backlog"], only=only))


async def stale_work(tx: Transaction, deriver: str, recipe: str) -> list[StaleWork]:
    """Return the user's conversations that another recipe derived, or that may have one of their own."""
    return await tx.all(SQL["outdated"], StaleWork, deriver=deriver, recipe=recipe)


def _after(last: PendingWork | ConversationKey | None) -> dict[str, UUID]:
    place = last or BEGINNING
    return {"after_user": place.user_id, "after_conversation": place.conversation_id}


async def mark_rederived(tx: Transaction, work: StaleWork, recipe: str | None, closes_at: datetime | None) -> None:
    """Note that a conversation is now derived by this recipe (None: by several), or raise `ConcurrentUpdate`."""
    values = {"conversation_id": work.conversation_id, "deriver": work.deriver, "done_seq": work.done_seq}
    if not await tx.run(SQL["redone"], old=work.recipe, recipe=recipe, closes_at=closes_at, **values):
        raise ConcurrentUpdate


async def find_problems(tx: Transaction) -> dict[str, int]:
    """Return what is not as it should be, in words, and how many rows that concerns; nothing where all is well."""
    read = {
        "messages wait for a deriver": SQL["waiting"],
        "watermarks do not know of the last message": SQL["watermarks"],
        "messages under the watermark have no chunk": SQL["unembedded"],
        "chunks are of nothing": SQL["orphans"],
        "chunks have no vector": SQL["without_vectors"],
        "facts have no source": SQL["unsourced_facts"],
        "summaries are of no messages": SQL["unsourced_summaries"],
        "the user's chunks are counted wrongly": SQL["miscounted"],
        "the user's postings are not those of the chunks": SQL["misposted"],
    }
    values = {"derivers": list(DERIVERS), "hand": HAND}
    counts = {problem: await tx.value(statement, int, **values) for problem, statement in read.items()}
    return {problem: rows for problem, rows in counts.items() if rows}
