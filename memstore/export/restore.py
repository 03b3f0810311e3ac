"""Import an export: every row with its id and its times as it was. Known rows are not taken twice, and never changed.

Derived rows come in as they are, with the watermarks that cover them, so that nothing is made a second time. Where the
store has derived a conversation itself, or gone on with it, it keeps what it has and derives what is new. Messages that
were erased here do not come back, nor anything derived from them. Secrets are masked, and lines where that is
impossible refused, since chunks, vectors and ids follow from it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, Any
from uuid import UUID

from memstore import ids
from memstore._compat import to_thread
from memstore.derive.dependencies import Dependencies
from memstore.errors import InvalidInput
from memstore.export import reader, schema
from memstore.export.reader import Entry
from memstore.ingest.importers import ImportProblem, ImportReport, base
from memstore.ingest.redaction import Redactor
from memstore.models import HAND, Conversation, FactColumns, Json, Message, Summary
from memstore.providers import TokenCounter
from memstore.store import archive, chunks, documents, erasure, messages, summaries
from memstore.store.database import Database, Transaction
from memstore.store.rows import NewChunk, model_id
from memstore.store.watermarks import DERIVERS

FindNew = Callable[[Transaction, Sequence[Entry[Any]]], Any]


async def restore(
    database: Database,
    run: Callable[[Callable[[Dependencies], Any]], Any],
    source: Path | IO[bytes],
    *,
    max_message_bytes: int,
    redactor: Redactor,
    counter: TokenCounter,
    only: str | None = None,
    progress: Callable[[int], None] = lambda _: None,
) -> ImportReport:
    """Store the lines of an export; a line that cannot be stored is reported, and the rest is stored.

    Lines of other users than `only` are left out and counted; `InvalidInput` is raised where that one has none.
    `run` loads the dependencies when chunks come. `progress` is called with the lines so far. Raises `InvalidInput` for
    what is no export.
    """
    report = ImportReport("memstore")
    builder = reader.EntryBuilder(max_message_bytes, redactor, counter, report)
    running = _Restore(database, run, builder, report)
    name = source.name if isinstance(source, Path) else "the export"
    with reader.open_export(source) as stream:
        batches, done = reader.batch_lines(reader.read_lines(stream, name, max_message_bytes), report), 0
        while (batch := await to_thread(next, batches, None)) is not None:
            if only is None or batch[0].line.user == only:
                await running.take(batch)
            else:
                report.ignored["lines of other users"] += len(batch)
            done += len(batch)
            progress(done)
    await running.end_user()
    if only is not None and running.user is None and not report.skipped:
        raise InvalidInput(f"The export holds nothing of a user {only!r}. Nothing was stored.")
    return report


@dataclass(slots=True)
class _Restore:
    """The state of a restore: the user whose lines come, and the results so far.

    `declared` is the conversation whose line was read last, `new` the last one that was never here. Of those in
    `diverged` the store has derived rows of its own.
    """

    database: Database
    run: Callable[[Callable[[Dependencies], Any]], Any]
    builder: reader.EntryBuilder
    report: ImportReport
    user: str | None = None
    user_line: schema.UserLine | None = None
    declared: UUID | None = None
    new: UUID | None = None
    diverged: set[UUID] = field(default_factory=set)

    @property
    def user_id(self) -> UUID:
        assert self.user is not None
        return ids.user_id(self.user)

    async def take(self, batch: list[reader.LocatedLine]) -> None:
        first = batch[0].line
        if first.user != self.user:
            await self.end_user()
            self.user, self.user_line, self.declared = first.user, None, None
            self.diverged = set()
        names = {"user": first.user, "conversation": getattr(first, "conversation", None)}
        try:
            self.builder.redactor.reject_secret_names(**names)
        except InvalidInput as error:
            for record in batch:
                self.report.add_problem(ImportProblem(record.where, str(error)))
            return
        if isinstance(first, schema.UserLine):
            await self._user(batch[0].where, first)
        elif isinstance(first, schema.ConversationLine):
            for record in batch:
                await self._conversation(record.where, record.line)
        elif isinstance(first, schema.DocumentLine):
            await self._documents(batch)
        else:
            await self._items(batch, first)

    async def end_user(self) -> None:
        """Make imported messages of the user above the watermarks pending.

        Only now: facts derived earlier would be reconciled without those of the file.
        """
        if self.user is not None:
            async with self.database.user_transaction(self.user_id) as tx:
                await archive.make_pending(tx)

    async def _user(self, where: str, line: schema.UserLine) -> None:
        self.user_line = line
        settings = self.builder.settings(where, line.settings)
        async with self.database.user_transaction(line.user_id) as tx:
            if await archive.owner(tx) is None and await erasure.last_erasure(tx) is None:
                self.report.restored["users"] += 1
                await archive.add_user(tx, line.user, settings, line.created_at)

    async def _conversation(self, where: str, line: Any) -> None:
        self.declared = line.id
        marks = {name: (mark.seq, mark.recipe) for name, mark in (line.watermarks or {}).items()}
        row, lists = self.builder.conversation(where, line)
        async with self.database.user_transaction(line.user_id) as tx:
            conversations = [conversation async for conversation in archive.read_conversations(tx, line.id)]
            if not conversations and await erasure.last_erasure(tx, line.id) is not None:
                # Where a message comes that was not erased, it is made by its name alone.
                self.declared = None
                return
            if not conversations:
                self.new = line.id
                self.report.restored["conversations"] += 1
                await messages.make_user(tx, line.user)
                await archive.add_conversation(tx, row, marks)
                await archive.add_lists(tx, line.table, {line.id: lists})
                return
        if line.watermarks is not None and conversations[0].watermarks != marks:
            self.diverged.add(line.id)

    async def _items(self, batch: Sequence[reader.LocatedLine], first: schema.ItemLine) -> None:
        entries = await to_thread(self.builder.entries, batch, self.user_line)
        if not entries:
            return
        # Its line could not be read: it is derived here.
        if not isinstance(first, schema.FactLine) and first.conversation_id != self.declared:
            self.diverged.add(first.conversation_id)
        find_new: FindNew
        add: Callable[[Transaction, list[Any]], Any]
        if isinstance(first, schema.MessageLine):
            find_new, add = self._new_messages, archive.add_messages
        elif isinstance(first, schema.SummaryLine):
            find_new, add = self._new_summaries, summaries.add
        else:
            find_new, add = self._new_facts, archive.add_facts
        async with self.database.user_transaction(self.user_id) as tx:
            fresh = await find_new(tx, entries)
        count = await self._store(fresh, first, find_new, add) if fresh else 0
        if isinstance(first, schema.MessageLine):
            self.report.new += count
        elif count:
            self.report.restored["facts" if isinstance(first, schema.FactLine) else "summaries"] += count

    async def _new_messages(self, tx: Transaction, rows: Sequence[Entry[Message]]) -> list[Entry[Message]]:
        """Return the messages that are not there; report those in conflict, and count those known or erased."""
        conversation = rows[0].row.conversation_id
        mark = await archive.last_with_chunks(tx, conversation)
        known_messages = await messages.by_ids(tx, [entry.row.id for entry in rows])
        unknown = [entry.row for entry in rows if entry.row.id not in known_messages]
        erased = await messages.erased_messages(tx, unknown)
        taken = await archive.taken_numbers(tx, conversation, [entry.row.seq for entry in rows])
        new = []
        for entry in rows:
            message = entry.row
            stored = known_messages.get(message.id)
            if message.id in erased:
                self.diverged.add(conversation)
                self.report.ignored[base.ERASED] += 1
            elif stored is None and message.seq in taken:
                number = f"number {message.seq} of the conversation"
                problem = f"{number} is another message here; the stored one stays as it is"
                self.report.add_problem(ImportProblem(entry.where, problem))
            elif stored is None:
                known_messages[message.id] = message
                taken.add(message.seq)
                # Behind the mark the deriver makes chunks.
                new.append(entry if message.seq <= mark else replace(entry, chunks=[]))
            elif reason := reader.describe_difference(stored, message):
                self.report.add_problem(ImportProblem(entry.where, reason))
            else:
                self.report.known += 1
        return new

    async def _new_summaries(self, tx: Transaction, rows: Sequence[Entry[Summary]]) -> list[Entry[Summary]]:
        """Return the summaries that are not there.

        Where something of the user's was erased, new ones whose messages are not all there are left out; the messages
        that are left are summarized here. Summaries stand before messages: nobody knows yet which will come.
        """
        known_ids = {summary.id for summary in await tx.get(summaries.read_by_ids([entry.row.id for entry in rows]))}
        conversation = rows[0].row.conversation_id
        anything_erased = conversation != self.new and await messages.is_anything_erased(tx)
        new = []
        for entry in rows:
            summary = entry.row
            first, last = summary.from_seq, summary.to_seq
            if summary.id in known_ids:
                continue
            if anything_erased and not await messages.whole(tx, summary.conversation_id, first, last):
                self.report.ignored[base.ERASED] += 1
                if summary.level == 1:
                    await erasure.rewind_watermark(tx, summary.conversation_id, "summaries", first - 1)
            elif conversation in self.diverged:
                self.report.ignored["summaries of conversations that are derived here"] += 1
            else:
                known_ids.add(summary.id)
                new.append(entry)
        return new

    async def _new_facts(self, tx: Transaction, rows: Sequence[Entry[FactColumns]]) -> list[Entry[Any]]:
        """Return the facts that are not there and whose messages are; report the others, and count those erased."""
        known_ids = set(await erasure.known_facts(tx, [entry.row.id for entry in rows]))
        sources = {source["message_id"] for entry in rows for source in entry.lists["sources"]}
        places = await archive.places(tx, sorted(sources))
        erased = await messages.erased_items(tx, [*(entry.row.id for entry in rows), *sources])
        since = await erasure.last_erasure(tx)
        new: dict[UUID, Entry[FactColumns]] = {}
        for entry in rows:
            fact = entry.row
            said_in = [source["message_id"] for source in entry.lists["sources"]]
            missing = [message for message in said_in if message not in places]
            if fact.id in known_ids or fact.id in new:
                continue
            if not erased.isdisjoint((fact.id, *said_in)) or (since and fact.recorded_at <= since):
                self.report.ignored[base.ERASED] += 1
            elif missing:
                advice = "derive facts anew where it is missing for good"
                reason = f"a message that says it is not there: {missing[0]}; {advice}"
                self.report.add_problem(ImportProblem(entry.where, reason))
            elif fact.recipe != HAND and any(places.get(message) in self.diverged for message in said_in):
                self.report.ignored["facts of conversations that are derived here"] += 1
            else:
                new[fact.id] = entry
        return list(new.values())

    async def _documents(self, batch: Sequence[reader.LocatedLine]) -> None:
        """Store the documents that are not there, but for those from before an erasure of the user."""
        rows: list[Json] = []
        vectors: list[Json] = []
        async with self.database.user_transaction(self.user_id) as tx:
            lines = [(record.where, record.line) for record in batch if isinstance(record.line, schema.DocumentLine)]
            stored = await documents.documents(tx, [line.id for _, line in lines], expired=True)
            known_ids = {ids.document_id(tx.user_id, document.namespace, document.key) for document in stored}
            since = await erasure.last_erasure(tx)
            for where, line in lines:
                if since is not None and line.updated_at <= since:
                    self.report.ignored[base.ERASED] += 1
                elif line.id not in known_ids:
                    try:
                        row, own_vectors = self.builder.document(line)
                    except InvalidInput as error:
                        self.report.add_problem(ImportProblem(where, str(error)))
                        continue
                    known_ids.add(line.id)
                    rows.append(row)
                    vectors += own_vectors
            if rows:
                await messages.make_user(tx, batch[0].line.user)
                await archive.add_documents(tx, rows, vectors)
                self.report.restored["documents"] += len(rows)

    async def _store(
        self,
        fresh: Sequence[Entry[Any]],
        first: schema.ItemLine,
        find_new: FindNew,
        add: Callable[[Transaction, list[Any]], Any],
    ) -> int:
        """Add items that are new still when they are locked, and their chunks; return how many.

        Chunks have the file's vectors where these are of the active embedder, else new ones. No transaction is
        open while they are made.
        """

        async def store(hashed: Mapping[UUID, list[NewChunk]], dependencies: Dependencies | None) -> int:
            async with self.database.user_transaction(self.user_id) as tx:
                await self._lock(tx, first)
                new: Sequence[Entry[Any]] = await find_new(tx, fresh)
                if new:
                    await add(tx, [entry.row for entry in new])
                    await archive.add_lists(tx, first.table, {entry.row.id: entry.lists for entry in new})
                added = [chunk for entry in new for chunk in hashed.get(entry.row.id, ())]
                if added and dependencies is not None:
                    await chunks.add(tx, added, dependencies.model)
            return len(new)

        async def store_with(dependencies: Dependencies) -> int:
            maker = self.user_line.embedder if self.user_line else None
            fits = maker is not None and ids.model_id(maker.name, maker.dimensions) == model_id(dependencies.embedder)
            hashed = await to_thread(reader.hash_chunks, fresh, None if fits else dependencies)
            return await store(hashed, dependencies)

        has_chunks = any(entry.chunks for entry in fresh)
        count: int = await self.run(store_with) if has_chunks else await store({}, None)
        return count

    async def _lock(self, tx: Transaction, first: schema.ItemLine) -> None:
        """Lock the conversation of an item, or the user for facts; make them where their lines were not read."""
        await messages.make_user(tx, first.user)
        if isinstance(first, schema.FactLine):
            await chunks.lock_user(tx)
        elif not await messages.lock(tx, first.conversation_id):
            made = Conversation.model_construct(id=first.conversation_id, name=first.conversation, settings={})
            await messages.make_conversations(tx, [made], user_name=first.user, derivers=DERIVERS)
            await messages.lock(tx, first.conversation_id)
