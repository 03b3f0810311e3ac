"""Erasure: its locks, its deletions, its certificates, and the search for remains.

An erasure locks in this order: the user's row against derivers, then the conversations against new messages, then the
user's row against everybody. Other writers hold one of these and wait for no other, or for a moment. If a deadlock
happens all the same, the erasure gives way and begins again, since it can wait.

Each table's rows are counted before they go; those of a message, a conversation or a user then go by
foreign key. Remains are searched as the login itself, beyond any user's scope.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from itertools import product
from typing import LiteralString, NamedTuple, cast
from uuid import UUID

import psycopg
from psycopg.sql import SQL as Composable, Identifier

from memstore.errors import DatabaseError
from memstore.models import Certificate, Json, Message
from memstore.store import chunks, documents, vector_indexes
from memstore.store.database import Database, Transaction, read_one
from memstore.store.errors import ConcurrentUpdate
from memstore.store.sql import statements
from memstore.store.tables import TABLES, tables_of

SQL = statements("erasure")
MAX_LOCK_TRIES = 100
# By table, where they stand.
EVENTS_FOR_WEBHOOKS: dict[str, LiteralString] = {"webhook_events": "body", "procrastinate_jobs": "args->'event'"}


class UserVersion(NamedTuple):
    """When a user was made, and how often something of the user was erased.

    A writer whose reads are older would bring erased rows back.
    """

    created_at: datetime
    erasures: int


class Place(NamedTuple):
    conversation_id: UUID
    seq: int


# The user's version, None if there is no such user. Until the transaction ends, LOCKED_VERSION keeps others from
# erasing and deriving, UNERASED_VERSION from erasing only.
LOCKED_VERSION = read_one(SQL["hold"], UserVersion)
UNERASED_VERSION = read_one(SQL["share"], UserVersion)
VERSION = read_one(SQL["version"], UserVersion)


@asynccontextmanager
async def transaction_if_unchanged(
    database: Database, user: UUID, began: UserVersion | None
) -> AsyncIterator[Transaction]:
    """Open a transaction that writes what was made of what was read at a version.

    Raises `ConcurrentUpdate` where something of the user was erased since. Costs no round trip of its own.
    """
    async with database.user_transaction(user, [LOCKED_VERSION]) as tx:
        tx.check_writer()
        if tx.result(LOCKED_VERSION) != began:
            raise ConcurrentUpdate
        yield tx


async def lock_for_erasure(tx: Transaction, conversations: Sequence[UUID] | None) -> int | None:
    """Let nobody write anything of the user until the transaction ends; None where there is no such user.

    Returns up to which number chunks are in postings. `conversations` are those of which something is erased, None for
    all.
    """
    if await tx.get(LOCKED_VERSION) is None:
        return None
    await tx.run(SQL["impatiently"])
    ids = None if conversations is None else list(conversations)
    await tx.tuples(SQL["lock_conversations"], ids=ids)
    posted = await tx.value(SQL["lock_user"], int)
    # One may have been new meanwhile.
    await tx.tuples(SQL["lock_conversations"], ids=ids)
    return posted


async def raise_version(tx: Transaction) -> None:
    """Raise the user's version, so that nobody writes what was made of what was read before."""
    await tx.run(SQL["count_erasure"])


def is_blocked(error: DatabaseError) -> bool:
    """Return whether an erasure failed since others hold what it waits for: it is to begin again."""
    return isinstance(error.__cause__, psycopg.errors.LockNotAvailable | psycopg.errors.DeadlockDetected)


async def keep_certificate(tx: Transaction, certificate: Certificate) -> datetime:
    """Keep a certificate, which has an id; return when that was."""
    body = {key: value for key, value in certificate.as_dict().items() if key not in ("id", "recorded_at")}
    values = {"id": certificate.id, "scope": str(certificate.scope), "body": body}
    [recorded_at] = await tx.column(SQL["add_erasure"], **values)
    return cast(datetime, recorded_at)


async def certificates(tx: Transaction, *, id: UUID | None = None, limit: int) -> list[Certificate]:
    """Return a user's certificates, the latest first, or the one of an id."""
    return await tx.all(
        SQL["erasures"], lambda body, **columns: Certificate.from_dict(body | columns), id=id, limit=limit
    )


