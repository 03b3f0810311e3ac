"""The long-term tier: facts, the messages that say them, and the log of what was done to them.

The log has who changed which columns of a fact, so that each change can be undone and any past state seen.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import Any, NamedTuple
from uuid import UUID

from memstore import ids
from memstore.errors import Conflict, NotFound
from memstore.language import has_word
from memstore.models import (
    TYPE_ORDER,
    Edge,
    EventType,
    Fact,
    FactChange,
    FactColumns,
    FactSpan,
    FactStep,
    KnownFact,
    Scope,
    WebhookEvent,
    latest_first,
)
from memstore.providers import Vectors
from memstore.store import chunks, webhooks
from memstore.store.database import Read, Transaction, read_all
from memstore.store.sql import statements

SQL = statements("facts")
MAX_COMPARED_FACTS = 6
# A fact's identity may not change; when it was first said follows from its sources.
CHANGEABLE = FactColumns.model_fields.keys() - {"user_id", "id", "subject", "text", "occurred_at", "recorded_at"}


@dataclass(frozen=True, slots=True)
class Source:
    """A message that says a fact. `recorded_at` is None for now."""

    fact_id: UUID
    span: FactSpan
    recorded_at: datetime | None = None


# Sources that were taken back, as facts and messages, and when each was recorded.
TakenSources = Mapping[tuple[UUID, UUID], datetime]


async def add(tx: Transaction, fact: FactColumns) -> datetime | None:
    """Store a fact; return when it was recorded, or None where the same one is there."""
    if recorded_at := await tx.value(SQL["add_fact"], datetime, **_columns(fact), recorded_at=None):
        webhooks.note_created(tx, fact)
    return recorded_at


async def update(tx: Transaction, fact: FactColumns) -> None:
    """Store the changeable columns of a known fact; `change` logs it too."""
    await tx.run(SQL["set_fact"], **_columns(fact))


async def add_sources(tx: Transaction, sources: Iterable[Source]) -> None:
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
    before: UUID | None = None,
    limit: int | None = None,
    scope: Scope | None = None,
) -> list[Fact]:
    """Return the user's facts with their sources, what matters first; as they were known at a past moment.

    With a `limit` a page of them as they are now: those that come after the fact `before`.
    """
    values: dict[str, Any] = {"state": state, "type": type, "kind": kind, "subject": subject}
    hidden = [] if scope is None else (await out_of_scope(tx, scope, as_of)).facts
    values |= {"as_of": as_of, "type_order": list(TYPE_ORDER), "hidden": hidden}
    if limit is not None:
        ids = await tx.column(SQL["fact_page"], limit=limit, before=before, **values)
        if not ids and before is not None and await fact(tx, before) is None:
            raise NotFound(f"The fact {before}, after which the page begins, is gone: begin at the first page.")
        return await facts(tx, state=None, ids=ids) if ids else []
    return await tx.all(SQL["facts"], _with_sources, ids=None if ids is None else list(ids), **values)


async def facts_mentioning(tx: Transaction, name: str) -> list[Fact]:
    """Return active facts of other subjects whose text has a name in it as a whole word, the latest first."""
    rows = await tx.tuples(SQL["naming"], name=name)
    named = [id for id, text in rows if has_word(text, name)]
    return latest_first(await facts(tx, ids=named)) if named else []


async def fact(tx: Transaction, id: UUID) -> Fact | None:
    return next(iter(await facts(tx, state=None, ids=[id])), None)


async def facts_said_by(tx: Transaction, messages: Sequence[UUID], *, limit: int) -> list[Fact]:
    """Return the facts that these messages say, of whatever state, the latest first."""
    rows = await tx.tuples(SQL["said_by"], messages=list(messages), limit=limit)
    return latest_first(await facts(tx, state=None, ids=[id for _, id in rows]))


class OutOfScope(NamedTuple):
    """Conversations of other scopes than those that are asked for, and facts that only they say."""

    conversations: list[UUID]
    facts: list[UUID]


async def out_of_scope(tx: Transaction, scope: Scope, as_of: datetime | None) -> OutOfScope:
    """Return what is left out where something is asked in a scope."""
    [hidden] = await tx.all(SQL["out_of_scope"], OutOfScope, as_of=as_of, **_scopes(scope))
    return hidden


def _scopes(scope: Scope | None) -> dict[str, Any]:
    return {"scopes": scope and list(scope.names), "unscoped": scope is None or scope.unscoped}


def standing(types: Sequence[str], first: Sequence[str], scope: Scope | None, **values: Any) -> Read[list[Fact]]:
    """Return the read of facts that matter whatever is asked: all that are pinned, and so many others of these types.

    They have only the columns that a context needs: no type, state, recipe or language. After those that are pinned
    the attributes `first` lead, in their order; then the types, the surest facts first.
    Without a `scope` instructions are those of the conversation's own. `values` are the `limit`, `as_of`, and the
    `conversation_id`, with `own_scope` where it is not stored yet.
    """
    values |= {"types": list(types), "first": list(first), **_scopes(scope)}
    return read_all(SQL["standing_facts"], Fact.model_construct, **values)


async def nearest(
    tx: Transaction, new: Sequence[tuple[FactColumns, str, Vectors | None]], model: UUID | None
) -> list[set[UUID]]:
    """Return for each new fact, with another name of its subject and its vector, those that may be nearest to it.

    They are the nearest stored ones and all new ones before it, of the same person or theirs.
    """
    people = [tuple(name.partition("'s ")[0] for name in (fact.subject, alias)) for fact, alias, _ in new]
    candidates: list[set[UUID]] = [
        {row.id for row, _, _ in new[:place] if vector is not None and row.subject.partition("'s ")[0] in people[place]}
        for place, (_, _, vector) in enumerate(new)
    ]
    if model is not None:
        subjects, aliases = ([names[place] for names in people] for place in (0, 1))
        values = {"subjects": subjects, "aliases": aliases, "vectors": [vector for _, _, vector in new]}
        for place, id in await tx.tuples(SQL["nearest"], **values, model_id=model, limit=MAX_COMPARED_FACTS):
            candidates[place - 1].add(id)
    return candidates


async def known(
    tx: Transaction,
    new: FactColumns,
    attribute: str | None,
    span: FactSpan | None,
    query: Vectors | None,
    model: UUID | None,
    candidates: Collection[UUID] = (),
    *,
    other_subjects: tuple[list[str], str] | None = None,
    subject_alias: str = "",
    also_ids: Sequence[UUID] = (),
    conversation_id: UUID | None = None,
) -> list[KnownFact]:
    """Return the facts to compare a new one with: itself, those of this attribute, and the nearest.

    And those of `other_subjects` that fill a slot and have the name in their text, and those of `also_ids`. Facts of
    any state, but of a slot's past only what held when it was said, and what came next; of another scope than the
    conversation's only the same statement. `subject_alias` is another name of its subject, `span` where it is said,
    `query` and `model` its vector and who made that, `candidates` those of which the nearest are wanted.
    """
    values = new.model_dump(include={"id", "subject", "type", "occurred_at"})
    values |= {"attribute": attribute, "query": query, "model_id": model, "limit": MAX_COMPARED_FACTS}
    subjects, called = other_subjects or ([], "")
    values |= {"subjects": subjects, "called": called, "named": list(also_ids), "candidates": list(candidates)}
    values["own"] = [new.subject, subject_alias] if subject_alias else [new.subject]
    place = {"message_id": None, "start": None, "stop": None} if span is None else asdict(span)
    return [
        known_fact
        for known_fact, is_of_other_scope in await tx.all(
            SQL["known"], _known_in_scope, **values, **place, conversation_id=conversation_id
        )
        if not is_of_other_scope or known_fact.fact.id == new.id
    ]


async def said_after(tx: Transaction, subject: str, ids: Sequence[UUID], moment: datetime) -> dict[UUID, datetime]:
    """Return when the owner of a subject first said these facts of theirs to an assistant after a moment."""
    return dict(await tx.tuples(SQL["said_after"], subject=subject, ids=list(ids), moment=moment))


async def remembered(
    tx: Transaction, model: UUID, until: datetime, *, conversation: UUID | None = None, recipes: Collection[str] = ()
) -> list[KnownFact]:
    """Return the latest active facts that were said by a moment and hold then.

    Of the redo of a `conversation` they are those of these recipes and of people that other conversations say.
    """
    values = {"model_id": model, "until": until, "aside": conversation, "recipes": list(recipes)}
    return await tx.all(SQL["remembered"], _known, **values, limit=2000)


async def types(tx: Transaction) -> list[str]:
    return await tx.column(SQL["types"])


async def edges(tx: Transaction, name: str) -> list[Edge]:
    return await tx.all(SQL["entity_edges"], Edge, entity=name)


async def drop_sources(tx: Transaction, fact: UUID) -> None:
    await tx.run(SQL["drop_sources"], fact_id=fact)


async def remove_sources_of(
    tx: Transaction, conversation: UUID, *, but: Iterable[Source], waiting: Collection[UUID]
) -> TakenSources:
    """Remove a conversation's sources but these; return the removed ones. Sources by hand stay.

    Those of the facts that are `waiting` stay where these are quarantined already, those of others where they are not.
    """
    places = [(source.fact_id, source.span.message_id, source.span.start, source.span.stop) for source in but]
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


def _known_in_scope(*, is_of_other_scope: bool, **columns: Any) -> tuple[KnownFact, bool]:
    return _known(**columns), is_of_other_scope


def _known(
    last_said: datetime,
    by_hand: str | None = None,
    by_hand_at: datetime | None = None,
    cosine: float | None = None,
    same_words: bool = False,
    speaker: str | None = None,
    vector: bytes | None = None,
    **columns: Any,
) -> KnownFact:
    read = None if vector is None else chunks.read_vectors(vector, 1)[0]
    fact = FactColumns.model_construct(**columns)
    return KnownFact(fact, last_said, by_hand, by_hand_at, cosine, same_words, speaker, read)


# -- the log


async def change(
    tx: Transaction,
    fact: FactColumns,
    action: str,
    *,
    actor: str,
    other: UUID | None = None,
    undoes: UUID | None = None,
    at: datetime | None = None,
    **new: Any,
) -> FactChange:
    """Set columns of a fact as it is stored, and log it; `fact` is changed too. `at` is now by the server's clock.

    The change's id follows from the fact and how often it was changed, so that a process that was killed makes the same
    rows again.
    """
    before = logged_columns(fact)
    for name, value in new.items():
        setattr(fact, name, value)
    if new:
        await update(tx, fact)
    id = ids.change_id(fact.id, await tx.value(SQL["count_changes"], int, fact_id=fact.id) or 0)
    row: dict[str, Any] = {"id": id, "fact_id": fact.id, "action": action, "actor": actor, "other_id": other}
    row |= {"before": before, "after": logged_columns(fact), "undoes": undoes}
    [recorded_at] = await tx.column(SQL["add_change"], **row, recorded_at=at)
    if action in ("superseded", "edited") and other is not None:
        tx.record_event(EventType.FACT_SUPERSEDED, fact=str(fact.id), by=str(other), action=action)
        tx.notify(WebhookEvent.FACT_SUPERSEDED, fact=str(fact.id), by=str(other), kind=fact.kind)
    webhooks.note_created(tx, fact, before)
    return FactChange(at=recorded_at, **row)


def logged_columns(fact: FactColumns) -> dict[str, Any]:
    """Return the columns that may change as the log has them: times in UTC as ISO 8601."""
    values = {name: getattr(fact, name) for name in FactColumns.model_fields if name in CHANGEABLE}
    return {
        name: value.astimezone(UTC).isoformat() if isinstance(value, datetime) else value
        for name, value in values.items()
    }


async def reverse(tx: Transaction, done: FactChange, fact: FactColumns, *, actor: str) -> FactChange:
    """Set what a change changed back to what it was, and log that; `fact` is the changed one as it is stored.

    Raises `Conflict` where the fact is no longer as the change left it.
    """
    now, changed = logged_columns(fact), done.changed
    moved = [
        f"{name} is {now[name]!r} and was {done.after[name]!r}" for name in changed if now[name] != done.after[name]
    ]
    if moved or (not changed and await tx.tuples(SQL["undone"], fact_id=done.fact_id, id=done.id)):
        raise Conflict(
            f"The fact {fact.text!r} was changed again since: {', '.join(moved) or 'this is undone'}. "
            "Nothing was done: undo the later change first."
        )
    action = step_back(done) if changed else "resolved"
    return await change(tx, fact, action, actor=actor, other=done.other_id, undoes=done.id, **columns_before(done))


def step_back(done: FactChange) -> str:
    """Return what it is called to set back what a change has changed."""
    state = str(done.changed.get("state"))
    return state if state in ("superseded", "retracted", "quarantined") else "restored"


async def change_of_id(tx: Transaction, id: UUID) -> FactChange | None:
    return await tx.one(SQL["change"], FactChange, id=id)


async def superseded_by(tx: Transaction, other: UUID, since: datetime | None = None) -> list[FactChange]:
    """Return the changes by which a fact took the place of others since then, latest first, undone ones not."""
    return await tx.all(SQL["superseded_by"], FactChange, other_id=other, since=since)


async def reactivations(tx: Transaction, other: UUID, at: datetime) -> list[FactChange]:
    """Return what was done at this moment to facts whose place `other` had taken."""
    return await tx.all(SQL["given_up"], FactChange, other_id=other, at=at)


async def states_as_of(
    tx: Transaction, facts: Sequence[UUID], as_of: datetime | None, most: int
) -> dict[UUID, tuple[str, UUID | None, bool]]:
    """Return of facts that do not hold how they begin, which one took its place by then, and whether it had expired."""
    rows = await tx.tuples(SQL["past"], fact_ids=list(facts), as_of=as_of, most=most)
    return {fact: (text, successor, is_expired) for fact, text, successor, is_expired in rows}


def said_facts(
    messages: Sequence[UUID], as_of: datetime | None, *, holding: bool = True
) -> Read[list[tuple[UUID, UUID, bool]]]:
    """Return a read of which messages said which facts by then, and whether these held.

    Facts that did are left out if not `holding`; and quotations always.
    """
    return Read(SQL["said_facts"], {"message_ids": list(messages), "as_of": as_of, "holding": holding}, list)


async def successors(tx: Transaction, facts: Iterable[UUID], as_of: datetime | None) -> list[FactStep]:
    """Return facts, and those that had taken their places by then."""
    return await tx.all(SQL["successors"], FactStep, fact_ids=list(facts), as_of=as_of)


def is_as_left(done: FactChange, fact: FactColumns) -> bool:
    now = logged_columns(fact)
    return all(now[name] == done.after[name] for name in done.changed)


def columns_before(done: FactChange) -> dict[str, Any]:
    """Return the columns that a change changed, with the values that they had before."""
    times = ("valid_from", "valid_to", "expires_at")
    return {
        name: datetime.fromisoformat(value) if name in times and value is not None else value
        for name, value in done.changed.items()
    }


async def history(tx: Transaction, fact: Fact) -> list[FactChange]:
    """Return what was done to a fact in order, from its first day: also that it was added, and each time it was said.

    An edit of another fact that it came from is there as its own, with the other one: undone by its id, it is undone.
    """
    every = await tx.all(SQL["changes"], FactChange, fact_id=fact.id)
    said = await tx.tuples(SQL["said"], fact_id=fact.id)
    own_changes = [change for change in every if change.fact_id == fact.id]
    made = [
        replace(change, fact_id=fact.id, other_id=change.fact_id, before={}, after={})
        for change in every
        if change.fact_id != fact.id
    ]
    maker = str(own_changes[0].before.get("recipe", fact.recipe)) if own_changes else fact.recipe
    first = next((source for source, at in said if at <= fact.recorded_at), None)
    added = FactChange(None, fact.id, "added", fact.recorded_at, maker, source=first)
    again = [
        FactChange(None, fact.id, "reinforced", at, maker, source=source) for source, at in said if source != first
    ]
    return [added, *sorted([*own_changes, *made, *again], key=lambda change: change.at)]


async def settled_by_hand(tx: Transaction, other_facts: Iterable[UUID], fact: UUID) -> set[UUID]:
    """Return those of `other_facts` of which somebody decided, by undoing it, that `fact` does not take their place."""
    return set(await tx.column(SQL["settled_by_hand"], ids=list(other_facts), other_id=fact))


async def restore_orphaned(tx: Transaction, *, actor: str) -> list[Fact]:
    """Reverse what was done to facts for the sake of facts that are gone; return those that are active again.

    Facts that were changed since stay as they are.
    """
    restored = []
    for done in await tx.all(SQL["orphaned"], FactChange):
        stored = await fact(tx, done.fact_id)
        if stored is not None and is_as_left(done, stored):
            await reverse(tx, done, stored, actor=actor)
            restored.append(stored)
    return [row for row in restored if row.state == "active"]
