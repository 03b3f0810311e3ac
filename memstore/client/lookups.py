"""What is looked up by its id: a fact, a summary, messages of whatever conversation."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from memstore.client.arguments import id_of, ids_of
from memstore.client.opened import Opened
from memstore.errors import NotFound
from memstore.models import Fact, Message, Summary
from memstore.store import facts, messages, summaries


class AsyncLookups:
    """What a user's scope gives by id; ids of other users are as unknown as any."""

    id: UUID
    _opened: Opened

    async def fact(self, id: Fact | UUID | str) -> Fact:
        """Give a fact in whatever state, as it is now. Raises `NotFound` where this user has none of this id."""
        wanted = id_of(id)
        async with self._opened.database.scope(self.id) as scope:
            found = await facts.fact(scope, wanted)
        if found is None:
            raise NotFound(f"This user has no fact {wanted}.")
        return found

    async def summary(self, id: UUID) -> Summary:
        """Give a summary. Raises `NotFound` where this user has none of this id."""
        async with self._opened.database.scope(self.id) as scope:
            found = await summaries.summary(scope, id)
        if found is None:
            raise NotFound(f"This user has no summary {id}: it may have been made anew, with another id.")
        return found

    async def messages(self, ids: Sequence[UUID]) -> list[Message]:
        """Give those of these messages that there are, in the order in which they were said."""
        wanted = ids_of(ids, "ids")
        async with self._opened.database.scope(self.id) as scope:
            found = await messages.known(scope, wanted)
        return sorted(found.values(), key=lambda one: (one.occurred_at, one.conversation_id, one.seq))

    async def conversation_names(self, ids: Sequence[UUID]) -> dict[UUID, str]:
        """Give the names of those of these conversations that there are, by id."""
        wanted = ids_of(ids, "ids")
        async with self._opened.database.scope(self.id) as scope:
            return await messages.conversation_names(scope, wanted)