async def last_erasure(tx: Transaction, conversation: UUID | None = None) -> datetime | None:
    """Return when everything of the user, or of this conversation, was erased last; None where it never was."""
    return await tx.value(SQL["latest"], datetime, conversation_id=conversation)


class MessageToDelete(NamedTuple):
    """A message that is to go; `unnamed` has no external id."""

    id: UUID
    conversation_id: UUID
    seq: int
    recorded_at: datetime
    unnamed: bool


class RemovedSummary(NamedTuple):
    """A summary that was removed, as it was over messages that go."""

    id: UUID
    level: int
    from_seq: int


class DependentFact(NamedTuple):
    """A fact that a message says which is to go.

    `said_elsewhere` by a message that stays, too; `born_here`: its words are of one that goes; `ended_others`, and one
    that goes said it last; `entered` by hand, or `retracted`. `said` is what the messages say that stay.
    """

    id: UUID
    said_elsewhere: bool
    born_here: bool
    ended_others: bool
    entered: bool
    retracted: bool
    subject: str
    text: str
    said: str


async def messages_to_delete(
    tx: Transaction,
    *,
    conversation: UUID | None = None,
    messages: Sequence[UUID] | None,
    before: datetime | None = None,
) -> list[MessageToDelete]:
    """Return the messages that an erasure is of, by conversation and in order."""
    ids = None if messages is None else list(messages)
    return await tx.all(SQL["doomed"], MessageToDelete, conversation_id=conversation, ids=ids, before=before)


async def unnamed_messages(tx: Transaction, messages: Sequence[UUID]) -> list[Message]:
    """Return of these messages those without an external id, as far as they are known by what they say."""
    return await tx.all(SQL["contents"], Message.model_construct, ids=list(messages))


async def texts(tx: Transaction, messages: Sequence[UUID]) -> list[str]:
    return await tx.column(SQL["texts"], ids=list(messages))


async def remove_user(tx: Transaction) -> Counter[str]:
    """Remove everything of the user, and the operator's rows of this user alone; return how many rows, by table.

    Rows go with their user by foreign key. Those of tokens stay, without a name: where none was ever made, a server on
    this machine asks for none.
    """
    counts = await count_user_rows(tx)
    await tx.run(SQL["remove_user"])
    await tx.run(SQL["remove_backfills"], user=tx.user_id)
    await tx.run(SQL["take_back_tokens"], user=tx.user_id)
    return counts


async def count_user_rows(tx: Transaction) -> Counter[str]:
    """Return how many rows the user has, by table; those too that are the operator's."""
    counts = Counter(dict(await tx.tuples(SQL["rows_of_user"])))
    await tx.run(SQL["as_operator"])
    counts.update(dict(await tx.tuples(SQL["rows_of_operator"], user=tx.user_id)))
    return counts


async def remove_conversation(tx: Transaction, conversation: UUID) -> dict[str, int]:
    """Remove a conversation of which no message is left; return how many rows, by table."""
    counts = dict(await tx.tuples(SQL["rows_of_conversation"], conversation_id=conversation))
    await tx.run(SQL["remove_conversation"], conversation_id=conversation)
    return counts


async def remove_summaries(
    tx: Transaction, conversation: UUID, runs: Sequence[tuple[int, int]]
) -> list[RemovedSummary]:
    """Remove the summaries, of any level, that are over messages of these runs of numbers."""
    firsts, lasts = [first for first, _ in runs], [last for _, last in runs]
    values = {"conversation_id": conversation, "firsts": firsts, "lasts": lasts}
    return await tx.all(SQL["summaries_over"], RemovedSummary, **values)


async def rewind_watermark(tx: Transaction, conversation: UUID, deriver: str, to_seq: int) -> bool:
    """Take a deriver back to a message; False where it has not come so far."""
    values = {"conversation_id": conversation, "deriver": deriver, "to_seq": to_seq}
    return bool(await tx.run(SQL["back_to"], **values))


async def note_pending_since(tx: Transaction, conversations: Collection[UUID]) -> None:
    """Note when the first pending message of these conversations was said by now."""
    await tx.run(SQL["pending_since"], ids=list(conversations))


