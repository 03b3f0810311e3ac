"""The deriver of facts: statements of speakers about themselves and their world, reconciled with known facts.

It never reads instructions or text that a context had put into a message, and reads assistants and tools only if the
setting `fact_roles` names them. Facts by speakers who are not trusted alone are quarantined. `reconcile` decides about
a new fact; this module carries that out, and logs every change of a fact. The value that was said last is active,
whichever conversation is derived first; within a conversation that is the last message, whatever its clock says.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, NamedTuple, Protocol
from uuid import UUID

from memstore.derive.chunking import split_segments
from memstore.derive.chunks import add_fact_chunk, load_next_messages, restore_fact_chunk
from memstore.derive.dependencies import Dependencies, DeriverTraits
from memstore.derive.facts.changes import with_outdated
from memstore.derive.facts.drafts import (
    LOOKBACK_MESSAGES,
    ExtractedBatch,
    FactBatch,
    FactDraft,
    without_secrets,
)
from memstore.derive.facts.entities import related_subjects
from memstore.derive.facts.guidelines import Guidelines
from memstore.derive.facts.llm_extractor import MAX_CONTEXT_MESSAGES, LLMExtractor
from memstore.derive.facts.reader_extractor import ReaderExtractor
from memstore.derive.facts.reconcile import Resolution, end_of, reconcile, says_no_more
from memstore.derive.facts.restoring import reapply, restore_spared
from memstore.derive.facts.slots import READER_RECIPE_PREFIX
from memstore.models import HAND, QUARANTINED, FactColumns, KnownFact
from memstore.models.messages import SESSION_GAP
from memstore.store import chunks, facts, llm_usage, messages, watermarks
from memstore.store.database import Transaction
from memstore.store.facts import Source, TakenSources
from memstore.store.rows import EmbeddingModel, PendingWork, StaleWork, id_of, model_id

MAX_COMPARED_FACTS = 64


class Redo(NamedTuple):
    """The sources that a redo took back, which are recorded as they were, and the recipes that are not made anew."""

    taken: TakenSources
    recipes: Collection[str]


async def apply_fact(
    tx: Transaction,
    new: FactDraft,
    model: EmbeddingModel | None,
    candidates: Collection[UUID],
    redo: Redo | None = None,
    *,
    review: bool = False,
) -> bool:
    """Store a fact, or change known ones by it; return whether it is new. The user is locked.

    `candidates` are facts that may be nearest to it. In a redo those by other recipes take in no source for
    being alike: they wait to be made anew themselves. Under `review` it waits, unless an active fact says the same.
    """
    fact, known = new.fact, await _load_known(tx, new, model, candidates)
    if review and ((stated := _same_statement(new, known)) is None or stated.fact.state != "active"):
        fact.state = QUARANTINED
    if fact.state == QUARANTINED:
        return await _quarantine(tx, new, known)
    waiting = next((prior for prior in known if prior.fact.state == QUARANTINED), None)
    known = [prior for prior in known if prior.fact.state != QUARANTINED]
    duplicate = _same_statement(new, known)
    other_facts = [prior for prior in known if prior is not duplicate]
    if redo is not None:
        other_facts = list(_compare_by_slot_alone(other_facts, new.ends, redo.recipes))
    if duplicate is None:
        decision = reconcile(new, other_facts)
        if decision.waits:
            fact.state = QUARANTINED
            return await _quarantine(tx, new, [waiting, *known] if waiting else known)
        if decision.duplicate is None:
            if fact.recipe.startswith(READER_RECIPE_PREFIX):
                new = await with_outdated(tx, new, fact, other_facts, fact.occurred_at)
                decision = reconcile(new, other_facts, find_duplicate=False)
            await _execute(tx, new, waiting.fact if waiting else fact, decision, fact.occurred_at, model)
            return True
        duplicate = decision.duplicate
        other_facts = [prior for prior in other_facts if prior is not duplicate]
    id, recorded = duplicate.fact.id, redo.taken if redo else {}
    await facts.add_sources(tx, [Source(id, span, recorded.get((id, span.message_id))) for span in new.spans])
    await _reinforce(tx, new, duplicate, other_facts, model)
    return False


async def _load_known(
    tx: Transaction, new: FactDraft, model: EmbeddingModel | None, candidates: Collection[UUID]
) -> list[KnownFact]:
    """Return the facts that a new one is judged by. Whatever the user was called in them, it is one subject."""
    related = related_subjects(new.fact, new.speaker) if new.slot is not None else None
    compared = new.fact, new.compared_attribute, new.spans[0], new.vector, id_of(model), candidates
    known = await facts.known(
        tx,
        *compared,
        other_subjects=related,
        subject_alias=new.alias,
        also_ids=new.ends,
        conversation_id=new.conversation_id,
    )
    if not new.alias:
        return known
    renamed = {"subject": new.fact.subject}
    return [
        replace(prior, fact=prior.fact.model_copy(update=renamed)) if prior.fact.subject == new.alias else prior
        for prior in known
    ]


def _compare_by_slot_alone(
    known: Iterable[KnownFact], ends: Collection[UUID], recipes: Collection[str]
) -> Iterator[KnownFact]:
    """Yield known facts; those that a redo makes anew without their cosine, and only where they have an attribute."""
    for prior in known:
        if prior.by_hand is not None or prior.fact.recipe in recipes or prior.fact.id in ends:
            yield prior
        elif prior.fact.attribute is not None:
            yield replace(prior, cosine=None)


async def _quarantine(tx: Transaction, new: FactDraft, known: Sequence[KnownFact]) -> bool:
    """Store a fact that waits, without a chunk; whether it is new.

    Known facts stay as they are. Otherwise a page that repeats an old value could keep that alive.
    """
    duplicate = _same_statement(new, known)
    if duplicate is None:
        if reconcile(new, known).duplicate is not None:
            return False
        recorded_at = await facts.add(tx, new.fact)
        await facts.add_sources(tx, [Source(new.fact.id, span, recorded_at) for span in new.spans])
        return True
    if duplicate.fact.state == QUARANTINED:
        await facts.add_sources(tx, [Source(duplicate.fact.id, span) for span in new.spans])
        await facts.note_first_said(tx, duplicate.fact.id, new.fact.occurred_at)
        await _refresh(tx, new, duplicate)
    return False


def _same_statement(new: FactDraft, known: Sequence[KnownFact]) -> KnownFact | None:
    exact = next((prior for prior in known if prior.fact.id == new.fact.id), None)
    return exact or next((prior for prior in known if prior.same_words), None)


async def _reinforce(
    tx: Transaction,
    new: FactDraft,
    duplicate: KnownFact,
    other_facts: Sequence[KnownFact],
    model: EmbeddingModel | None,
) -> None:
    """Let a known fact be said again. A superseded one may become true again: "I am back in Leeds"."""
    await facts.note_first_said(tx, duplicate.fact.id, new.fact.occurred_at)
    refreshed = await _refresh(tx, new, duplicate)
    said_at = max(new.fact.occurred_at, duplicate.last_said)
    if new.fact.recipe.startswith(READER_RECIPE_PREFIX):
        new = await with_outdated(tx, new, duplicate.fact, other_facts, said_at)
        if duplicate.by_hand is None or new.plans_again(duplicate):
            await _renew_end(tx, new, duplicate)
        else:
            new = replace(new, successor=None)
    if duplicate.fact.state == "superseded" and duplicate.by_hand != "edited":
        executed = {"new", "supersedes", "conflict"} | ({"outdated"} if new.ends else set())
    elif duplicate.fact.state == "active" and (refreshed or new.ends or new.successor):
        executed = {"supersedes", "outdated"}
    else:
        return
    decision = reconcile(new, other_facts, said_at)
    ended_later = decision.kind == "new" and duplicate.fact.valid_to is not None and said_at < duplicate.fact.valid_to
    if decision.kind in executed and not ended_later:
        await _execute(tx, new, duplicate.fact, decision, said_at, model)


async def _renew_end(tx: Transaction, new: FactDraft, duplicate: KnownFact) -> None:
    """Let a plan that is said again hold until the day that it names now."""
    is_latest = new.fact.occurred_at >= duplicate.last_said and duplicate.fact.recipe == new.fact.recipe
    if duplicate.fact.state == "active" and is_latest and duplicate.fact.valid_to != new.fact.valid_to:
        await facts.change(tx, duplicate.fact, "edited", actor=new.fact.recipe, valid_to=new.fact.valid_to)


async def _refresh(tx: Transaction, new: FactDraft, duplicate: KnownFact) -> bool:
    """Update the same statement to this recipe's columns, unless a person has changed it."""
    same = duplicate.fact.id == new.fact.id
    if not same or duplicate.by_hand is not None or duplicate.fact.recipe in (HAND, new.fact.recipe):
        return False
    await facts.change(tx, duplicate.fact, "edited", actor=new.fact.recipe, **_read_columns(new.fact))
    return True


