"""What people do to facts by hand: enter, edit, confirm, retract, undo. It is logged; no derivation reverses it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from memstore import ids
from memstore._compat import to_thread
from memstore.derive.chunks import add_fact_chunk, restore_fact_chunk
from memstore.derive.dependencies import Dependencies
from memstore.derive.facts.deriver import (
    apply_edited_slot,
    apply_manual_fact,
)
from memstore.derive.facts.drafts import BY_HAND, UNTRUSTED, FactDraft
from memstore.derive.facts.guidelines import Guidelines
from memstore.derive.facts.note_facts import LOOSE_TYPES
from memstore.derive.facts.reader_extractor import read_statement
from memstore.derive.facts.restoring import reactivate_superseded, supersede_again
from memstore.derive.facts.slots import slot_of_fact
from memstore.derive.facts.utterances import type_of
from memstore.errors import Conflict, InvalidInput, NotFound
from memstore.ingest.redaction import Redactor
from memstore.ingest.validation import check_choice, check_name, check_text
from memstore.models import (
    FACT_KINDS,
    HAND,
    IMPORTANCES,
    QUARANTINED,
    Fact,
    FactChange,
    FactColumns,
    FactSpan,
    kind_of,
)
from memstore.store import chunks, facts, messages
from memstore.store.database import Database, Transaction
from memstore.store.facts import Source

# A fact is a sentence, and is recalled whole. Subject and attribute stand in one row of an index: 2,704 bytes.
COLUMN_LIMITS = {"text": 2000, "subject": 300, "attribute": 300, "value": 2000, "language": 35}


# In the order in which errors name them.
EDITABLE = (
    "text",
    "type",
    "subject",
    "kind",
    "attribute",
    "value",
    "language",
    "confidence",
    "valid_from",
    "valid_to",
    "importance",
    "expires_at",
)


# -- what is entered


def strip_blanks(columns: Mapping[str, Any]) -> dict[str, Any]:
    """Return columns without blanks around their texts: two facts never differ in these alone."""
    return {name: value.strip() if isinstance(value, str) else value for name, value in columns.items()}


def read_type(new: FactColumns, guidelines: Guidelines) -> str:
    """Return the type that the reader reads in the words of a fact; `statement` for none."""
    read = read_statement(new.text, new.subject).type
    return (type_of(new.text, guidelines.words) or read) if read in LOOSE_TYPES else read


def check_fact(new: FactColumns) -> None:
    """Raise `InvalidInput` for a fact that cannot be stored as it was entered."""
    check_text(new.text, "the text of a fact")
    if not new.text.strip():
        raise InvalidInput(f"text={new.text!r:.60} is empty; give a whole sentence.")
    check_name(new.subject, "subject")
    for name in ("attribute", "value"):
        if getattr(new, name) is not None:
            check_name(getattr(new, name), name)
    check_text(new.language, "the language")
    for name, limit in COLUMN_LIMITS.items():
        if len(getattr(new, name) or "") > limit:
            raise InvalidInput(f"A fact's {name} has at most {limit:,} characters, not {len(getattr(new, name)):,}.")
    check_text(new.type, "the type")
    check_choice("kind", new.kind, FACT_KINDS)
    check_choice("importance", new.importance, IMPORTANCES, optional=False)
    if not isinstance(new.confidence, int | float) or not 0 <= new.confidence <= 1:
        raise InvalidInput(f"confidence={new.confidence!r}: give a number from 0 to 1.")
    if new.valid_from is not None and new.valid_to is not None and new.valid_to < new.valid_from:
        raise InvalidInput(f"valid_to={new.valid_to} is before valid_from={new.valid_from}; give a later end.")


def redact_fact(new: FactColumns, redactor: Redactor) -> FactColumns:
    """Return a fact with its secrets marked; those of its text are marked in its value too.

    The attribute alone may show that the value is one, as "password" does.
    """
    value = new.value
    for secret in redactor.find(new.text):
        value = value and value.replace(new.text[secret.start : secret.stop], secret.mark)
    if value is not None:
        (value,) = redactor.redact_json({(new.attribute or "").replace(" ", "_"): value}).values()
    texts = new.model_dump(include={"text", "subject", "attribute", "language"})
    redacted = {name: redactor.redact(text) for name, text in texts.items()}
    return new.model_copy(update={"value": value, **redacted})


def merge_columns(fact: Fact, new: Mapping[str, Any]) -> FactColumns:
    """Return a fact with some of its columns new.

    The kind follows the type where that is new, and the slot the text.
    """
    kept: dict[str, Any] = fact.model_dump(include=set(EDITABLE))
    if "type" in new:
        kept["kind"] = None
    if "text" in new and not {"attribute", "value"} & new.keys():
        kept |= {"attribute": None, "value": None}
    return FactColumns.model_construct(**kept | dict(new))


def _with_slot(new: FactColumns) -> FactColumns:
    """Return a fact with the slot that its words fill, unless one is given."""
    if new.attribute is not None or new.value is not None:
        return new
    slot = read_statement(new.text, new.subject).slot
    return new if slot is None else new.model_copy(update={"attribute": slot.attribute, "value": slot.value})


def _as_row(user_id: UUID, new: FactColumns, state: str = "active") -> FactColumns:
    row: dict[str, Any] = {"user_id": user_id, "id": ids.fact_id(user_id, new.subject, new.text)}
    # The database's own precision, so that an undo finds what it left.
    row |= {"kind": new.kind or kind_of(new.type), "confidence": round(new.confidence, 4)}
    row |= {"state": state, "recipe": HAND, "occurred_at": datetime.now(UTC)}
    return new.model_copy(update=row)


def _as_draft(dependencies: Dependencies, fact: FactColumns, sources: Sequence[UUID] = ()) -> FactDraft:
    """Return the draft of a fact by hand, learned after all changes by hand."""
    ended = fact.valid_to is not None and fact.valid_to <= fact.occurred_at
    return FactDraft(
        fact,
        None if ended else slot_of_fact(fact),
        said_by_subject=True,
        speaker=fact.subject.partition("'s ")[0],
        may_change=True,
        spans=tuple(FactSpan(id, None, None, BY_HAND) for id in sources),
        vector=dependencies.embed([fact.text])[0],
    )


def _besides_words(fact: FactColumns) -> dict[str, Any]:
    """Return the columns that an edit may change without making another fact."""
    return fact.model_dump(include=set(EDITABLE) - {"text", "subject"})


# -- enter, confirm, edit


async def add_fact(
    database: Database, dependencies: Dependencies, user_name: str, new: FactColumns, sources: Sequence[UUID]
) -> Fact:
    """Store a fact that recall finds at once. One with the same words is edited to be this one, and active again."""
    user_id = ids.user_id(user_name)
    with_slot = await to_thread(_with_slot, new)
    entered = await to_thread(_as_draft, dependencies, _as_row(user_id, with_slot), sources)
    fact = entered.fact
    async with database.user_transaction(user_id) as tx:
        await messages.make_user(tx, user_name)
        await chunks.lock_user(tx)
        await _check_sources(tx, sources)
        known_fact = await facts.fact(tx, fact.id)
        if known_fact is not None:
            was_hidden = known_fact.state in (QUARANTINED, "retracted")
            columns = _besides_words(fact) | {"state": "active", "recipe": HAND}
            await facts.change(tx, known_fact, "edited", actor=HAND, **columns)
            if was_hidden:
                await restore_fact_chunk(tx, entered.fact, None, entered.vector, dependencies.model)
            await facts.add_sources(tx, [Source(fact.id, span) for span in entered.spans])
        await apply_manual_fact(tx, entered, known_fact, dependencies.model)
        return await _fact(tx, fact.id)


async def propose_fact(database: Database, user_name: str, new: FactColumns, sources: Sequence[UUID]) -> Fact:
    """Store a fact that waits until a person confirms it; return a known one with the same words instead."""
    user_id = ids.user_id(user_name)
    fact = _as_row(user_id, await to_thread(_with_slot, new), QUARANTINED)
    async with database.user_transaction(user_id) as tx:
        await messages.make_user(tx, user_name)
        await chunks.lock_user(tx)
        await _check_sources(tx, sources)
        known_fact = await facts.fact(tx, fact.id)
        if known_fact is not None:
            return known_fact
        recorded_at = await facts.add(tx, fact)
        spans = [FactSpan(id, None, None, UNTRUSTED) for id in sources]
        await facts.add_sources(tx, [Source(fact.id, span, recorded_at) for span in spans])
        return await _fact(tx, fact.id)


async def confirm_fact(database: Database, dependencies: Dependencies, user_id: UUID, fact_id: UUID) -> Fact:
    """Make a quarantined fact active; one that is active stays as it is.

    It supersedes older values of its slot, and contradictions are logged. Raises `Conflict` in any other state.
    """
    async with database.user_transaction(user_id) as tx:
        proposed = await _fact(tx, fact_id)
    entered = await to_thread(_as_draft, dependencies, proposed)
    async with database.user_transaction(user_id) as tx:
        await chunks.lock_user(tx)
        fact = await _fact(tx, fact_id)
        if fact.state == QUARANTINED:
            await facts.change(tx, fact, "confirmed", actor=HAND, state="active")
            await restore_fact_chunk(tx, entered.fact, None, entered.vector, dependencies.model)
            await apply_manual_fact(tx, entered, fact, dependencies.model)
        else:
            check_active(fact)
        return await _fact(tx, fact_id)


def check_active(fact: Fact) -> None:
    if fact.state == QUARANTINED:
        raise Conflict(f"The fact {fact.text!r} is quarantined. Nothing was done: confirm it first, or retract it.")
    if fact.state != "active":
        raise Conflict(f"The fact {fact.text!r} is {fact.state}, not active. Nothing was done: undo that first.")


async def edit_fact(database: Database, dependencies: Dependencies, user_id: UUID, was: Fact, new: FactColumns) -> Fact:
    """Replace an active fact by another with the same sources; if the words stay, change only its columns.

    `was` is the fact as it was read: raises `Conflict` where somebody has changed it since, and where there is a fact
    with the new words.
    """
    # A slot that is taken away is not read from words that stay.
    proposed = _as_row(user_id, new if new.text == was.text else await to_thread(_with_slot, new))
    entered = await to_thread(_as_draft, dependencies, proposed)
    edited = entered.fact
    async with database.user_transaction(user_id) as tx:
        await chunks.lock_user(tx)
        old = await _fact(tx, was.id)
        check_active(old)
        if _besides_words(old) != _besides_words(was):
            raise Conflict(f"The fact {was.id} was changed meanwhile; read it again, then edit it.")
        if edited.id == old.id:
            done = await facts.change(tx, old, "edited", actor=HAND, **_besides_words(edited), recipe=HAND)
        else:
            done = await _replace(tx, dependencies, old, entered)
        says_else = edited.id != old.id and edited.attribute is None
        if says_else or (was.subject, was.attribute) != (edited.subject, edited.attribute):
            await reactivate_superseded(tx, old.id, done.at)
        stored = await _fact(tx, edited.id)
        if says_else:
            await apply_manual_fact(tx, entered, stored, dependencies.model)
        elif (was.subject, was.attribute, was.value) != (edited.subject, edited.attribute, edited.value):
            await apply_edited_slot(tx, entered, stored)
        return await _fact(tx, edited.id)


async def _replace(tx: Transaction, dependencies: Dependencies, old: Fact, entered: FactDraft) -> FactChange:
    edited = entered.with_columns(occurred_at=old.occurred_at)
    if await facts.fact(tx, edited.fact.id) is not None:
        raise Conflict(f"There is a fact {edited.fact.text!r}. Nothing was done: retract this one, and add that again.")
    done = await facts.change(tx, old, "edited", actor=HAND, other=edited.fact.id, state="superseded")
    await facts.add(tx, edited.fact)
    await add_fact_chunk(tx, edited.fact, None, edited.vector, dependencies.model)
    # The messages stand behind it still; which of their characters say it is not known of the new words.
    spans = [replace(span, start=None, stop=None) for span in old.spans]
    await facts.add_sources(tx, [Source(edited.fact.id, span) for span in spans])
    return done


# -- retract, undo


async def retract_fact(database: Database, user_id: UUID, fact_id: UUID) -> Fact:
    """Retract a fact: it is no longer recalled, even if it is said again.

    The facts that it superseded are active again.
    """
    async with database.user_transaction(user_id) as tx:
        await chunks.lock_user(tx)
        fact = await _fact(tx, fact_id)
        if fact.state != "retracted":
            done = await facts.change(tx, fact, "retracted", actor=HAND, state="retracted")
            await reactivate_superseded(tx, fact.id, done.at)
        return fact


async def undo(database: Database, user_id: UUID, change_id: UUID) -> FactChange:
    """Undo a change exactly; return the change that did so.

    The fact that had replaced another by an edit is retracted. Raises `Conflict` for an undo, and where one of the
    facts was changed again since; nothing is done then.
    """
    async with database.user_transaction(user_id) as tx:
        await chunks.lock_user(tx)
        done = await facts.change_of_id(tx, change_id)
        if done is None:
            raise NotFound(f"There is no change {change_id}: the history of a fact names those that can be undone.")
        if done.undoes is not None:
            raise Conflict(
                f"The change {change_id} is an undo. Nothing was done: retract, edit or confirm anew instead."
            )
        return await undo_in(tx, done)


async def undo_in(tx: Transaction, done: FactChange) -> FactChange:
    """Undo a change in a transaction that has locked the user."""
    made = await facts.reverse(tx, done, await _fact(tx, done.fact_id), actor=HAND)
    if made.after.get("state") == QUARANTINED:
        await chunks.remove(tx, [made.fact_id])
    if done.action == "edited" and done.other_id is not None:
        edited = await _fact(tx, done.other_id)
        check_active(edited)
        await facts.change(tx, edited, "retracted", actor=HAND, other=done.fact_id, undoes=done.id, state="retracted")
    if done.action == "edited":
        await reactivate_superseded(tx, done.other_id or done.fact_id, made.at, since=done.at)
    elif made.action in ("retracted", QUARANTINED):
        await reactivate_superseded(tx, done.fact_id, made.at)
    await supersede_again(tx, done.fact_id, done.at, made.at)
    return made


async def _fact(tx: Transaction, fact_id: UUID) -> Fact:
    fact = await facts.fact(tx, fact_id)
    if fact is None:
        raise NotFound(f"This user has no fact {fact_id}.")
    return fact


async def _check_sources(tx: Transaction, sources: Sequence[UUID]) -> None:
    missing = set(sources) - set(await messages.by_ids(tx, list(sources)))
    if missing:
        raise InvalidInput(f"This user has no message {min(missing)}. Nothing was stored.")