async def dependent_facts(tx: Transaction, messages: Sequence[UUID], facts: Sequence[UUID]) -> list[DependentFact]:
    return await tx.all(SQL["resting_facts"], DependentFact, messages=list(messages), facts=list(facts))


async def facts_after(tx: Transaction, conversation: UUID, lasts: Sequence[int], within: int) -> dict[UUID, str]:
    """Return the subject, value and text of facts of the next `within` messages after each of these numbers."""
    values = {"conversation_id": conversation, "lasts": list(lasts), "within": within}
    return dict(await tx.tuples(SQL["facts_after"], **values))


async def facts_by_models(tx: Transaction) -> dict[UUID, str]:
    """Return the subject, value and text of the facts that chat models made."""
    return dict(await tx.tuples(SQL["facts_by_models"]))


async def texts_of_facts(tx: Transaction, facts: Sequence[UUID], messages: Sequence[UUID]) -> dict[UUID, str]:
    """Return what other messages than these say where they say these facts."""
    values = {"facts": list(facts), "messages": list(messages)}
    return dict(await tx.tuples(SQL["texts_of_facts"], **values)) if facts else {}


async def known_facts(tx: Transaction, facts: Sequence[UUID]) -> list[UUID]:
    return await tx.column(SQL["known_facts"], facts=list(facts))


async def edited_into(tx: Transaction, facts: Sequence[UUID]) -> list[UUID]:
    return await tx.column(SQL["edited_into"], facts=list(facts))


async def edits_of(tx: Transaction, facts: Sequence[UUID], messages: Sequence[UUID]) -> list[UUID]:
    """Return what people have edited these facts to be, where no message says it but these."""
    return await tx.column(SQL["edits_of"], facts=list(facts), messages=list(messages))


async def sources_of(tx: Transaction, facts: Sequence[UUID], messages: Sequence[UUID]) -> list[Place]:
    """Return where these facts are said by other messages than these."""
    return await tx.all(SQL["sources_of"], Place, facts=list(facts), messages=list(messages))


async def move_chunks(tx: Transaction, facts: Sequence[UUID]) -> None:
    """Move the chunks of facts that their conversation no longer says to the first one that does."""
    await tx.run(SQL["move_chunks"], facts=list(facts))


async def successions(tx: Transaction, facts: Sequence[UUID]) -> list[tuple[UUID, UUID]]:
    """Return which facts these superseded, and by which they were superseded, as pairs with the successor last."""
    return await tx.tuples(SQL["successions"], facts=list(facts))


async def remove_facts(tx: Transaction, facts: Sequence[UUID], messages: Sequence[UUID]) -> dict[str, int]:
    """Remove facts with what was done to them, and these messages as sources; return how many rows, by table."""
    values = {"facts": list(facts), "messages": list(messages)}
    sources = await tx.run(SQL["remove_fact_sources"], **values)
    changes = await tx.run(SQL["remove_fact_changes"], **values)
    return {"fact_sources": sources, "fact_changes": changes, "facts": await tx.run(SQL["remove_facts"], **values)}


async def forget_replaced(tx: Transaction, facts: Sequence[UUID]) -> None:
    """Take these facts out of the log of others, in whose place they stood."""
    await tx.run(SQL["forget_others"], facts=list(facts))


async def remove_chunks(tx: Transaction, removed: Sequence[UUID]) -> dict[str, int]:
    """Remove the chunks and vectors of items, and count them off; return how many rows, by table."""
    vectors = await tx.run(SQL["remove_vectors"], items=list(removed))
    return {"item_vectors": vectors, "item_text": await chunks.remove(tx, removed)}


async def remove_invalid_responses(tx: Transaction, conversation: UUID, from_seq: int) -> int:
    """Remove what models answered about a conversation from a message on."""
    return await tx.run(SQL["remove_invalid_responses"], conversation_id=conversation, from_seq=from_seq)


async def remove_answers_about_facts(tx: Transaction, facts: Sequence[UUID], since: datetime | None) -> int:
    """Remove invalid responses for facts, of any conversation, since a moment and since these facts were recorded."""
    return await tx.run(SQL["remove_answers_about_facts"], facts=list(facts), since=since)


