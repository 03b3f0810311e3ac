"""A user's rows as an export reads them, of one moment and one after the other, and as a restore writes them.

Rows come in with the times that they had elsewhere. A restore never changes what is stored.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from memstore.models import Conversation, EventType, FactColumns, Json, Message
from memstore.store import documents, facts, messages, summaries
from memstore.store.chunks import read_vectors
from memstore.store.database import Transaction
from memstore.store.rows import ConversationRow, ItemRow, Lists, Owner, row_builder
from memstore.store.sql import statements
from memstore.store.tables import exported_lists
from memstore.store.tokenize import TOKENIZER_VERSION
from memstore.store.watermarks import DERIVERS

SQL = statements("archive")
ITEMS = {
    "messages": (SQL["messages"], messages.build_message),
    "summaries": (SQL["summaries"], summaries.build_summary),
    "facts": (SQL["facts"], row_builder(FactColumns)),
}


async def owner(tx: Transaction) -> Owner | None:
    """Return the user of the scope; None if it does not exist."""
    return await tx.one(SQL["owner"], Owner)


async def read_conversations(tx: Transaction, only: UUID | None = None) -> AsyncIterator[ConversationRow]:
    """Return the conversations, or one, in the order of ids."""
    after = UUID(int=0)
    while page := await tx.all(SQL["conversations"], _conversation_row, after=after, only=only, limit=200):
        for row in page:
            yield row
        after = page[-1].conversation.id


async def read_items(tx: Transaction, kind: str, **values: Any) -> AsyncGenerator[ItemRow]:
    """Return messages, summaries or facts, in order or by their ids; nothing else is to be asked meanwhile.

    `with_chunks` reads them with their chunks, these with vectors of `model_id`. Messages and summaries are of
    `conversation_id`; of facts `by_hand` are those alone.
    """
    statement, build = ITEMS[kind]
    async for row in tx.stream(statement, dict[str, Any], **values):
        yield _item(build, row, kind)


async def read_documents(tx: Transaction) -> AsyncGenerator[dict[str, Any]]:
    """Return the documents by id, with vectors as [path, model, vector, text]; nothing else is to be asked."""
    async for row in tx.stream(SQL["documents"], dict[str, Any]):
        yield row


def _conversation_row(watermarks: dict[str, list[Any]], lists: Lists, **row: Any) -> ConversationRow:
    marks = {name: (seq, recipe) for name, (seq, recipe) in watermarks.items()}
    return ConversationRow(messages.build_conversation(**row), marks, _in_order("conversations", lists))


def _in_order(parent: str, lists: Lists) -> Lists:
    return {listed.name: lists[listed.name] for listed in exported_lists(parent).values()}


def _item(build: Any, row: dict[str, Any], kind: str) -> ItemRow:
    stored, sent = row.pop("chunks") or [], row.pop("vectors") or b""
    lists = _in_order(kind, row.pop("lists"))
    count = sum(chunk[-1] for chunk in stored)
    vectors = iter(read_vectors(sent, count)) if count else iter(())
    columns = ("start", "stop", "conversation_id", "recorded_at", "vector")
    chunks = [
        dict(zip(columns, (*chunk, next(vectors) if has_vector else None), strict=True))
        for *chunk, has_vector in stored
    ]
    return ItemRow(build(**row), chunks, lists)


# --- what a restore writes


async def add_user(tx: Transaction, name: str, settings: Json, created_at: datetime) -> None:
    values = {"name": name, "tokenizer": TOKENIZER_VERSION, "settings": settings, "created_at": created_at}
    await tx.run(SQL["add_user"], **values)


async def add_conversation(
    tx: Transaction, conversation: Conversation, watermarks: Mapping[str, tuple[int, str | None]]
) -> None:
    """Make a conversation with its watermarks, by default 0."""
    place = {"conversation_id": conversation.id}
    await tx.run(SQL["add_conversation"], **vars(conversation))
    marks = {deriver: watermarks.get(deriver, (0, None)) for deriver in DERIVERS}
    rows = [place | {"deriver": name, "done_seq": seq, "recipe": recipe} for name, (seq, recipe) in marks.items()]
    await tx.run_many(SQL["add_derivation"], rows)


async def add_lists(tx: Transaction, parent: str, lists: Mapping[UUID, Lists]) -> None:
    """Add the rows that are lists in the lines of a table, by the id of the row to which they belong."""
    for table, listed in exported_lists(parent).items():
        rows = [{listed.key: id} | row for id, by_name in lists.items() for row in by_name[listed.name]]
        await tx.run_many(SQL[f"add_{table}"], rows)


async def taken_numbers(tx: Transaction, conversation: UUID, seqs: Sequence[int]) -> set[int]:
    return set(await tx.column(SQL["taken"], conversation_id=conversation, seqs=list(seqs)))


async def last_with_chunks(tx: Transaction, conversation: UUID) -> int:
    """Return up to which message a conversation has chunks; the deriver makes those of later ones."""
    return await tx.value(SQL["embedded"], int, conversation_id=conversation) or 0


async def add_messages(tx: Transaction, new: Sequence[Message]) -> None:
    """Store messages of one conversation under their free numbers; they are not pending yet."""
    place, last = new[0].conversation_id, max(message.seq for message in new)
    first, tokens = min(message.seq for message in new), sum(message.tokens for message in new)
    tx.record_event(EventType.MESSAGE_ADDED, place, from_seq=first, to_seq=last, tokens=tokens)
    await tx.run_many(messages.SQL["add_message"], [messages.row_of(message) for message in new])
    await tx.run(SQL["reach"], id=place, last_seq=last)


async def make_pending(tx: Transaction) -> None:
    await tx.run(SQL["pend"])


async def places(tx: Transaction, ids: Sequence[UUID]) -> dict[UUID, UUID]:
    return dict(await tx.tuples(SQL["places"], ids=list(ids)))


async def add_facts(tx: Transaction, new: Sequence[FactColumns]) -> None:
    await tx.run_many(facts.SQL["add_fact"], [vars(fact) for fact in new])


async def add_documents(tx: Transaction, new: Sequence[Json], vectors: Sequence[Json]) -> None:
    await tx.run_many(SQL["add_document"], new)
    await tx.run_many(documents.SQL["add_vector"], vectors)
