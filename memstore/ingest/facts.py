"""The facts deriver: what speakers assert about themselves and their world, by rules, settled with what is known.

Instructions are never read, nor what a context had put into a message, nor what assistants and tools say unless the
setting `facts_from` trusts them.
"""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from memstore.ingest.embed import next_messages
from memstore.ingest.found import BEFORE, Batch, Made, Reader, Rules
from memstore.ingest.model_facts import ByModel
from memstore.ingest.settle import resettle, settle
from memstore.ingest.tools import Tools
from memstore.store import fact_changes, facts, items, messages, model_calls
from memstore.store.database import Transaction
from memstore.store.derivations import Pending


class Facts:
    """Makes facts of messages."""

    name = "facts"

    def __init__(self, tools: Tools) -> None:
        self.tools = tools
        self.reader: Reader = Rules(tools) if tools.facts_model is None else ByModel(tools, tools.facts_model)

    @property
    def batch(self) -> int:
        """How many messages are thought about at once."""
        return self.reader.batch

    @property
    def asks(self) -> bool:
        """Whether a chat model is asked."""
        return self.reader.asks

    @property
    def recipe(self) -> str:
        """How facts are read. May raise `ModelUnavailable`."""
        return self.reader.recipe

    async def read(self, scope: Transaction, work: Pending, limit: int) -> Batch:
        """Give the next messages, and those just before them."""
        new = await next_messages(scope, work, limit)
        before = await messages.newest(scope, work.conversation_id, limit=BEFORE, before=work.done_seq + 1)
        return Batch(new.to_seq, [*reversed(before), *new.messages], len(before))

    def think(self, batches: Sequence[Batch]) -> list[Made]:
        """Read, and embed what was found."""
        return self.reader.read(batches)

    async def write(self, scope: Transaction, made: Made) -> dict[str, int]:
        """Store new facts; let known ones be reinforced, superseded or contradicted."""
        return await self._write(scope, [made], redo=False)

    async def reread(self, scope: Transaction, work: Pending, limit: int, made: Sequence[Made]) -> Batch:
        """Give the next messages, as `read` does."""
        return await self.read(scope, work, limit)

    async def rewrite(
        self, scope: Transaction, conversation: UUID, made: Sequence[Made], recipe: str
    ) -> dict[str, int]:
        """Put these facts in the place of all that the conversation said; what people did by hand stays.

        What a fact that is gone had superseded is restored.
        """
        await facts.lock(scope)
        letters = [letter for one in made if one.asked for letter in one.asked.letters]
        await model_calls.remove_letters(scope, conversation, self.name, but=letters)
        await facts.remove_unsaid(scope, await facts.take_back(scope, conversation))
        restored = await fact_changes.restore_orphaned(scope, actor=recipe)
        counts = await self._write(scope, made, redo=True)
        for fact in restored:
            await resettle(scope, fact, actor=recipe)
        return counts

    async def _write(self, scope: Transaction, made: Sequence[Made], *, redo: bool) -> dict[str, int]:
        found, asked = [one for some in made for one in some.found], [some.asked for some in made if some.asked]
        for one in asked:
            await model_calls.keep(scope, one.cost, one.letters)
        counts = {"letters": sum(len(one.letters) for one in asked)}
        if found:
            await facts.lock(scope)
            model = await items.bind_embedder(scope, self.tools.embedder)
            new = [await settle(scope, one, model, redo=redo) for one in found]
            counts["facts"] = sum(new)
        return counts