def _read_columns(fact: FactColumns) -> dict[str, Any]:
    """Return the columns that another recipe may read otherwise in the same words."""
    return fact.model_dump(include={"type", "kind", "attribute", "value", "language", "confidence", "recipe"})


# -- what people enter


async def apply_manual_fact(
    tx: Transaction, new: FactDraft, stored: FactColumns | None, model: EmbeddingModel | None
) -> None:
    """Store a fact that a person enters, or confirms: the one that is `stored` with the same words. The user is locked.

    It is active: older values of its slot end, and contradictions are logged. An active fact that says no more than it
    is replaced by it and hands over its sources, as by an edit.
    """
    fact, said_at = stored or new.fact, new.fact.occurred_at
    [near] = await facts.nearest(tx, [(fact, "", new.vector)], id_of(model))
    known = await facts.known(tx, fact, new.compared_attribute, None, new.vector, id_of(model), near)
    other_facts = [prior for prior in known if prior.fact.id != fact.id and prior.fact.state == "active"]
    replaced = [prior for prior in other_facts if says_no_more(new, prior)]
    if fact.valid_to is None or fact.valid_to > said_at:
        left = [prior for prior in other_facts if prior not in replaced]
        new = await with_outdated(tx, new, fact, left, said_at, by_hand=True)
    decision = reconcile(new, other_facts, find_duplicate=False)
    # A person has the last word, whenever that is said to have been said.
    if decision.successor is not None:
        later = tuple(prior for prior in other_facts if prior.fact.id == decision.successor.id)
        decision = Resolution(decision.begins_at, contradicted=later)
    await _execute(tx, new, fact, decision, said_at, model)
    for prior in replaced:
        old = await facts.fact(tx, prior.fact.id)
        assert old is not None
        await facts.change(tx, old, "edited", actor=HAND, other=fact.id, state="superseded")
        await facts.add_sources(tx, [Source(fact.id, span) for span in old.spans])


