"""The facts deriver: what speakers assert about themselves and their world, by rules, settled with what is known.

Instructions are never read, nor what a context had put into a message, nor what assistants and tools say unless the
setting `fact_roles` names them. What is said by somebody who is not believed alone is quarantined (`trust`).
"""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from memstore.derive.chunks import load_next_messages
from memstore.derive.dependencies import Dependencies
from memstore.derive.facts.by_rules import BEFORE
from memstore.derive.facts.extracted import FactBatch, MadeFacts
from memstore.derive.facts.extractor import extractor_of
from memstore.derive.facts.settle import resettle, settle
from memstore.models import QUARANTINED
from memstore.store import embedders, fact_changes, facts, messages, model_calls, tombstones
from memstore.store.database import Transaction
from memstore.store.facts import Source, Taken
from memstore.store.watermarks import Pending


class Facts:
    """Makes facts of messages."""

    name = "facts"

    def __init__(self, dependencies: Dependencies) -> None:
        self.dependencies = dependencies
        self.producer = extractor_of(dependencies)

    def with_dependencies(self, dependencies: Dependencies) -> Facts:
        """Return the deriver with other dependencies."""
        return Facts(dependencies)

    async def load(self, scope: Transaction, work: Pending, limit: int) -> FactBatch:
        """Give the next messages, and those just before them."""
        new = await load_next_messages(scope, work, limit)
        before = await messages.newest(scope, work.conversation_id, limit=BEFORE, before=work.done_seq + 1)
        return FactBatch(new.to_seq, [*reversed(before), *new.messages], len(before))

    def compute(self, batches: Sequence[FactBatch]) -> list[MadeFacts]:
        """Extract, and embed what was extracted."""
        return self.producer.extract(batches)

    async def save(self, scope: Transaction, made: MadeFacts) -> dict[str, int]:
        """Store new facts; let known ones be reinforced, superseded or contradicted."""
        return await self._write(scope, [made])

    async def reload(self, scope: Transaction, work: Pending, limit: int, made: Sequence[MadeFacts]) -> FactBatch:
        """Give the next messages, as `load` does."""
        return await self.load(scope, work, limit)

    async def replace(
        self, scope: Transaction, conversation: UUID, made: Sequence[MadeFacts], recipe: str
    ) -> dict[str, int]:
        """Put these facts in the place of all that the conversation said; what people did by hand stays.

        Facts that come out again stay, with their sources and history: what was known before can still be seen. What a
        fact that is gone had superseded is restored.
        """
        await facts.lock(scope)
        letters = [letter for one in made if one.llm_session for letter in one.llm_session.invalid_responses]
        await model_calls.remove_letters(scope, conversation, self.name, but=letters)
        every = [fact for one in made for fact in one.facts]
        holding = {one.fact.id for one in every if one.fact.state != QUARANTINED}
        said = [one for one in every if one.fact.state != QUARANTINED or one.fact.id not in holding]
        again = [Source(one.fact.id, span) for one in said for span in one.spans]
        waiting = {one.fact.id for one in said} - holding
        taken = await facts.take_back(scope, conversation, but=again, waiting=waiting)
        less_said = {fact for fact, _ in taken}
        staying = less_said & holding
        await facts.remove_unsaid(scope, sorted(less_said - staying))
        restored = await fact_changes.restore_orphaned(scope, actor=recipe)
        counts = await self._write(scope, made, taken=taken)
        await facts.remove_unsaid(scope, sorted(staying))  # what is said in other words now, by another fact
        restored += await fact_changes.restore_orphaned(scope, actor=recipe)
        for fact in restored:
            await resettle(scope, fact, actor=recipe)
        return counts

    async def _write(
        self, scope: Transaction, made: Sequence[MadeFacts], *, taken: Taken | None = None
    ) -> dict[str, int]:
        new, asked = (
            [fact for one in made for fact in one.facts],
            [some.llm_session for some in made if some.llm_session],
        )
        counts = {"letters": sum(len(one.invalid_responses) for one in asked)}
        if new:
            await facts.lock(scope)
            erased = await tombstones.erased_items(scope, [one.fact.id for one in new])
            new = [one for one in new if one.fact.id not in erased]
            model = await embedders.bind(scope, self.dependencies.embedder)
            for one in new:
                kind = QUARANTINED if one.fact.state == QUARANTINED else "facts"
                counts[kind] = counts.get(kind, 0) + await settle(scope, one, model, taken=taken)
        # After the user was locked, as summaries do: the other way round they would wait for each other.
        for some in asked:
            await model_calls.keep(scope, some.usage, some.invalid_responses)
        return counts
