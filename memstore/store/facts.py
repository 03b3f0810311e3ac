"""The long-term tier: facts and the messages that say them. `fact_history` logs changes of facts."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

import numpy as np

from memstore.models import Edge, Fact, FactColumns, FactSpan, KnownFact, RememberedFact
from memstore.providers import Vectors
from memstore.store import chunks
from memstore.store.database import Read, Transaction
from memstore.store.sql import statements

SQL = statements("facts")
MOST_REMEMBERED = 2000


@dataclass(frozen=True, slots=True)
class Source:
    """A message that says a fact. `recorded_at` is None for now."""

    fact_id: UUID
    span: FactSpan
    recorded_at: datetime | None = None


class StandingFact(NamedTuple):
    """The columns of a standing fact that a context needs."""

    id: UUID
    subject: str
    attribute: str | None
    value: str | None
    text: str
    importance: str
    valid_to: datetime | None
    occurred_at: datetime
    sources: list[UUID]


# Sources that were taken back, as facts and messages, and when each was recorded.
TakenSources = Mapping[tuple[UUID, UUID], datetime]


async def add(tx: Transaction, fact: FactColumns) -> datetime | None:
    """Store a fact; return when it was recorded, or None where the same one is there."""
    return await tx.value(SQL["add_fact"], datetime, **_columns(fact), recorded_at=None)


async def put(tx: Transaction, fact: FactColumns) -> None:
    """Store the changeable columns of a known fact; `fact_history.change` logs it too."""
    await tx.run(SQL["set_fact"], **_columns(fact))


async def add_sources(tx: Transaction, sources: Iterable[Source]) -> None:
    """Store which messages say which facts, and where."""
    rows = [asdict(said.span) | {"fact_id": said.fact_id, "recorded_at": said.recorded_at} for said in sources]
    await tx.run_many(SQL["add_source"], rows)


async def note_first_said(tx: Transaction, fact: UUID, time: datetime) -> None:
    """Let a fact have been said first at this time, where that is earlier than any known."""
    await tx.run(SQL["said_at"], id=fact, occurred_at=time)


async def facts(
    tx: Transaction,
    *,
    state: str | None = "active",
    type: str | None = None,
    kind: str | None = None,
    subject: str | None = None,
    ids: Sequence[UUID] | None = None,
    as_of: datetime | None = None,
    before: tuple[datetime, UUID] | None = None,
    limit: int | None = None,
    unused_since: datetime | None = None,
) -> list[Fact]:
    """Return the user's facts with their sources, the latest first; as they were known at a past moment.

    With a `limit` a page of them as they are now: those that come after one, by when that was said and its id. With
    `unused_since` those that were known then and of which no receipt since says that they were in a context.
    """
    values: dict[str, Any] = {"state": state, "type": type, "kind": kind, "subject": subject}
    values |= {"as_of": as_of, "unused_since": unused_since}
    if limit is not None:
        at, id = before or (None, None)
        ids = await tx.column(SQL["fact_page"], limit=limit, before=at, id=id, **values)
        return await _facts_of(tx, ids)
    wanted = None if ids is None else list(ids)
    return await tx.all(SQL["facts"], _with_sources, ids=wanted, **values)


async def naming(tx: Transaction, name: str) -> list[Fact]:
    """Return active facts of other subjects whose text has a name in it as a whole word, the latest first."""
    rows = await tx.tuples(SQL["naming"], name=name)
    whole = re.compile(rf"(?<!\w){re.escape(name)}(?!\w)", re.IGNORECASE)
    named = [id for id, text in rows if whole.search(text)]
    return await facts(tx, ids=named) if named else []


async def fact(tx: Transaction, id: UUID) -> Fact | None:
    """Return one fact, in whatever state."""
    return next(iter(await facts(tx, state=None, ids=[id])), None)


async def facts_said_by(tx: Transaction, messages: Sequence[UUID], *, limit: int) -> list[Fact]:
    """Return the facts that these messages say, of whatever state, the latest first."""
    rows = await tx.tuples(SQL["said_by"], messages=list(messages), limit=limit)
    return await _facts_of(tx, [id for _, id in rows])


async def _facts_of(tx: Transaction, ids: list[UUID]) -> list[Fact]:
    return await facts(tx, state=None, ids=ids) if ids else []


def standing(
    types: Sequence[str], first: Sequence[str], *, limit: int, as_of: datetime | None = None
) -> Read[list[StandingFact]]:
    """Return the read of facts that matter whatever is asked: all that are pinned, and so many others of these types.

    After those that are pinned the attributes `first` lead, in their order; then the types, the surest facts first.
    """
    values = {"types": list(types), "first": list(first), "limit": limit, "as_of": as_of}
    return Read(SQL["standing_facts"], values, lambda rows: list(map(StandingFact._make, rows)))


async def known(
    tx: Transaction,
    new: FactColumns,
    attributes: Sequence[str],
    span: FactSpan | None,
    query: Vectors | None,
    model: UUID | None,
    *,
    nearest: int,
    aside: tuple[list[str], str] | None = None,
    alias: str = "",
    named: Sequence[UUID] = (),
) -> list[KnownFact]:
    """Return what a new fact is judged by: itself, what it has these attributes in common with, the `nearest` ones.

    And of the subjects `aside` what fills a slot and has that name in it, and those that are `named`. `alias` is
    another name of its subject.

    Facts of any state, but of a slot's past only what held when it was said, and what came next. `span` is where it is
    said, `query` and `model` its vector and who made that.
    """
    values: dict[str, Any] = {name: getattr(new, name) for name in ("id", "subject", "type", "occurred_at")}
    values |= {"attributes": list(attributes), "query": query, "model_id": model, "limit": nearest}
    values |= {"subjects": aside[0] if aside else [], "called": aside[1] if aside else ""}
    values |= {"own": [new.subject, alias] if alias else [new.subject], "named": list(named)}
    place = {"message_id": None, "start": None, "stop": None} if span is None else asdict(span)
    return await tx.all(SQL["known"], _known, **values, **place)


async def remembered(
    tx: Transaction, model: UUID, until: datetime, *, aside: UUID | None = None, recipes: Collection[str] = ()
) -> list[RememberedFact]:
    """Return the latest active facts that were said by a moment and hold then.

    Of a redo they are those of these recipes and of people that other conversations than the one `aside` say.
    """
    values = {"model_id": model, "until": until, "aside": aside, "recipes": list(recipes), "limit": MOST_REMEMBERED}
    return await tx.all(SQL["remembered"], _remembered, **values)


async def types(tx: Transaction) -> list[str]:
    """Return the types that the user's facts have."""
    return await tx.column(SQL["types"])