async def remove_receipts(tx: Transaction, ids: Sequence[UUID], since: datetime | None) -> list[UUID]:
    """Remove receipts that name these items or may quote them; return their ids.

    `since` is when the first message that goes was stored, None where facts alone go.
    """
    return await tx.column(SQL["remove_receipts"], ids=[str(id) for id in ids], since=since)


async def remove_receipts_of(tx: Transaction, conversation: UUID, since: datetime) -> list[UUID]:
    """Remove the receipts of a conversation since a moment; return their ids."""
    return await tx.column(SQL["remove_receipts_of"], conversation_id=conversation, since=since)


async def remove_events(tx: Transaction, ids: Sequence[UUID]) -> int:
    return await tx.run(SQL["remove_events"], ids=[str(id) for id in ids])


async def remove_messages(tx: Transaction, ids: Sequence[UUID]) -> dict[str, int]:
    """Remove messages of which no fact, chunk or summary is left; return how many rows, by table."""
    counts = dict(await tx.tuples(SQL["rows_of_messages"], ids=list(ids)))
    await tx.run(SQL["remove_messages"], ids=list(ids))
    return counts


async def trim(tx: Transaction, *, events: datetime, receipts: datetime) -> None:
    """Remove expired documents, and events and receipts recorded before these moments, in one round trip."""
    old = [(SQL["trim_events"], [{"before": events}]), (SQL["trim_receipts"], [{"before": receipts}])]
    await tx.run_together([*old, (documents.SQL["expire"], [{}])])


class ExpiredMessages(NamedTuple):
    """A conversation with messages that were said before a moment, until which its rule keeps none."""

    conversation_id: UUID
    before: datetime


async def expired_conversations(tx: Transaction, days: float) -> list[ExpiredMessages]:
    """Return a user's conversations with messages older than they are kept; `days` is the store's rule, 0 for ever."""
    return await tx.all(SQL["expired"], ExpiredMessages, days=days)


async def keep_user_settings(tx: Transaction, user_settings: Json) -> None:
    """Set settings of the user's own; None takes one away."""
    await tx.run(SQL["keep_settings"], settings=user_settings)


async def count_references(tx: Transaction, ids: Sequence[UUID]) -> Counter[str]:
    """Return how many rows name these messages, facts or conversations, by table that may."""
    counts = Counter(dict(await tx.tuples(SQL["ids_left"], ids=list(ids))))
    counts.update(dict(await tx.tuples(SQL["ids_left_in_json"], ids=list(ids), texts=[str(id) for id in ids])))
    return counts


async def scan_tables(database: Database, user: UUID, ids: Sequence[str]) -> tuple[int, dict[str, int]]:
    """Return how many tables there are, and how many of their rows have one of the user's ids, by table.

    A login that policies hold for sees the rows of this user alone.
    """
    counts: Counter[str] = Counter()
    async with database.owner_transaction() as connection:
        [(is_owner,)] = await (await connection.execute(vector_indexes.SQL["owner"])).fetchall()
        if database.capabilities.citus and database.capabilities.role and not is_owner:
            # Nodes do not know what else the login was granted.
            await database.take_role(connection)
        tables = await (await connection.execute(SQL["searched"], {"without": tables_of("kept")})).fetchall()
        harmless = [f"{table.name}.{column}" for table in TABLES for column in table.harmless]
        texts = {"tables": [table.name for table in TABLES], "harmless": harmless}
        [(counts["pg_stats"],)] = await (await connection.execute(SQL["statistics_of_texts"], texts)).fetchall()
        await connection.execute(SQL["as_user"], {"user": str(user)})
        for (table, columns), id in product(tables, ids):
            listed = Composable(", ").join([Identifier(column) for column in columns])
            event = Composable(EVENTS_FOR_WEBHOOKS.get(table, ""))
            search = Composable(SQL["events_with" if table in EVENTS_FOR_WEBHOOKS else "rows_with"])
            statement = search.format(table=Identifier(table), columns=listed, event=event)
            [(rows,)] = await (await connection.execute(statement, {"id": id})).fetchall()
            counts[table] += rows
    return len(tables), dict(+counts)
