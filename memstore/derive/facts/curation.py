"""What people do to facts by hand: enter, edit, take back, undo. All of it is logged, and no derivation reverses it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from uuid import UUID

from memstore import ids
from memstore._compat import to_thread
from memstore.derive.active_embedder import run_with_active_embedder
from memstore.derive.dependencies import Dependencies
from memstore.derive.facts.entry import EDITED, NewFact, still_said, with_slot
from memstore.derive.facts.extracted import ExtractedFact, unit_of
from memstore.derive.facts.filled import slot_of_fact
from memstore.derive.facts.settle import make_findable, settle_edited, settle_entered
from memstore.derive.facts.succession import reclaim, release
from memstore.derive.facts.trust import UNTRUSTED
from memstore.errors import Conflict, InvalidInput, NotFound
from memstore.models import HAND, QUARANTINED, Fact, FactChange, FactColumns, FactSpan, kind_of
from memstore.providers import Vectors
from memstore.store import embedders, fact_changes, facts, items, messages
from memstore.store.database import Database, Transaction
from memstore.store.facts import Source
from memstore.store.items import new_unit

TRUST = 3


async def add_fact(database: Database, resources: Dependencies, user_name: str, new: NewFact) -> Fact:
    """Store a fact, findable at once and settled with what is known, as facts that are derived are.

    One with the same words is edited to be this one, and active again.
    """
    user_id = ids.user_id(user_name)
    return await run_with_active_embedder(
        database, resources, user_id, partial(_add_fact, database, user_id, user_name, new)
    )


async def _add_fact(database: Database, user_id: UUID, user_name: str, new: NewFact, resources: Dependencies) -> Fact:
    entered = await to_thread(_entered, resources, _columns(user_id, with_slot(new)), new.sources)
    fact = entered.fact
    async with database.scope(user_id) as scope:
        await messages.make_user(scope, user_name)
        await facts.lock(scope)
        await _check_sources(scope, new.sources)
        model = await embedders.bind(scope, resources.embedder)
        known = await facts.fact(scope, fact.id)
        if known is not None:
            columns, was = {name: getattr(fact, name) for name in EDITED}, known.state
            await fact_changes.change(scope, known, "edited", actor=HAND, **columns, state="active", recipe=HAND)
            await facts.add_sources(scope, [Source(fact.id, span) for span in entered.spans])
            await _found_again(scope, entered, was, model)
        await settle_entered(scope, entered, known, model)
        return await _stored(scope, fact.id)


async def propose_fact(database: Database, user_name: str, new: NewFact) -> Fact:
    """Store a fact that waits until a person confirms it; one with the same words stays what it is, and is given."""
    user_id = ids.user_id(user_name)
    fact = _columns(user_id, with_slot(new)).model_copy(update={"state": QUARANTINED})
    async with database.scope(user_id) as scope:
        await messages.make_user(scope, user_name)
        await facts.lock(scope)
        await _check_sources(scope, new.sources)
        known = await facts.fact(scope, fact.id)
        if known is None:
            recorded_at = await facts.add(scope, fact)
            spans = [FactSpan(id, None, None, UNTRUSTED) for id in new.sources]
            await facts.add_sources(scope, [Source(fact.id, span, recorded_at) for span in spans])
        return known or await _stored(scope, fact.id)


def _entered(resources: Dependencies, fact: FactColumns, sources: Sequence[UUID] = ()) -> ExtractedFact:
    """Give a fact by hand as one that is extracted; nothing that is known was done to others after it."""
    ended = fact.valid_to is not None and fact.valid_to <= fact.occurred_at
    slot = None if ended else slot_of_fact(fact)
    spans = tuple(FactSpan(id, None, None, TRUST) for id in sources)
    heard_at = datetime.max.replace(tzinfo=UTC)
    return ExtractedFact(fact, slot, spans, unit_of(fact), _vector(resources, fact.text), True, heard_at)


async def _found_again(scope: Transaction, new: ExtractedFact, was: str, model: UUID | None) -> None:
    """Give a fact that is active now its unit of recall, if it `was` in a state that may have left it without one."""
    if was in (QUARANTINED, "retracted"):
        await make_findable(scope, new, model)


async def confirm_fact(database: Database, resources: Dependencies, user_id: UUID, fact_id: UUID) -> Fact:
    """Let a quarantined fact hold, as it was said then; one that is active stays as it is.

    Older values of its slot end, and what it contradicts is a conflict, as of a fact that is entered. Raises `Conflict`
    for one that is in another state.
    """
    return await run_with_active_embedder(database, resources, user_id, partial(_confirm, database, user_id, fact_id))


async def _confirm(database: Database, user_id: UUID, fact_id: UUID, resources: Dependencies) -> Fact:
    async with database.scope(user_id) as scope:
        said = await _found(scope, fact_id)
    entered = await to_thread(_entered, resources, said.model_copy())
    async with database.scope(user_id) as scope:
        await facts.lock(scope)
        fact = await _found(scope, fact_id)
        if fact.state == QUARANTINED:
            model = await embedders.bind(scope, resources.embedder)
            await fact_changes.change(scope, fact, "confirmed", actor=HAND, state="active")
            await make_findable(scope, entered, model)
            await settle_entered(scope, entered, fact, model)
        else:
            check_active(fact)
        return await _stored(scope, fact_id)


def check_active(fact: Fact) -> None:
    """Raise `Conflict` for a fact that is not active."""
    if fact.state == QUARANTINED:
        raise Conflict(f"The fact {fact.text!r} is quarantined. Nothing was done: confirm it first, or retract it.")
    if fact.state != "active":
        raise Conflict(f"The fact {fact.text!r} is {fact.state}, not active. Nothing was done: undo that first.")


async def edit_fact(database: Database, resources: Dependencies, user_id: UUID, was: Fact, new: NewFact) -> Fact:
    """Put another fact, with the same sources, in the place of an active one; only its columns where the words stay.

    `was` is the fact as it was read: raises `Conflict` where somebody has changed it since.
    """
    return await run_with_active_embedder(
        database, resources, user_id, partial(_edit_fact, database, user_id, was, new)
    )


async def _edit_fact(database: Database, user_id: UUID, was: Fact, new: NewFact, resources: Dependencies) -> Fact:
    edited = _columns(user_id, new)
    entered = await to_thread(_entered, resources, edited.model_copy())
    async with database.scope(user_id) as scope:
        await facts.lock(scope)
        old = await _active(scope, was.id)
        if any(getattr(old, name) != getattr(was, name) for name in EDITED):
            raise Conflict(f"The fact {was.id} was changed meanwhile; read it again, then edit it.")
        if edited.id == old.id:
            columns = {name: getattr(edited, name) for name in EDITED}
            done = await fact_changes.change(scope, old, "edited", actor=HAND, **columns, recipe=HAND)
        else:
            done = await _put_in_place(scope, resources, old, edited, entered)
        if (was.subject, was.attribute) != (edited.subject, edited.attribute):
            await release(scope, old.id, done.at)
        stored = await _stored(scope, edited.id)
        if (was.subject, was.attribute, was.value) != (edited.subject, edited.attribute, edited.value):
            await settle_edited(scope, entered, stored)
        return stored


async def _put_in_place(
    scope: Transaction, resources: Dependencies, old: Fact, edited: FactColumns, entered: ExtractedFact
) -> FactChange:
    """Put a fact, which may be known, in the place of another one, with its time and its sources; give that change."""
    edited.occurred_at = old.occurred_at
    done = await fact_changes.change(scope, old, "edited", actor=HAND, other=edited.id, state="superseded")
    known = await facts.fact(scope, edited.id)
    if known is None:
        await _store(scope, resources, edited, entered.vector)
    else:  # both halves are of one moment: by it an undo finds the other one, and the sources that came with it
        columns = {name: getattr(edited, name) for name in EDITED} | {"state": "active", "recipe": HAND}
        was = known.state
        await fact_changes.change(scope, known, "edited", actor=HAND, at=done.at, **columns)
        model = await embedders.bind(scope, resources.embedder)
        await _found_again(scope, entered, was, model)
    at = None if known is None else done.at
    await facts.add_sources(scope, [Source(edited.id, span, at) for span in await _spans(scope, old, edited)])
    return done


async def _spans(scope: Transaction, old: Fact, edited: FactColumns) -> list[FactSpan]:
    """Give the sources of an edited fact: those of the old one, with their characters where these still say it."""
    texts = await messages.known(scope, old.sources)
    kept = []
    for span in old.spans:
        said = (texts[span.message_id].text or "")[span.start : span.stop]
        stays = still_said(old.text, edited.text, edited.subject, said)
        kept.append(span if stays else replace(span, start=None, stop=None))
    return kept


async def retract_fact(database: Database, user_id: UUID, fact_id: UUID) -> Fact:
    """Take a fact back: it is no longer recalled, and saying it again does not bring it back.

    The facts whose place it had taken hold again.
    """
    async with database.scope(user_id) as scope:
        await facts.lock(scope)
        fact = await _found(scope, fact_id)
        if fact.state != "retracted":
            done = await fact_changes.change(scope, fact, "retracted", actor=HAND, state="retracted")
            await release(scope, fact.id, done.at)
        return fact


async def undo(database: Database, user_id: UUID, change_id: UUID) -> FactChange:
    """Set what a change did back to what was before, exactly; give the change that did so.

    An edit is undone as a whole: the fact that it had put in a place is what it was before, or retracted if it was not
    there. Raises `Conflict` where one of them was changed again since; nothing is done then.
    """
    async with database.scope(user_id) as scope:
        await facts.lock(scope)
        done = await fact_changes.of_id(scope, change_id)
        if done is None:
            instead = await _undoable(scope, change_id)
            raise NotFound(f"There is no change {change_id}; {instead}")
        if done.undoes is not None and await _was_replacement(scope, done.undoes):
            raise Conflict(f"The change {change_id} undid an edit. Nothing was done: edit the fact again instead.")
        if done.after.get("state") == QUARANTINED and done.changed.get("state") == "active":
            raise Conflict(
                f"The change {change_id} took a confirmation back. Nothing was done: confirm the fact again."
            )
        half = await fact_changes.other_half(scope, done)
        if half is not None and half.other_id is not None:
            done, half = half, done
        made = await fact_changes.reverse(scope, done, await _found(scope, done.fact_id), actor=HAND)
        if half is not None:
            await _give_back(scope, half)
        elif done.action == "edited" and done.other_id is not None:
            await _take_back_edit(scope, done)
        await _follow(scope, done, made)
        return made


async def _follow(scope: Transaction, done: FactChange, made: FactChange) -> None:
    """Let the facts whose place was taken by what a change had `done` follow when that is undone by the one `made`."""
    if done.action == "edited":
        await release(scope, done.other_id or done.fact_id, made.at, since=done.at)
    elif made.action in ("retracted", QUARANTINED):
        await release(scope, done.fact_id, made.at)
    await _hide(scope, made)
    await reclaim(scope, done.fact_id, done.at, made.at)


async def _hide(scope: Transaction, made: FactChange) -> None:
    """Take the unit of recall from a fact that a change has quarantined again."""
    if made.after.get("state") == QUARANTINED:
        await items.remove(scope, [made.fact_id])


async def _give_back(scope: Transaction, half: FactChange) -> None:
    """Make a fact that was known before an edit put it in a place what it was then, with the sources that it had."""
    if half.changed:
        await _hide(scope, await fact_changes.reverse(scope, half, await _found(scope, half.fact_id), actor=HAND))
    await facts.remove_sources_of(scope, half.fact_id, half.at)


async def _undoable(scope: Transaction, id: UUID) -> str:
    """Say what can be undone, of the fact that has this id where one has: its latest change that is not undone."""
    fact = await facts.fact(scope, id)
    if fact is None:
        return "the history of a fact names those that can be undone."
    life = await fact_changes.life(scope, fact)
    undone = {one.undoes for one in life}
    done = [one for one in life if one.id is not None and one.undoes is None and one.id not in undone]
    if not done:
        return f"that is the fact {fact.text!r}, and nothing was done to it; retract it instead."
    return f"that is the fact {fact.text!r}; to undo its last change, which was {done[-1].action}, give {done[-1].id}."


async def _take_back_edit(scope: Transaction, done: FactChange) -> None:
    """Take back the fact that an edit had made."""
    assert done.other_id is not None
    edited = await _active(scope, done.other_id)
    await fact_changes.change(
        scope, edited, "retracted", actor=HAND, other=done.fact_id, undoes=done.id, state="retracted"
    )


async def _was_replacement(scope: Transaction, change_id: UUID) -> bool:
    """Whether a change is an edit that put one fact in the place of another, or the other half of one."""
    done = await fact_changes.of_id(scope, change_id)
    if done is None or done.action != "edited":
        return False
    return done.other_id is not None or await fact_changes.other_half(scope, done) is not None


async def history(database: Database, user_id: UUID, fact_id: UUID) -> list[FactChange]:
    """Give the life of a fact, from when it was added to what was done to it last."""
    async with database.scope(user_id) as scope:
        return await fact_changes.life(scope, await _found(scope, fact_id))


def _columns(user_id: UUID, new: NewFact) -> FactColumns:
    return FactColumns.model_construct(
        user_id=user_id,
        id=ids.fact_id(user_id, new.subject, new.text),
        type=new.type,
        kind=new.kind or kind_of(new.type),
        subject=new.subject,
        attribute=new.attribute,
        value=new.value,
        text=new.text,
        language=new.language,
        confidence=round(new.confidence, 4),  # the database's own precision, so that an undo finds what it left
        state="active",
        valid_from=new.valid_from,
        valid_to=new.valid_to,
        recipe=HAND,
        occurred_at=datetime.now(UTC),
    )


def _vector(resources: Dependencies, text: str) -> Vectors | None:
    return resources.embed([text])[0]


async def _store(scope: Transaction, resources: Dependencies, fact: FactColumns, vector: Vectors | None) -> None:
    model = await embedders.bind(scope, resources.embedder)
    await facts.add(scope, fact)
    await items.add(scope, [new_unit(scope.user_id, unit_of(fact), fact.text, vector)], model)


async def _stored(scope: Transaction, fact_id: UUID) -> Fact:
    fact = await facts.fact(scope, fact_id)
    assert fact is not None
    return fact


async def _found(scope: Transaction, fact_id: UUID) -> Fact:
    fact = await facts.fact(scope, fact_id)
    if fact is None:
        raise NotFound(f"This user has no fact {fact_id}.")
    return fact


async def _active(scope: Transaction, fact_id: UUID) -> Fact:
    fact = await _found(scope, fact_id)
    check_active(fact)
    return fact


async def _check_sources(scope: Transaction, sources: Sequence[UUID]) -> None:
    missing = set(sources) - set(await messages.known(scope, list(sources)))
    if missing:
        raise InvalidInput(f"This user has no message {min(missing)}. Nothing was stored.")
