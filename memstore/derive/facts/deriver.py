"""The facts deriver: what speakers assert about themselves and their world, applied to what is known.

Instructions are never read, nor what a context had put into a message, nor what assistants and tools say unless the
setting `fact_roles` names them. What is said by somebody who is not trusted alone is quarantined (`trust`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol
from uuid import UUID

from memstore.derive.chunks import load_next_messages
from memstore.derive.dependencies import Dependencies, Producer
from memstore.derive.facts.apply import apply_fact, reapply
from memstore.derive.facts.llm_extractor import LLMExtractor
from memstore.derive.facts.rule_extractor import BEFORE, ExtractedBatch, FactBatch, RuleExtractor
from memstore.models import QUARANTINED
from memstore.store import embedding_models, fact_history, facts, llm_usage, messages, tombstones
from memstore.store.database import Transaction
from memstore.store.facts import Source, Taken
from memstore.store.rows import PendingWork


class FactExtractor(Producer, Protocol):
    """Extracts facts from messages. Pure but for the models that it asks."""

    def extract(self, batches: Sequence[FactBatch]) -> list[ExtractedBatch]:
        """Return the facts of each batch."""


class FactDeriver:
    """Makes facts of messages."""

    name = "facts"

    def __init__(self, resources: Dependencies) -> None:
        self.dependencies = resources
        model = resources.facts_model
        self.producer: FactExtractor = RuleExtractor(resources) if model is None else LLMExtractor(resources, model)

    def with_dependencies(self, resources: Dependencies) -> FactDeriver:
        """Return the same with other resources."""
        return FactDeriver(resources)

    async def load(self, scope: Transaction, work: PendingWork, limit: int) -> FactBatch:
        """Return the next messages, and those just before them."""
        new = await load_next_messages(scope, work, limit)
        before = await messages.newest(scope, work.conversation_id, limit=BEFORE, before=work.done_seq + 1)
        return FactBatch(new.to_seq, [*reversed(before), *new.messages], len(before))

    def compute(self, batches: Sequence[FactBatch]) -> list[ExtractedBatch]:
        """Extract, and embed what was extracted."""
        return self.producer.extract(batches)

    async def save(self, scope: Transaction, made: ExtractedBatch) -> dict[str, int]:
        """Store new facts; let known ones be reinforced, superseded or contradicted."""
        return await self._write(scope, [made])

    async def reload(
        self, scope: Transaction, work: PendingWork, limit: int, made: Sequence[ExtractedBatch]
    ) -> FactBatch:
        """Return the next messages, as `load` does."""
        return await self.load(scope, work, limit)

    async def replace(
        self, scope: Transaction, conversation: UUID, made: Sequence[ExtractedBatch], recipe: str
    ) -> dict[str, int]:
        """Put these facts in the place of all that the conversation said; what people did by hand stays.

        Facts that come out again stay, with their sources and history: what was known before can still be seen. What a
        fact that is gone had superseded is restored.
        """
        await facts.lock(scope)
        letters = [letter for batch in made if batch.llm_session for letter in batch.llm_session.invalid_responses]
        await llm_usage.remove_letters(scope, conversation, self.name, but=letters)
        new = [one for batch in made for one in batch.facts]
        active = {one.fact.id for one in new if one.fact.state != QUARANTINED}
        counted = [one for one in new if one.fact.state != QUARANTINED or one.fact.id not in active]
        again = [Source(one.fact.id, span) for one in counted for span in one.spans]
        waiting = {one.fact.id for one in counted} - active
        taken = await facts.take_back(scope, conversation, but=again, waiting=waiting)
        less_said = {fact for fact, _ in taken}
        staying = less_said & active
        await facts.remove_unsaid(scope, sorted(less_said - staying))
        restored = await fact_history.restore_orphaned(scope, actor=recipe)
        counts = await self._write(scope, made, taken=taken)
        await facts.remove_unsaid(scope, sorted(staying))  # what is said in other words now, by another fact
        restored += await fact_history.restore_orphaned(scope, actor=recipe)
        for fact in restored:
            await reapply(scope, fact, actor=recipe)
        return counts

    async def _write(
        self, scope: Transaction, made: Sequence[ExtractedBatch], *, taken: Taken | None = None
    ) -> dict[str, int]:
        new = [one for batch in made for one in batch.facts]
        asked = [batch.llm_session for batch in made if batch.llm_session]
        counts = {"letters": sum(len(calls.invalid_responses) for calls in asked)}
        if new:
            await facts.lock(scope)
            erased = await tombstones.erased_items(scope, [one.fact.id for one in new])
            model = await embedding_models.lock_active(scope, self.dependencies.embedder)
            for one in new:
                if one.fact.id not in erased:
                    kind = QUARANTINED if one.fact.state == QUARANTINED else "facts"
                    counts[kind] = counts.get(kind, 0) + await apply_fact(scope, one, model, taken=taken)
        # After the user was locked, as summaries do: the other way round they would wait for each other.
        for calls in asked:
            await llm_usage.keep(scope, calls.usage, calls.invalid_responses)
        return counts
