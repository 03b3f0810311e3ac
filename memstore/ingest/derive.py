"""Runs the derivers over what is pending, here and now.

A deriver reads a batch in one transaction, thinks with no transaction open, and writes its rows and the watermark in
another. Killed anywhere, it begins again at the watermark and makes the same rows.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol
from uuid import UUID

from memstore.errors import DatabaseUnreachable, ProviderMissing
from memstore.ingest.embed import Embed
from memstore.ingest.facts import Facts
from memstore.ingest.summarize import Summarize
from memstore.ingest.tools import Tools
from memstore.models import DeriveReport
from memstore.store import derivations
from memstore.store.database import Database, Transaction
from memstore.store.derivations import LostRace, Pending
from memstore.waiting import in_thread

logger = logging.getLogger("memstore")

BATCH = 512  # messages thought about at once: enough for the encoder to sort them by length
Progress = Callable[[str, int, int], None]


class Deriver(Protocol):
    """Makes rows of one kind from messages."""

    name: str

    async def read(self, scope: Transaction, work: Pending, limit: int) -> Any:
        """Give what is needed to think about the next `limit` messages; it has `to_seq`, the last of them."""

    def think(self, batches: Sequence[Any]) -> Sequence[Any]:
        """Give what is to be written for each batch. No database here, so models may take their time."""

    async def write(self, scope: Transaction, made: Any) -> dict[str, int]:
        """Store it; give how many rows of each kind were new."""


@dataclass(slots=True)
class _Run:
    """One run of `derive`: what it made, what failed, how far it is."""

    progress: Progress
    totals: dict[str, int]
    made: Counter[str] = field(default_factory=Counter)
    done: Counter[str] = field(default_factory=Counter)
    failed: list[str] = field(default_factory=list)

    def advanced(self, work: Pending, to_seq: int) -> None:
        self.done[work.deriver] += to_seq - work.done_seq
        self.progress(work.deriver, self.done[work.deriver], self.totals.get(work.deriver, 0))


async def derive(
    database: Database, tools: Tools, *, only: UUID | None = None, progress: Progress = lambda *_: None
) -> DeriveReport:
    """Derive everything that is pending, of every user or of one; give what was made and what failed."""
    async with database.operator() as scope:
        run = _Run(progress, await derivations.backlog(scope, only=only))
    for deriver in (Embed(tools), Summarize(tools), Facts(tools)):
        await _all(database, deriver, only, run)
    made = run.made
    return DeriveReport(run.done["embed"], made["units"], made["summaries"], made["facts"], tuple(run.failed))


async def _all(database: Database, deriver: Deriver, only: UUID | None, run: _Run) -> None:
    after: Pending | None = None
    while True:
        async with database.operator() as scope:
            page = await derivations.pending(scope, deriver.name, only=only, after=after)
        if not page:
            return
        after = page[-1]
        for group in _groups(page):
            await _finish(database, deriver, group, run)


def _groups(page: Sequence[Pending]) -> list[list[Pending]]:
    """Gather short conversations, so that the encoder is not fed them one by one."""
    groups: list[list[Pending]] = [[]]
    size = 0
    for work in page:
        if groups[-1] and size + work.last_seq - work.done_seq > BATCH:
            groups.append([])
            size = 0
        groups[-1].append(work)
        size += work.last_seq - work.done_seq
    return groups


async def _finish(database: Database, deriver: Deriver, group: list[Pending], run: _Run) -> None:
    """Step until nothing of the group is left; where a step fails, go on with each conversation by itself."""
    while group:
        try:
            group = await _step(database, deriver, group, run)
        except (DatabaseUnreachable, ProviderMissing):
            raise
        except Exception as error:  # one conversation that cannot be derived must not hold up the others
            if len(group) == 1:
                await _fail(database, group[0], error, run)
                return
            for work in group:
                await _finish(database, deriver, [work], run)
            return


async def _step(database: Database, deriver: Deriver, group: list[Pending], run: _Run) -> list[Pending]:
    """Read, think, write; give what is still behind."""
    batches = []
    for work in group:
        async with database.scope(work.user_id) as scope:
            batches.append(await deriver.read(scope, work, BATCH))
    made = await in_thread(deriver.think, batches)
    left = []
    for position, work in enumerate(group):
        to_seq = batches[position].to_seq
        try:
            async with database.scope(work.user_id) as scope:
                counts = await deriver.write(scope, made[position])
                await derivations.advance(scope, work, to_seq)  # last: whoever adds messages waits for this row
        except LostRace:
            continue  # another worker does this conversation
        run.made.update(counts)
        run.advanced(work, to_seq)
        if to_seq < work.last_seq:
            left.append(Pending(work.user_id, work.conversation_id, work.deriver, to_seq, work.last_seq))
    return left


async def _fail(database: Database, work: Pending, error: Exception, run: _Run) -> None:
    # The type says enough for the table, which the operator may read; the message could quote what was said.
    async with database.scope(work.user_id) as scope:
        await derivations.fail(scope, work, type(error).__name__)
    logger.warning("%s failed in conversation %s", work.deriver, work.conversation_id, exc_info=error)
    run.failed.append(f"{work.deriver} of conversation {work.conversation_id}: {type(error).__name__}: {error}")
