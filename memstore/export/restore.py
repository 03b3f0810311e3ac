"""An export in: every row with its id and its times as it was. What is known is not taken twice, and never changed.

Derived rows come in as they are, with the watermarks that cover them, so that nothing is made a second time. Where the
store has derived a conversation itself, or gone on with it, it keeps what it has and derives what is new. What was
erased here does not come back, and nothing that was derived of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import IO, Protocol
from uuid import UUID

from memstore import ids
from memstore._compat import to_thread
from memstore.derive.active_embedder import run_with_active_embedder
from memstore.derive.dependencies import Dependencies
from memstore.errors import InvalidInput
from memstore.export import judged, source
from memstore.export.documents import store_documents
from memstore.export.ready import Ready, new_units, ready
from memstore.export.redact import redact_lines
from memstore.export.shapes import (
    ConversationLine,
    DocumentLine,
    FactLine,
    MessageLine,
    SummaryLine,
    UserLine,
    user_id,
)
from memstore.export.source import Batch, Located
from memstore.ingest.importers import Imported, Skipped, Span, size_of
from memstore.ingest.importers.records import ERASED, MOST_NAMED
from memstore.ingest.redaction import Redactor
from memstore.models import HAND, Conversation
from memstore.providers import TokenCounter
from memstore.store import embedders, erasures, exports, facts, messages, removals, restores, summaries, tombstones
from memstore.store.database import Database, Transaction
from memstore.store.derivations import DERIVERS
from memstore.store.embedders import id_of

NAME = "memstore"
TAKEN = "number {} of the conversation is another message here; what is stored stays as it is"
UNSAID = "a message that says it is not there: {}; derive facts anew where it is missing for good"


@dataclass(frozen=True, slots=True)
class Admission:
    """What lines must pass: how long a message may be, and what masks secrets and counts again."""

    max_message_bytes: int
    redactor: Redactor
    counter: TokenCounter


async def restore(
    database: Database,
    resources: Callable[[], Dependencies],
    given: Path | IO[bytes],
    *,
    admission: Admission,
    only: str | None = None,
    dry_run: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> Imported:
    """Take an export in; a line that cannot be is named, and the rest is stored.

    Of `only` one user what other users have is left out and counted; `InvalidInput` where that one has nothing in it.
    With `dry_run` nothing is stored, and the same is told. `resources` are asked for where units come. `progress` is
    called with the bytes read so far and those that there are; of a stream nobody knows them. What holds a secret is
    masked where that is set, or refused where it cannot be. Raises `InvalidInput` for what is no export.
    """
    running = _Restore(database, resources, admission, dry_run)
    size = size_of(given) if isinstance(given, Path) else 0
    name = given.name if isinstance(given, Path) else "the export"
    with source.opened(given, running.seen) as stream:
        every = source.lines(stream, name, admission.max_message_bytes)
        if only is not None:
            every = source.of_user(every, only, running.done.left_out)
        lines = redact_lines(every, admission.redactor, admission.counter)
        batches = source.batches(lines, running.done.skip)
        while (batch := await to_thread(next, batches, None)) is not None:
            await running.take(batch)
            if progress is not None and size:
                progress(min(running.read, size), size)
    await running.end_user()
    if only is not None and running.user is None and not running.done.passed_by:
        raise InvalidInput(f"The export holds nothing of a user {only!r}. Nothing was stored.")
    running.done.restored = +running.done.restored  # without those of which there are none
    return running.done


class Writing(Protocol):
    """Writes items in a transaction."""

    async def __call__(self, scope: Transaction) -> list[Ready]:
        """Store those that are not there; give them."""


@dataclass(slots=True)
class _Restore:
    """A restore while it runs: whose lines come, and what it did so far.

    `declared` is the conversation whose line was read last, `new` the last one that was never here. Of those in `apart`
    the store has derived rows of its own.
    """

    database: Database
    resources: Callable[[], Dependencies]
    admission: Admission
    dry_run: bool
    done: Imported = field(default_factory=lambda: Imported(NAME))
    read: int = 0  # bytes, as they lie on disk
    user: str | None = None
    line: UserLine | None = None
    declared: UUID | None = None
    new: UUID | None = None
    apart: set[UUID] = field(default_factory=set)
    spans: dict[UUID, Span] = field(default_factory=dict)

    def seen(self, size: int) -> None:
        """Count bytes that were read."""
        self.read += size

    async def take(self, batch: Batch) -> None:
        """Store what is new of a batch."""
        first = batch.first
        if first.user != self.user:
            await self.end_user()
            self.user, self.line, self.declared = first.user, None, None
            self.apart, self.spans = set(), {}
        if isinstance(first, UserLine):
            await self._user(first)
        elif isinstance(first, ConversationLine):
            for one in batch.lines:
                await self._conversation(one)
        elif isinstance(first, SummaryLine):
            await self._summaries(batch, first.conversation_id)
        elif isinstance(first, MessageLine):
            await self._messages(batch, first.conversation_id)
        elif isinstance(first, FactLine):
            await self._facts(batch)
        elif isinstance(first, DocumentLine):
            self.done.restored["documents"] += await store_documents(self.database, batch, self.done, self.dry_run)

    async def end_user(self) -> None:
        """Have derivers take up what of a user's messages came in above the watermarks.

        Only now: facts that are derived meanwhile would be settled without those that the file has.
        """
        if self.user is not None and not self.dry_run:
            async with self.database.scope(user_id(self.user)) as scope:
                await restores.pend(scope)

    async def _user(self, line: UserLine) -> None:
        self.line = line
        async with self.database.scope(line.user_id) as scope:
            if await exports.owner(scope) is None and await erasures.latest(scope) is None:
                self.done.restored["users"] += 1
                if not self.dry_run:
                    await restores.add_user(scope, line.user, line.settings, line.created_at)

    async def _conversation(self, one: Located) -> None:
        line = one.line
        assert isinstance(line, ConversationLine)
        self.declared = line.id
        marks: dict[str, tuple[int, str | None]] = {
            name: (mark.seq, mark.recipe) for name, mark in (line.watermarks or {}).items()
        }
        given = line.row()
        given.settings, wrong = judged.usable(line.settings)
        for problem in wrong:
            self.done.skip(Skipped(one.where, problem))
        self._span(line.id, line.user, line.conversation, line.title)
        async with self.database.scope(line.user_id) as scope:
            known = [told async for told in exports.conversations(scope, line.id)]
            if not known and await erasures.latest(scope, line.id) is not None:
                self.declared = None  # where a message comes that was not erased, it is made by its name alone
                return
            if not known:
                self.new = line.id
                self.done.restored["conversations"] += 1
                if not self.dry_run:
                    await messages.make_user(scope, line.user)
                    changes = [
                        change.model_dump() | {"before": judged.usable(change.before)[0]}
                        for change in line.setting_changes
                    ]
                    await restores.add_conversation(scope, given, marks, changes)
                return
        reason = judged.of_conversation(known[0].conversation, given)
        if reason is not None:
            self.done.skip(Skipped(one.where, reason))
        if line.watermarks is not None and known[0].watermarks != marks:
            self.apart.add(line.id)

    async def _messages(self, batch: Batch, place: UUID) -> None:
        if place != self.declared:  # its line could not be read: whatever there is, it is derived here
            self.apart.add(place)
        given = await self._ready(batch)
        async with self.database.scope(self._id) as scope:
            fresh = await self._fresh(scope, place, given)
            mark = await restores.embedded(scope, place)
        for one in given:
            self._span(place, *_named(one)).add(one.message.occurred_at)
        if not self.dry_run and fresh:
            embedded = [one for one in fresh if one.message.seq <= mark]  # of the others the deriver makes units
            fresh = await self._stored(embedded, partial(self._write_messages, place, fresh))
        self.done.new += len(fresh)

    async def _write_messages(self, place: UUID, given: Sequence[Ready], scope: Transaction) -> list[Ready]:
        """Store those messages that are not there by now; their conversation is made where its line was not read."""
        if not await messages.lock(scope, place):
            user, name = _named(given[0])
            made = Conversation.model_construct(id=place, name=name)
            await messages.make_conversations(scope, [made], user_name=user, derivers=DERIVERS)
            await messages.lock(scope, place)
        fresh = await self._fresh(scope, place, given)
        if fresh:
            await restores.add_messages(scope, [one.message for one in fresh])
        return fresh

    async def _fresh(self, scope: Transaction, place: UUID, given: Sequence[Ready]) -> list[Ready]:
        """Give the messages that are not there; tell those that are in conflict, and count those known or erased."""
        known = await messages.known(scope, [one.message.id for one in given])
        erased = await tombstones.erased_messages(scope, [one.message for one in given if one.id not in known])
        taken = await restores.taken(scope, place, [one.message.seq for one in given])
        fresh = []
        for one in given:
            message = one.message
            stored = known.get(message.id)
            if message.id in erased:
                self.apart.add(place)
                self.done.left_out[ERASED] += 1
            elif stored is None and message.seq in taken:
                self.done.skip(Skipped(one.where, TAKEN.format(message.seq)))
            elif stored is None:
                known[message.id] = message
                taken.add(message.seq)
                fresh.append(one)
            elif (reason := judged.of_message(stored, message)) is not None:
                self.done.skip(Skipped(one.where, reason))
            else:
                self.done.known += 1
        return fresh

    async def _summaries(self, batch: Batch, place: UUID) -> None:
        if place != self.declared:
            self.apart.add(place)
        given = await self._ready(batch)
        async with self.database.scope(self._id) as scope:
            fresh = await self._new_summaries(scope, place, await self._not_erased(scope, place, given))
        if not self.dry_run and fresh:
            fresh = await self._stored(fresh, partial(self._write_summaries, place, fresh))
        self.done.restored["summaries"] += len(fresh)

    async def _not_erased(self, scope: Transaction, place: UUID, given: Sequence[Ready]) -> Sequence[Ready]:
        """Leave out new summaries of messages that are not all there, where some of the user's were erased.

        What is left of those is summarized here. Summaries stand before messages: nobody knows yet which will come.
        """
        if place == self.new or not await tombstones.exist(scope):
            return given
        known = {one.id: one for one in await summaries.some(scope, [one.id for one in given])}
        kept: list[Ready] = []
        out: list[Ready] = []
        for one in given:
            made, stored = one.summary, known.get(one.id)
            same = stored is not None and judged.of_summary(stored, made) is None
            there = same or await messages.whole(scope, place, made.from_seq, made.to_seq)
            (kept if there else out).append(one)
        self.done.left_out[ERASED] += len(out)
        if nest := [one.summary.from_seq for one in out if one.summary.level == 1 and not self.dry_run]:
            await removals.back_to(scope, place, "summarize", min(nest) - 1)
        return kept

    async def _write_summaries(self, place: UUID, given: Sequence[Ready], scope: Transaction) -> list[Ready]:
        await messages.lock(scope, place)
        fresh = await self._new_summaries(scope, place, given)
        if fresh:
            await restores.add_summaries(scope, [one.summary for one in fresh])
        return fresh

    async def _new_summaries(self, scope: Transaction, place: UUID, given: Sequence[Ready]) -> list[Ready]:
        known = {one.id: one for one in await summaries.some(scope, [one.summary.id for one in given])}
        fresh = []
        for one in given:
            stored = known.get(one.summary.id)
            reason = None if stored is None else judged.of_summary(stored, one.summary)
            if reason is not None:
                self.done.skip(Skipped(one.where, reason))
            elif stored is None and place in self.apart:
                self.done.left_out["summaries of conversations that are derived here"] += 1
            elif stored is None:
                known[one.summary.id] = one.summary
                fresh.append(one)
        return fresh

    async def _facts(self, batch: Batch) -> None:
        given = await self._ready(batch)
        async with self.database.scope(self._id) as scope:
            fresh = await self._new_facts(scope, given)
        if not self.dry_run and fresh:
            fresh = await self._stored(fresh, partial(self._write_facts, batch.first.user, fresh))
        self.done.restored["facts"] += len(fresh)

    async def _write_facts(self, user: str, given: Sequence[Ready], scope: Transaction) -> list[Ready]:
        await messages.make_user(scope, user)
        await facts.lock(scope)
        fresh = await self._new_facts(scope, given)
        if fresh:
            await restores.add_facts(scope, [one.fact for one in fresh])
        return fresh

    async def _new_facts(self, scope: Transaction, given: Sequence[Ready]) -> list[Ready]:
        """Give the facts that are not there and whose messages are; tell the others, and count those erased."""
        known = await restores.known_facts(scope, [one.fact.fact.id for one in given])
        said = {span.message_id for one in given for span, _ in one.fact.sources}
        places = await restores.places(scope, sorted(said))
        erased = await tombstones.erased_items(scope, [*(one.id for one in given), *said])
        since = await erasures.latest(scope)
        fresh: dict[UUID, Ready] = {}
        for one in given:
            id, said_in = one.fact.fact.id, [span.message_id for span, _ in one.fact.sources]
            missing = [] if self.dry_run else [message for message in said_in if message not in places]
            reason = judged.of_fact(known[id], one.fact) if id in known else None
            if reason is not None:
                self.done.skip(Skipped(one.where, reason))
            elif id in known or id in fresh:
                continue
            elif not erased.isdisjoint((id, *said_in)) or (since and one.fact.fact.recorded_at <= since):
                self.done.left_out[ERASED] += 1
            elif missing:
                self.done.skip(Skipped(one.where, UNSAID.format(missing[0])))
            elif one.fact.fact.recipe != HAND and any(places.get(message) in self.apart for message in said_in):
                self.done.left_out["facts of conversations that are derived here"] += 1
            else:
                fresh[id] = one
        return list(fresh.values())

    @property
    def _id(self) -> UUID:
        assert self.user is not None
        return user_id(self.user)

    def _span(self, place: UUID, user: str, name: str, title: str | None = None) -> Span:
        """Give the span of a conversation; the first ones are told."""
        if place not in self.spans:
            self.spans = {place: Span(user, name, title)}  # its lines follow each other
            self.done.conversations += 1
            if len(self.done.spans) < MOST_NAMED:
                self.done.spans.append(self.spans[place])
        return self.spans[place]

    async def _ready(self, batch: Batch) -> list[Ready]:
        """Give the lines as they are to be stored; tell those that cannot be."""
        found, skipped = await to_thread(ready, batch.lines, self.line, self.admission.max_message_bytes)
        for one in skipped:
            self.done.skip(one)
        return found

    async def _stored(self, embedded: Sequence[Ready], write: Writing) -> list[Ready]:
        """Store items by `write`, and the units of those in `embedded`; give the items that were new.

        Units have the file's vectors where these are of the embedder that serves the user, else new ones. No
        transaction is open while they are made.
        """

        async def made(resources: Dependencies) -> list[Ready]:
            maker = self.line.embedder if self.line else None
            fits = maker is not None and ids.model_id(maker.name, maker.dimensions) == id_of(resources.embedder)
            units = await to_thread(new_units, embedded, None if fits else resources)
            async with self.database.scope(self._id) as scope:
                new = await write(scope)
                if added := [unit for one in new for unit in units.get(one.id, ())]:
                    await restores.add_units(scope, added, await embedders.bind(scope, resources.embedder))
            return new

        if any(one.units for one in embedded):
            return await run_with_active_embedder(self.database, await to_thread(self.resources), self._id, made)
        async with self.database.scope(self._id) as scope:
            return await write(scope)


def _named(one: Ready) -> tuple[str, str]:
    """Give the names of a message's user and conversation."""
    line = one.line
    assert isinstance(line, MessageLine)
    return line.user, line.conversation