async def edges(tx: Transaction, name: str) -> list[Edge]:
    """Return the relations of an entity to others."""
    return await tx.all(SQL["entity_edges"], Edge, entity=name)


async def drop_sources(tx: Transaction, fact: UUID) -> None:
    """Remove all sources of a fact."""
    await tx.run(SQL["drop_sources"], fact_id=fact)


async def take_back(
    tx: Transaction, conversation: UUID, *, but: Iterable[Source], waiting: Collection[UUID] = ()
) -> TakenSources:
    """Remove a conversation's sources but these; return the removed ones. Sources by hand stay.

    Those of the facts that are `waiting` stay where these are quarantined already, those of others where they are not.
    """
    places = [(one.fact_id, one.span.message_id, one.span.start, one.span.stop) for one in but]
    names = ("facts", "messages", "starts", "stops")
    kept = {name: [place[number] for place in places] for number, name in enumerate(names)}
    rows = await tx.tuples(SQL["remove_sources"], conversation_id=conversation, waiting=list(waiting), **kept)
    return {(fact, message): recorded_at for fact, message, recorded_at in rows}


async def remove_unsaid(tx: Transaction, facts: Sequence[UUID]) -> list[UUID]:
    """Remove those of these facts that no message says, with their chunks; return them."""
    unsaid = await tx.column(SQL["remove_unsaid"], ids=list(facts))
    await chunks.remove(tx, unsaid)
    await recompute_first_said(tx, sorted(set(facts) - set(unsaid)))
    return sorted(unsaid)


async def recompute_first_said(tx: Transaction, facts: Sequence[UUID]) -> None:
    """Let these facts have been said first when what is left of their sources first said it; each has one."""
    await tx.run(SQL["first_said"], ids=list(facts))


def _columns(fact: FactColumns) -> dict[str, Any]:
    return {name: getattr(fact, name) for name in FactColumns.model_fields if name not in ("user_id", "recorded_at")}


def _with_sources(said_in: list[list[Any]], first_said: datetime | None, **columns: Any) -> Fact:
    spans = [FactSpan(UUID(message), start, stop, trust) for message, start, stop, trust in said_in]
    if first_said is not None:
        columns["occurred_at"] = first_said
    return Fact.model_construct(sources=[span.message_id for span in spans], spans=spans, **columns)


def _known(
    last_said: datetime,
    by_hand: str | None,
    by_hand_at: datetime | None,
    cosine: float | None,
    same_words: bool,
    **columns: Any,
) -> KnownFact:
    return KnownFact(FactColumns.model_construct(**columns), last_said, by_hand, by_hand_at, cosine, same_words)


def _remembered(last_said: datetime, speaker: str | None, vector: bytes | None, **columns: Any) -> RememberedFact:
    read = None if vector is None else np.frombuffer(vector, ">f4", offset=4).astype(np.float32)
    return RememberedFact(FactColumns.model_construct(**columns), last_said, speaker, read)