async def apply_edited_slot(tx: Transaction, new: FactDraft, fact: FactColumns) -> None:
    """End the other values of the slot that an edit has given to a stored fact, which is `new` as if entered now."""
    known = await facts.known(tx, fact, new.compared_attribute, None, None, None)
    decision = reconcile(new, [prior for prior in known if prior.fact.id != fact.id])
    if decision.kind in ("supersedes", "conflict"):
        await _execute(tx, new, fact, decision, new.fact.occurred_at, None)


# -- what a decision does


async def _execute(
    tx: Transaction,
    new: FactDraft,
    fact: FactColumns,
    decision: Resolution,
    said_at: datetime,
    model: EmbeddingModel | None,
) -> None:
    """Let a fact be active, or outdated at once; it is `new.fact`, or a stored one that is said again."""
    actor, ended = new.fact.recipe, decision.ended
    settled = await facts.settled_by_hand(tx, [prior.fact.id for prior in ended], fact.id) if ended else set()
    for prior in ended:
        is_decided = new.learned_at is not None and prior.by_hand_at is not None and prior.by_hand_at >= new.learned_at
        if prior.fact.id not in settled and not is_decided:
            ends_at = decision.begins_at
            if prior.fact.id in new.ends:
                ends_at = end_of(prior.fact, ends_at, said_at)
            await _supersede(tx, prior.fact, fact.id, ends_at, actor)
    recorded_at = await _activate(tx, new, fact, model)
    if decision.successor is not None:
        await _supersede(tx, fact, decision.successor.id, decision.successor.begins_at, actor, recorded_at)
    # Logged of the one that was said later, whichever of them was derived first.
    for prior in decision.contradicted:
        later, earlier = (
            (fact, prior.fact) if (said_at, fact.id) > (prior.last_said, prior.fact.id) else (prior.fact, fact)
        )
        await facts.change(tx, later, "conflicted", actor=actor, other=earlier.id, at=recorded_at)


