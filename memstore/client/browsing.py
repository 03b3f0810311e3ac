"""What a user's scope offers to whoever looks through a memory: pages, and what hangs together."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from memstore.client.arguments import aware, check_limit, check_offset, check_seq, ids_of
from memstore.client.opened import Opened
from memstore.errors import InvalidInput
from memstore.ingest.check import check_text, one_of
from memstore.models import FACT_STATES, FACT_TYPES, Fact, Receipt, Summary, Timeline
from memstore.store import browse, facts

MOST_PARTS = 1000


class AsyncBrowsing:
    """What is looked through page by page, however much of it there is."""

    id: UUID
    _opened: Opened

    async def fact_page(
        self,
        *,
        state: str | None = "active",
        type: str | None = None,
        subject: str | None = None,
        before: tuple[datetime, UUID] | None = None,
        limit: int = 100,
    ) -> list[Fact]:
        """Give a page of facts, the latest first: as `facts` does, of any state with None.

        `before` are `occurred_at` and `id` of the last one of the page before.
        """
        if subject is not None:
            check_text(subject, "the subject")
        one_of("state", state, FACT_STATES)
        one_of("type", type, FACT_TYPES)
        check_limit(limit)
        last = None if before is None else browse.Last(*before)
        aware(None if last is None else last.at, "before")
        async with self._opened.database.scope(self.id) as scope:
            return await browse.fact_page(scope, state=state, type=type, subject=subject, before=last, limit=limit)

    async def facts_of(self, ids: Sequence[UUID]) -> list[Fact]:
        """Give those of these facts that there are, of whatever state, the latest first."""
        wanted = ids_of(ids, "ids")
        async with self._opened.database.scope(self.id) as scope:
            return await facts.facts(scope, state=None, ids=wanted)

    async def facts_said_by(self, messages: Sequence[UUID], *, limit: int = 100, offset: int = 0) -> list[Fact]:
        """Give the facts that these messages say, of whatever state, the latest first, after the first `offset`."""
        wanted = ids_of(messages, "messages")
        check_limit(limit)
        check_offset(offset)
        async with self._opened.database.scope(self.id) as scope:
            return await browse.facts_said_by(scope, wanted, limit=limit, offset=offset)

    async def summaries_over(
        self, conversation_id: UUID, from_seq: int, to_seq: int, *, limit: int = 100, offset: int = 0
    ) -> list[Summary]:
        """Give the summaries that stand for some of these messages, both numbers included, the lowest level first.

        Those that were asked for come last; the first `offset` are left out.
        """
        check_seq(from_seq, "from_seq")
        check_seq(to_seq, "to_seq")
        check_limit(limit)
        check_offset(offset)
        (conversation,) = ids_of([conversation_id], "conversation_id")
        async with self._opened.database.scope(self.id) as scope:
            return await browse.summaries_over(scope, conversation, from_seq, to_seq, limit=limit, offset=offset)

    async def receipt_page(
        self, *, conversation_id: UUID | None = None, before: UUID | None = None, limit: int = 20
    ) -> list[Receipt]:
        """Give receipts of all conversations or of one, the latest first, without what their items say.

        `before` is the id of the last one of the page before.
        """
        check_limit(limit)
        ids_of([one for one in (conversation_id, before) if one is not None], "ids")
        async with self._opened.database.scope(self.id) as scope:
            return await browse.receipt_page(scope, conversation_id, before=before, limit=limit)

    async def timeline(self, *, parts: int = 60) -> Timeline | None:
        """Give how much of each tier is of which part of the time from the first message to the last one.

        None before the first message. Reads each row of the user: 100,000 messages take a tenth of a second.
        """
        if type(parts) is not int or not 1 <= parts <= MOST_PARTS:
            raise InvalidInput(f"parts={parts!r}: give a number from 1 to {MOST_PARTS:,}.")
        async with self._opened.database.scope(self.id) as scope:
            return await browse.timeline(scope, parts)
