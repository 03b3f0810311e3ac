"""Import an export: every row with its id and its times as it was. Known rows are not taken twice, and never changed.

Derived rows come in as they are, with the watermarks that cover them, so that nothing is made a second time. Where the
store has derived a conversation itself, or gone on with it, it keeps what it has and derives what is new. What was
erased here does not come back, and nothing that was derived of it. What holds a secret is masked, or refused where that
cannot be done, since units, vectors and ids follow from it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import IO, Any
from uuid import UUID

from memstore import ids
from memstore._compat import to_thread
from memstore.derive.chunks import run_with_active_embedder
from memstore.derive.dependencies import Dependencies
from memstore.errors import InvalidInput
from memstore.export.entries import (
    Entry,
    EntryBuilder,
    describe_difference,
    describe_fact_difference,
    hash_units,
)
from memstore.export.reader import LocatedLine, batch_lines, open_export, read_lines
from memstore.export.schema import (
    ConversationLine,
    DocumentLine,
    MessageLine,
    SummaryLine,
    UserLine,
    user_id,
)
from memstore.ingest.importers import ERASED, MOST_NAMED, Imported, Skipped, Span, size_of
from memstore.ingest.redaction import Redactor
from memstore.models import HAND, Conversation, Json, Message, Summary
from memstore.providers import TokenCounter
from memstore.store import (
    archive,
    chunks,
    documents,
    embedding_models,
    erasure,
    facts,
    messages,
    summaries,
    tombstones,
)
from memstore.store.database import Database, Transaction
from memstore.store.embedding_models import id_of
from memstore.store.rows import FactWithHistory
from memstore.store.watermarks import DERIVERS

NAME = "memstore"
OTHERS = "lines of other users"
TAKEN = "number {} of the conversation is another message here; what is stored stays as it is"
NO_SOURCE = "a message that says it is not there: {}; derive facts anew where it is missing for good"


async def restore(
    database: Database,
    resources: Callable[[], Dependencies],
    source: Path | IO[bytes],
    *,
    max_message_bytes: int,
    redactor: Redactor,
    counter: TokenCounter,
    only: str | None = None,
    dry_run: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> Imported:
    """Store what an export holds; a line that cannot be stored is reported, and the rest is.

    Lines of other users than `only` are left out and counted; `InvalidInput` is raised where that one has none. With
    `dry_run` nothing is stored, and the same is reported. `resources` are asked for where units come. `progress` is
    called with the bytes read so far and those of the file; of a stream nobody knows them. Raises `InvalidInput` for
    what is no export.
    """
    running = _Restore(database, resources, EntryBuilder(max_message_bytes, redactor, counter), dry_run)
    report = running.report
    size = size_of(source) if isinstance(source, Path) else 0
    name = source.name if isinstance(source, Path) else "the export"
    with open_export(source, running.count_bytes) as stream:
        batches = batch_lines(read_lines(stream, name, max_message_bytes), report.skip)
        while (batch := await to_thread(next, batches, None)) is not None:
            if only is None or batch[0].line.user == only:
                await running.take(batch)
            else:
                report.left_out[OTHERS] += len(batch)
            if progress is not None and size:
                progress(min(running.read, size), size)
    await running.end_user()
    if only is not None and running.user is None and not report.passed_by:
        raise InvalidInput(f"The export holds nothing of a user {only!r}. Nothing was stored.")
    report.restored = +report.restored  # without those of which there are none
    return report


@dataclass(slots=True)
class _Restore:
    """A restore while it runs: whose lines come, and what it did so far.

    `declared` is the conversation whose line was read last, `new` the last one that was never here. Of those in
    `diverged` the store has derived rows of its own.
    """

    database: Database
    resources: Callable[[], Dependencies]
    builder: EntryBuilder
    dry_run: bool
    report: Imported = field(default_factory=lambda: Imported(NAME))
    read: int = 0  # bytes, as they lie on disk
    user: str | None = None
    user_line: UserLine | None = None
    declared: UUID | None = None
    new: UUID | None = None
    diverged: set[UUID] = field(default_factory=set)
    spans: dict[UUID, Span] = field(default_factory=dict)

    @property
    def user_id(self) -> UUID:
        assert self.user is not None
        return user_id(self.user)

    def count_bytes(self, size: int) -> None:
        self.read += size

    async def take(self, batch: list[LocatedLine]) -> None:
        """Store what is new of lines of one kind."""
        first = batch[0].line
        if first.user != self.user:
            await self.end_user()
            self.user, self.user_line, self.declared = first.user, None, None
            self.diverged, self.spans = set(), {}
        place = getattr(first, "conversation", None)
        try:
            self.builder.redactor.reject_secret_names(user=first.user, conversation=place)
        except InvalidInput as error:
            for one in batch:
                self.report.skip(Skipped(one.where, str(error)))
            return
        if isinstance(first, UserLine):
            await self._user(first)
        elif isinstance(first, ConversationLine):
            for one in batch:
                await self._conversation(one)
        elif isinstance(first, DocumentLine):
            await self._documents(batch)
        else:
            rows, skipped = await to_thread(self.builder.entries, batch, self.user_line)
            for line in skipped:
                self.report.skip(line)
            if isinstance(first, MessageLine):
                await self._messages(rows, first.conversation_id)
            elif isinstance(first, SummaryLine):
                await self._summaries(rows, first.conversation_id)
            else:
                await self._facts(rows)

    async def end_user(self) -> None:
        """Have derivers take up what of a user's messages came in above the watermarks.

        Only now: facts that are derived meanwhile would be settled without those that the file has.
        """
        if self.user is not None and not self.dry_run:
            async with self.database.user_transaction(self.user_id) as scope:
                await archive.pend(scope)

    async def _user(self, line: UserLine) -> None:
        self.user_line = line
        async with self.database.user_transaction(line.user_id) as scope:
            if await archive.owner(scope) is None and await erasure.last_erasure(scope) is None:
                self.report.restored["users"] += 1
                if not self.dry_run:
                    await archive.add_user(scope, line.user, line.settings, line.created_at)

    async def _conversation(self, one: LocatedLine) -> None:
        line = one.line
        assert isinstance(line, ConversationLine)
        self.declared = line.id
        marks: dict[str, tuple[int, str | None]] = {
            name: (mark.seq, mark.recipe) for name, mark in (line.watermarks or {}).items()
        }
        row, changes, problem = self.builder.conversation(line)
        if problem is not None:
            self.report.skip(Skipped(one.where, problem))
        self._span(line.id, line.user, line.conversation, row.title)
        async with self.database.user_transaction(line.user_id) as scope:
            known = [told async for told in archive.read_conversations(scope, line.id)]
            if not known and await erasure.last_erasure(scope, line.id) is not None:
                self.declared = None  # where a message comes that was not erased, it is made by its name alone
                return
            if not known:
                self.new = line.id
                self.report.restored["conversations"] += 1
                if not self.dry_run:
                    await messages.make_user(scope, line.user)
                    await archive.add_conversation(scope, row, marks, changes)
                return
        if reason := describe_difference("conversation", known[0].conversation, row):
            self.report.skip(Skipped(one.where, reason))
        if line.watermarks is not None and known[0].watermarks != marks:
            self.diverged.add(line.id)

    async def _messages(self, rows: Sequence[Entry[Message]], conversation: UUID) -> None:
        if conversation != self.declared:  # its line could not be read: whatever there is, it is derived here
            self.diverged.add(conversation)
        async with self.database.user_transaction(self.user_id) as scope:
            fresh = await self._new_messages(conversation, scope, rows)
            mark = await archive.embedded(scope, conversation)
        for one in rows:
            self._span(conversation, one.line.user, _conversation_name(one)).add(one.item.occurred_at)

        async def lock(scope: Transaction) -> None:
            if not await messages.lock(scope, conversation):  # its line was not read
                made = Conversation.model_construct(id=conversation, name=_conversation_name(fresh[0]))
                await messages.make_conversations(scope, [made], user_name=fresh[0].line.user, derivers=DERIVERS)
                await messages.lock(scope, conversation)

        with_units = [one for one in fresh if one.item.seq <= mark]  # of the others the deriver makes units
        find_new = partial(self._new_messages, conversation)
        self.report.new += await self._store(fresh, with_units, lock, find_new, archive.add_messages)

    async def _new_messages(
        self, conversation: UUID, scope: Transaction, rows: Sequence[Entry[Message]]
    ) -> list[Entry[Message]]:
        """Return the messages that are not there; report those in conflict, and count those known or erased."""
        known = await messages.known(scope, [one.item.id for one in rows])
        erased = await tombstones.erased_messages(scope, [one.item for one in rows if one.item.id not in known])
        taken = await archive.taken(scope, conversation, [one.item.seq for one in rows])
        new = []
        for one in rows:
            message = one.item
            stored = known.get(message.id)
            if message.id in erased:
                self.diverged.add(conversation)
                self.report.left_out[ERASED] += 1
            elif stored is None and message.seq in taken:
                self.report.skip(Skipped(one.where, TAKEN.format(message.seq)))
            elif stored is None:
                known[message.id] = message
                taken.add(message.seq)
                new.append(one)
            elif reason := describe_difference("message", stored, message):
                self.report.skip(Skipped(one.where, reason))
            else:
                self.report.known += 1
        return new

    async def _summaries(self, rows: Sequence[Entry[Summary]], conversation: UUID) -> None:
        if conversation != self.declared:
            self.diverged.add(conversation)
        async with self.database.user_transaction(self.user_id) as scope:
            kept = await self._without_erased(scope, conversation, rows)
            fresh = await self._new_summaries(conversation, scope, kept)

        lock, find_new = partial(messages.lock, conversation=conversation), partial(self._new_summaries, conversation)
        self.report.restored["summaries"] += await self._store(fresh, fresh, lock, find_new, summaries.add)

    async def _without_erased(
        self, scope: Transaction, conversation: UUID, rows: Sequence[Entry[Summary]]
    ) -> Sequence[Entry[Summary]]:
        """Leave out new summaries of messages that are not all there, where some of the user's were erased.

        What is left of those is summarized here. Summaries stand before messages: nobody knows yet which will come.
        """
        if conversation == self.new or not await tombstones.exist(scope):
            return rows
        known = {one.id: one for one in await summaries.some(scope, [one.item.id for one in rows])}
        kept: list[Entry[Summary]] = []
        dropped: list[Summary] = []
        for one in rows:
            summary, stored = one.item, known.get(one.item.id)
            same = stored is not None and describe_difference("summary", stored, summary) is None
            if same or await messages.whole(scope, conversation, summary.from_seq, summary.to_seq):
                kept.append(one)
            else:
                dropped.append(summary)
        self.report.left_out[ERASED] += len(dropped)
        if not self.dry_run and (first_level := [one.from_seq for one in dropped if one.level == 1]):
            await erasure.rewind_watermark(scope, conversation, "summarize", min(first_level) - 1)
        return kept

    async def _new_summaries(
        self, conversation: UUID, scope: Transaction, rows: Sequence[Entry[Summary]]
    ) -> list[Entry[Summary]]:
        known = {one.id: one for one in await summaries.some(scope, [one.item.id for one in rows])}
        new = []
        for one in rows:
            stored = known.get(one.item.id)
            if stored is not None:
                if reason := describe_difference("summary", stored, one.item):
                    self.report.skip(Skipped(one.where, reason))
            elif conversation in self.diverged:
                self.report.left_out["summaries of conversations that are derived here"] += 1
            else:
                known[one.item.id] = one.item
                new.append(one)
        return new

    async def _facts(self, rows: Sequence[Entry[FactWithHistory]]) -> None:
        async with self.database.user_transaction(self.user_id) as scope:
            fresh = await self._new_facts(scope, rows)

        async def lock(scope: Transaction) -> None:
            await messages.make_user(scope, fresh[0].line.user)
            await facts.lock(scope)

        self.report.restored["facts"] += await self._store(fresh, fresh, lock, self._new_facts, archive.add_facts)

    async def _new_facts(
        self, scope: Transaction, rows: Sequence[Entry[FactWithHistory]]
    ) -> list[Entry[FactWithHistory]]:
        """Return the facts that are not there and whose messages are; report the others, and count those erased."""
        known = await archive.known_facts(scope, [one.item.fact.id for one in rows])
        sources = {span.message_id for one in rows for span, _ in one.item.sources}
        places = await archive.places(scope, sorted(sources))
        erased = await tombstones.erased_items(scope, [*(one.item.fact.id for one in rows), *sources])
        since = await erasure.last_erasure(scope)
        new: dict[UUID, Entry[FactWithHistory]] = {}
        for one in rows:
            fact, said_in = one.item.fact, [span.message_id for span, _ in one.item.sources]
            missing = [] if self.dry_run else [message for message in said_in if message not in places]
            if fact.id in known:
                if reason := describe_fact_difference(known[fact.id], one.item):
                    self.report.skip(Skipped(one.where, reason))
            elif fact.id in new:
                continue
            elif not erased.isdisjoint((fact.id, *said_in)) or (since and fact.recorded_at <= since):
                self.report.left_out[ERASED] += 1
            elif missing:
                self.report.skip(Skipped(one.where, NO_SOURCE.format(missing[0])))
            elif fact.recipe != HAND and any(places.get(message) in self.diverged for message in said_in):
                self.report.left_out["facts of conversations that are derived here"] += 1
            else:
                new[fact.id] = one
        return list(new.values())

    async def _documents(self, batch: Sequence[LocatedLine]) -> None:
        """Store the documents that are not there, but for those from before an erasure of the user."""
        rows: list[Json] = []
        vectors: list[Json] = []
        async with self.database.user_transaction(self.user_id) as scope:
            lines = [(one.where, one.line) for one in batch if isinstance(one.line, DocumentLine)]
            stored = await documents.documents(scope, [line.id for _, line in lines], expired=True)
            known = {documents.id_of(scope.user_id, one.namespace, one.key) for one in stored}
            since = await erasure.last_erasure(scope)
            for where, line in lines:
                if since is not None and line.updated_at <= since:
                    self.report.left_out[ERASED] += 1
                elif line.id not in known:
                    try:
                        row, own = self.builder.document(line)
                    except InvalidInput as error:
                        self.report.skip(Skipped(where, str(error)))
                        continue
                    known.add(line.id)
                    rows.append(row)
                    vectors += own
            if rows and not self.dry_run:
                await messages.make_user(scope, batch[0].line.user)
                await archive.add_documents(scope, rows, vectors)
        self.report.restored["documents"] += len(rows)

    def _span(self, conversation: UUID, user: str, name: str, title: str | None = None) -> Span:
        if conversation not in self.spans:
            self.spans = {conversation: Span(user, name, title)}  # its lines follow each other
            self.report.conversations += 1
            if len(self.report.spans) < MOST_NAMED:
                self.report.spans.append(self.spans[conversation])
        return self.spans[conversation]

    async def _store(
        self,
        fresh: Sequence[Entry[Any]],
        with_units: Sequence[Entry[Any]],
        lock: Callable[[Transaction], Any],
        find_new: Callable[[Transaction, Sequence[Entry[Any]]], Any],
        add: Callable[[Transaction, list[Any]], Any],
    ) -> int:
        """Add items that are new still when they are locked, and the units of those in `with_units`; return how many.

        Units have the file's vectors where these are of the user's active embedder, else new ones. No transaction is
        open while they are made. Of a dry run all are new.
        """
        if self.dry_run or not fresh:
            return len(fresh)

        async def write(scope: Transaction) -> Sequence[Entry[Any]]:
            await lock(scope)
            new: Sequence[Entry[Any]] = await find_new(scope, fresh)
            if new:
                await add(scope, [one.item for one in new])
            return new

        async def store_with(resources: Dependencies) -> int:
            maker = self.user_line.embedder if self.user_line else None
            fits = maker is not None and ids.model_id(maker.name, maker.dimensions) == id_of(resources.embedder)
            units = await to_thread(hash_units, with_units, None if fits else resources)
            async with self.database.user_transaction(self.user_id) as scope:
                new = await write(scope)
                if added := [unit for one in new for unit in units.get(one.row.id, ())]:
                    await chunks.add(scope, added, await embedding_models.lock_active(scope, resources.embedder))
            return len(new)

        if any(one.units for one in with_units):
            return await run_with_active_embedder(
                self.database, await to_thread(self.resources), self.user_id, store_with
            )
        async with self.database.user_transaction(self.user_id) as scope:
            return len(await write(scope))


def _conversation_name(one: Entry[Message]) -> str:
    assert isinstance(one.line, MessageLine)
    return one.line.conversation