async def _activate(
    tx: Transaction, new: FactDraft, fact: FactColumns, model: EmbeddingModel | None
) -> datetime | None:
    """Store a new fact with its source and chunk, or restore a known one; return when it was recorded, if it is new."""
    actor = new.fact.recipe
    if fact is new.fact:
        recorded_at = await facts.add(tx, fact)
        await facts.add_sources(tx, [Source(fact.id, span, recorded_at) for span in new.spans])
        await add_fact_chunk(tx, fact, new.conversation_id, new.vector, model)
        return recorded_at
    # Said by somebody who is trusted now: it rests on that alone.
    if fact.state == QUARANTINED:
        columns = _read_columns(new.fact) | new.fact.model_dump(include={"valid_from", "valid_to"})
        await facts.change(tx, fact, "confirmed", actor=actor, state="active", **columns)
        await facts.drop_sources(tx, fact.id)
        await facts.add_sources(tx, [Source(fact.id, span) for span in new.spans])
        await facts.recompute_first_said(tx, [fact.id])
        await restore_fact_chunk(tx, new.fact, new.conversation_id, new.vector, model)
    elif fact.state != "active":
        await facts.change(tx, fact, "restored", actor=actor, state="active", valid_to=new.fact.valid_to)
    return None


async def _supersede(
    tx: Transaction, fact: FactColumns, other: UUID, ends_at: datetime, actor: str, at: datetime | None = None
) -> None:
    await facts.change(tx, fact, "superseded", actor=actor, other=other, at=at, state="superseded", valid_to=ends_at)


class FactExtractor(DeriverTraits, Protocol):
    """Extracts facts from messages. Pure but for the models that it asks."""

    def recipe_under(self, guidelines: Guidelines) -> str:
        """Return the recipe of what it makes under guidelines."""

    def extract(self, batches: Sequence[FactBatch]) -> list[ExtractedBatch]:
        """Return the facts of each batch."""


