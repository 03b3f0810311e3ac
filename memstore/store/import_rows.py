"""Rows as they were elsewhere, with their times: what a restore writes. It never changes what is stored."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from memstore.events import EventType
from memstore.models import Conversation, FactColumns, Json, Message, Summary
from memstore.store import chunks, documents, embedding_models, fact_history, facts, messages
from memstore.store.chunks import NewChunk
from memstore.store.database import Transaction
from memstore.store.facts import Source
from memstore.store.rows import FactOnRecord, FactWithHistory, HashedChunk
from memstore.store.sql import statements
from memstore.store.watermarks import DERIVERS

SQL = statements("import_rows")


async def add_user(scope: Transaction, name: str, settings: Json, created_at: datetime) -> None:
    """Make a user, where it is not there."""
    await scope.run(SQL["add_user"], name=name, settings=settings, created_at=created_at)


async def add_conversation(
    scope: Transaction,
    conversation: Conversation,
    watermarks: Mapping[str, tuple[int, str | None]],
    setting_changes: Iterable[Json],
) -> None:
    """Make a conversation with its watermarks, those that are not given at 0, and what its settings were."""
    place = {"conversation_id": conversation.id}
    await scope.run(SQL["add_conversation"], **vars(conversation))
    marks = {deriver: watermarks.get(deriver, (0, None)) for deriver in DERIVERS}
    rows = [place | {"deriver": name, "done_seq": seq, "recipe": recipe} for name, (seq, recipe) in marks.items()]
    await scope.run_many(SQL["add_derivation"], rows)
    if changes := [place | change for change in setting_changes]:
        await scope.run_many(SQL["add_setting_change"], changes)


async def taken(scope: Transaction, conversation: UUID, seqs: Sequence[int]) -> set[int]:
    """Return those of these numbers that messages of a conversation have."""
    return set(await scope.column(SQL["taken"], conversation_id=conversation, seqs=list(seqs)))


async def embedded(scope: Transaction, conversation: UUID) -> int:
    """Return up to which message a conversation is made into units; what is above that, the deriver will."""
    return await scope.value(SQL["embedded"], int, conversation_id=conversation) or 0


async def add_messages(scope: Transaction, new: Sequence[Message]) -> None:
    """Store messages of one conversation under their numbers, which are free; nothing is pending by it yet."""
    place, last = new[0].conversation_id, max(message.seq for message in new)
    first, tokens = min(message.seq for message in new), sum(message.tokens for message in new)
    scope.happened(EventType.MESSAGE_ADDED, place, from_seq=first, to_seq=last, tokens=tokens)
    await scope.run_many(messages.SQL["add_message"], [messages.row_of(message) for message in new])
    await scope.run(SQL["reach"], id=place, last_seq=last)


async def pend(scope: Transaction) -> None:
    """Have derivers take up what came in above the watermarks."""
    await scope.run(SQL["pend"])


async def add_summaries(scope: Transaction, new: Sequence[Summary]) -> None:
    """Store summaries."""
    await scope.run_many(SQL["add_summary"], [vars(summary) for summary in new])


async def known_facts(scope: Transaction, ids: Sequence[UUID]) -> dict[UUID, FactOnRecord]:
    """Return those of these facts that are stored, by id."""
    found = await scope.all(SQL["known_facts"], _known, ids=list(ids))
    return {one.fact.id: one for one in found}


async def places(scope: Transaction, ids: Sequence[UUID]) -> dict[UUID, UUID]:
    """Return the conversations of these messages, of those that are stored."""
    return dict(await scope.tuples(SQL["places"], ids=list(ids)))


async def add_facts(scope: Transaction, new: Sequence[FactWithHistory]) -> None:
    """Store facts that are not there, with their sources and their history."""
    await scope.run_many(SQL["add_fact"], [vars(one.fact) for one in new])
    await facts.add_sources(scope, [Source(one.fact.id, span, at) for one in new for span, at in one.sources])
    if changes := [change | {"fact_id": one.fact.id} for one in new for change in one.history]:
        await scope.run_many(fact_history.SQL["add_change"], changes)


async def add_units(scope: Transaction, new: Sequence[HashedChunk], model: UUID | None) -> None:
    """Store units that are not there, recorded when they were, with the vectors of a model."""
    if not new:
        return
    first = await chunks.take_numbers(scope, [one.frequencies for one in new])
    await scope.run_many(SQL["add_text"], [_unit(one, number) for number, one in enumerate(new, first)])
    vectors = [(one.kept.unit.key, one.kept.vector) for one in new if one.kept.vector is not None]
    if vectors and model is not None:
        await embedding_models.add_vectors(scope, vectors, model)


async def add_documents(scope: Transaction, new: Sequence[Json], vectors: Sequence[Json]) -> None:
    """Store documents that are not there, with their vectors."""
    await scope.run_many(SQL["add_document"], new)
    if vectors:
        await scope.run_many(documents.SQL["add_vector"], vectors)


def _unit(one: HashedChunk, number: int) -> dict[str, object]:
    row = chunks.chunk_row(NewChunk(one.kept.unit, one.terms, one.frequencies, one.kept.vector, one.tags), number)
    return row | {"recorded_at": one.kept.recorded_at}


def _known(changes: list[UUID], **row: Any) -> FactOnRecord:
    return FactOnRecord(FactColumns.model_construct(**row), frozenset(changes))
