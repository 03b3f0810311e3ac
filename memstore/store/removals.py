"""Removals: what stands in the tables of a user, a conversation, messages or facts, taken out and counted.

Children go before their parents, so that each table's rows are counted and no foreign key finds any left.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from memstore.models import Message
from memstore.store import items
from memstore.store.database import Transaction
from memstore.store.statements import statements

SQL = statements("removals")
OF_USER = {
    "item_vectors": SQL["user_item_vectors"],
    "item_text": SQL["user_item_text"],
    "term_postings": SQL["user_term_postings"],
    "fact_sources": SQL["user_fact_sources"],
    "fact_changes": SQL["user_fact_changes"],
    "facts": SQL["user_facts"],
    "summaries": SQL["user_summaries"],
    "receipts": SQL["user_receipts"],
    "events": SQL["user_events"],
    "setting_changes": SQL["user_setting_changes"],
    "dead_letters": SQL["user_dead_letters"],
    "derivations": SQL["user_derivations"],
    "messages": SQL["user_messages"],
    "conversations": SQL["user_conversations"],
    "model_usage": SQL["user_model_usage"],
    "counter_drift": SQL["user_counter_drift"],
    "embedding_models": SQL["user_embedding_models"],
    "document_vectors": SQL["user_document_vectors"],
    "documents": SQL["user_documents"],
    "users": SQL["user_users"],
}
OF_CONVERSATION = {
    "events": SQL["conversation_events"],
    "setting_changes": SQL["conversation_setting_changes"],
    "derivations": SQL["conversation_derivations"],
    "conversations": SQL["conversation_conversations"],
}


class Doomed(NamedTuple):
    """A message that is to go; `unnamed` has no external id."""

    id: UUID
    conversation_id: UUID
    seq: int
    recorded_at: datetime
    unnamed: bool


class Covering(NamedTuple):
    """A summary that was removed, as it was over messages that go."""

    id: UUID
    level: int
    from_seq: int
    to_seq: int


class Resting(NamedTuple):
    """A fact that a message says which is to go.

    `said_elsewhere` by a message that stays, too; `born_here`: its words are of one that goes; `ended_others`, and one
    that goes said it last; `entered` by hand, or `retracted`.
    """

    id: UUID
    said_elsewhere: bool
    born_here: bool
    ended_others: bool
    entered: bool
    retracted: bool


class FollowingFact(NamedTuple):
    """A fact that is said shortly after messages that go, and the message that says it."""

    id: UUID
    text: str
    said: str | None


class Begin(NamedTuple):
    """A message of a conversation from which on facts are derived again."""

    conversation_id: UUID
    seq: int


async def doomed(
    scope: Transaction,
    *,
    conversation: UUID | None = None,
    messages: Sequence[UUID] | None = None,
    before: datetime | None = None,
) -> list[Doomed]:
    """Give the messages that an erasure is of, by conversation and in order."""
    ids = None if messages is None else list(messages)
    rows = await scope.tuples(SQL["doomed"], conversation_id=conversation, ids=ids, before=before)
    return [Doomed(*row) for row in rows]


async def contents(scope: Transaction, messages: Sequence[UUID]) -> list[Message]:
    """Give of these messages those without an external id, as far as they are known by what they say."""
    return await scope.all(SQL["contents"], Message.model_construct, ids=list(messages))


async def texts(scope: Transaction, messages: Sequence[UUID]) -> list[str]:
    """Give all that these messages say."""
    return [text for (text,) in await scope.tuples(SQL["texts"], ids=list(messages))]


async def user(scope: Transaction) -> dict[str, int]:
    """Remove everything of the user; give how many rows, by table."""
    return {table: await scope.run(statement) for table, statement in OF_USER.items()}


async def conversation(scope: Transaction, conversation: UUID) -> dict[str, int]:
    """Remove a conversation of which no message, summary, receipt or letter is left; give how many rows, by table."""
    return {
        table: await scope.run(statement, conversation_id=conversation) for table, statement in OF_CONVERSATION.items()
    }


async def summaries_over(scope: Transaction, conversation: UUID, runs: Sequence[tuple[int, int]]) -> list[Covering]:
    """Remove the summaries, of any level, that are over messages of these runs of numbers."""
    firsts, lasts = [first for first, _ in runs], [last for _, last in runs]
    values = {"conversation_id": conversation, "firsts": firsts, "lasts": lasts}
    return [Covering(*row) for row in await scope.tuples(SQL["summaries_over"], **values)]


async def back_to(scope: Transaction, conversation: UUID, deriver: str, to_seq: int) -> bool:
    """Take a deriver back to a message; False where it has not come so far."""
    values = {"conversation_id": conversation, "deriver": deriver, "to_seq": to_seq}
    return bool(await scope.run(SQL["back_to"], **values))


async def resting_facts(scope: Transaction, messages: Sequence[UUID], facts: Sequence[UUID]) -> list[Resting]:
    """Give the facts that these messages say, and these facts."""
    rows = await scope.tuples(SQL["resting_facts"], messages=list(messages), facts=list(facts))
    return [Resting(*row) for row in rows]


async def facts_after(scope: Transaction, conversation: UUID, lasts: Sequence[int], within: int) -> list[FollowingFact]:
    """Return the facts of the next `within` messages after each of these numbers."""
    values = {"conversation_id": conversation, "lasts": list(lasts), "within": within}
    return [FollowingFact(*row) for row in await scope.tuples(SQL["facts_after"], **values)]


async def known_facts(scope: Transaction, facts: Sequence[UUID]) -> list[UUID]:
    """Give those of these facts that there are."""
    return [id for (id,) in await scope.tuples(SQL["known_facts"], facts=list(facts))]


async def edited_into(scope: Transaction, facts: Sequence[UUID]) -> list[UUID]:
    """Give the facts that people have edited to be these."""
    return [id for (id,) in await scope.tuples(SQL["edited_into"], facts=list(facts))]


async def edits_of(scope: Transaction, facts: Sequence[UUID], messages: Sequence[UUID]) -> list[UUID]:
    """Give what people have edited these facts to be, where no message says it but these."""
    rows = await scope.tuples(SQL["edits_of"], facts=list(facts), messages=list(messages))
    return [id for (id,) in rows]


async def sources_of(scope: Transaction, facts: Sequence[UUID], messages: Sequence[UUID]) -> list[Begin]:
    """Give where these facts are said by other messages than these."""
    rows = await scope.tuples(SQL["sources_of"], facts=list(facts), messages=list(messages))
    return [Begin(*row) for row in rows]


async def sources(scope: Transaction, facts: Sequence[UUID], messages: Sequence[UUID]) -> list[UUID]:
    """Remove that these messages say facts, and that anything says these facts; give a fact for each row."""
    rows = await scope.tuples(SQL["remove_sources"], facts=list(facts), messages=list(messages))
    return [fact for (fact,) in rows]


async def facts(scope: Transaction, facts: Sequence[UUID]) -> dict[str, int]:
    """Remove facts of which no source is left, and what was done to them; give how many rows, by table."""
    changes = await scope.run(SQL["remove_changes"], facts=list(facts))
    return {"fact_changes": changes, "facts": await scope.run(SQL["remove_facts"], facts=list(facts))}


async def forget_others(scope: Transaction, facts: Sequence[UUID]) -> None:
    """Take these facts out of the log of others, in whose place they stood."""
    await scope.run(SQL["forget_others"], facts=list(facts))


async def units(scope: Transaction, removed: Sequence[UUID]) -> dict[str, int]:
    """Remove the units and vectors of items, and count them off; give how many rows, by table."""
    vectors = await scope.run(SQL["remove_vectors"], items=list(removed))
    rows = await scope.tuples(SQL["remove_units"], items=list(removed))
    await scope.run(items.SQL["count_units"], units=-len(rows), length=-sum(length for (length,) in rows))
    return {"item_vectors": vectors, "item_text": len(rows)}


async def letters(scope: Transaction, conversation: UUID, from_seq: int) -> int:
    """Remove what models answered about a conversation from a message on."""
    return await scope.run(SQL["remove_letters"], conversation_id=conversation, from_seq=from_seq)


async def receipts(
    scope: Transaction, ids: Sequence[UUID], conversation: UUID | None = None, since: datetime | None = None
) -> list[UUID]:
    """Remove receipts that name these items, and those of a conversation since a moment; give their ids."""
    rows = await scope.tuples(
        SQL["remove_receipts"], conversation_id=conversation, since=since, ids=[str(id) for id in ids]
    )
    return [id for (id,) in rows]


async def events(scope: Transaction, ids: Sequence[UUID]) -> int:
    """Remove events that name these facts and receipts."""
    return await scope.run(SQL["remove_events"], ids=[str(id) for id in ids])


async def messages(scope: Transaction, ids: Sequence[UUID]) -> int:
    """Remove messages of which no fact, unit or summary is left."""
    return await scope.run(SQL["remove_messages"], ids=list(ids))