class FactDeriver:
    """Makes facts of messages."""

    name = "facts"

    def __init__(self, dependencies: Dependencies) -> None:
        self.dependencies = dependencies
        model, settings = dependencies.facts_model, dependencies.settings
        self._store_level = settings.fact_instructions, settings.fact_types
        self.producer: FactExtractor = LLMExtractor(dependencies, model) if model else ReaderExtractor(dependencies)

    async def load(
        self, tx: Transaction, work: PendingWork, limit: int, made: Sequence[ExtractedBatch] | None = None
    ) -> FactBatch:
        """Return the next messages, and those just before them; for a model a segment, with what is known by then.

        With what a redo has `made` so far, known are that and facts of other conversations.
        """
        batch = await self._load_messages(tx, work, limit)
        if not self.producer.uses_llm or len(batch.messages) == batch.already_read:
            return batch
        until = max(message.occurred_at for message in batch.messages)
        embedder = model_id(self.dependencies.embedder)
        if made is None:
            return replace(batch, known=await facts.remembered(tx, embedder, until))
        conversation, recipes = work.conversation_id, await self._recipes(tx)
        stored = await facts.remembered(tx, embedder, until, conversation=conversation, recipes=recipes)
        known_facts = {known_fact.fact.id: known_fact for known_fact in stored}
        for draft in (draft for results in made for draft in results.facts if draft.fact.state != QUARANTINED):
            known_facts[draft.fact.id] = KnownFact(
                draft.fact, draft.fact.occurred_at, speaker=draft.speaker, vector=draft.vector
            )
            for ended in draft.ends:
                known_facts.pop(ended, None)
        return replace(batch, known=list(known_facts.values()))

    async def _load_messages(self, tx: Transaction, work: PendingWork, limit: int) -> FactBatch:
        new = await load_next_messages(tx, work, limit)
        count = MAX_CONTEXT_MESSAGES if self.producer.uses_llm else LOOKBACK_MESSAGES
        newest = await tx.get(messages.read_newest(work.conversation_id, limit=count, before=work.done_seq + 1))
        rising = await messages.in_rising_time(tx, [*reversed(newest), *new.messages])
        before, read, to_seq = rising[: len(newest)], rising[len(newest) :], new.to_seq
        if self.producer.uses_llm:
            size = self.dependencies.settings.segment_tokens
            if (first := next(split_segments(read, SESSION_GAP, size), None)) and len(first) < len(read):
                read, to_seq = list(first), first[-1].seq
        (guidelines,) = await self._guidelines(tx, work.conversation_id)
        return FactBatch(to_seq, [*before, *read], len(before), guidelines)

    async def _guidelines(self, tx: Transaction, conversation: UUID | None = None) -> list[Guidelines]:
        """Return the guidelines of a conversation; by default those of all the user's conversations, each once."""
        rows = await messages.fact_settings(tx, conversation)
        return [Guidelines.of(self._store_level, row[:2], row[2:]) for row in rows]

    async def _recipes(self, tx: Transaction, conversation: UUID | None = None) -> set[str]:
        """Return the recipes that make a conversation's facts, or all of the user's, now; and that by hand."""
        return {HAND, *map(self.producer.recipe_under, await self._guidelines(tx, conversation))}

    async def stale_work(self, tx: Transaction, recipe: str) -> list[StaleWork]:
        """Return the user's conversations whose facts are by an outdated recipe."""
        usual = self.producer.recipe_under(Guidelines.of(self._store_level))
        works = await watermarks.stale_work(tx, self.name, usual)
        return [work for work in works if work.recipe not in await self._recipes(tx, work.conversation_id)]

    def compute(self, batches: Sequence[FactBatch]) -> list[ExtractedBatch]:
        """Extract, and embed what was extracted. No fact is a secret."""
        extracted = self.producer.extract(batches)
        return [without_secrets(made, batch.messages) for made, batch in zip(extracted, batches, strict=True)]

    async def save(self, tx: Transaction, made: ExtractedBatch) -> dict[str, int]:
        """Store new facts; let known ones be reinforced, superseded or contradicted."""
        return await self._write(tx, [made], None)

    reload = load

    async def replace(
        self, tx: Transaction, conversation: UUID, made: Sequence[ExtractedBatch], recipe: str
    ) -> dict[str, int]:
        """Replace all facts of the conversation by these; changes by hand stay.

        Facts that come out again stay, with their sources and history, so earlier states can still be seen. Facts that
        a removed one had superseded are restored.
        """
        await chunks.lock_user(tx)
        new = [new_fact for batch in made for new_fact in batch.facts]
        active = {new_fact.fact.id for new_fact in new if new_fact.fact.state != QUARANTINED}
        counted = [new_fact for new_fact in new if new_fact.fact.state != QUARANTINED or new_fact.fact.id not in active]
        again = [Source(new_fact.fact.id, span) for new_fact in counted for span in new_fact.spans]
        waiting = {new_fact.fact.id for new_fact in counted} - active
        taken = await facts.remove_sources_of(tx, conversation, but=again, waiting=waiting)
        less_said = {fact for fact, _ in taken}
        staying = less_said & active
        await facts.remove_unsaid(tx, sorted(less_said - staying))
        restored = await facts.restore_orphaned(tx, actor=recipe)
        for new_fact in new:
            await restore_spared(tx, new_fact, actor=recipe)
        counts = await self._write(tx, made, Redo(taken, await self._recipes(tx)))
        # What is said in other words now, by another fact.
        await facts.remove_unsaid(tx, sorted(staying))
        restored += await facts.restore_orphaned(tx, actor=recipe)
        for fact in restored:
            await reapply(tx, fact, actor=recipe)
        return counts

    async def _reviews(self, tx: Transaction, conversation: UUID | None) -> bool:
        setting = None if conversation is None else await messages.reviews_facts(tx, conversation)
        return self.dependencies.settings.review_facts if setting is None else setting

    async def _write(self, tx: Transaction, made: Sequence[ExtractedBatch], redo: Redo | None) -> dict[str, int]:
        new = [new_fact for batch in made for new_fact in batch.facts]
        asked = [batch.llm_session for batch in made if batch.llm_session]
        invalid, refused = sum(batch.invalid for batch in made), sum(batch.refused for batch in made)
        counts = {"invalid_responses": invalid, "refused": refused}
        if new:
            await chunks.lock_user(tx)
            erased = await messages.erased_items(tx, [new_fact.fact.id for new_fact in new])
            model = self.dependencies.model
            review = await self._reviews(tx, new[0].conversation_id)
            for start in range(0, len(new), MAX_COMPARED_FACTS):
                group = new[start : start + MAX_COMPARED_FACTS]
                near = await facts.nearest(
                    tx, [(new_fact.fact, new_fact.alias, new_fact.vector) for new_fact in group], id_of(model)
                )
                for new_fact, candidates in zip(group, near, strict=True):
                    if new_fact.fact.id not in erased:
                        is_new = await apply_fact(tx, new_fact, model, candidates, redo, review=review)
                        kind = QUARANTINED if new_fact.fact.state == QUARANTINED else "facts"
                        counts[kind] = counts.get(kind, 0) + is_new
        # After the user was locked, as summaries do: the other way round they would wait for each other.
        for calls in asked:
            await llm_usage.keep(tx, calls.usage, calls.invalid_responses)
        return counts
