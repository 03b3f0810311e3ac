"""Import files: each is read by its importer and stored in batches. Failures are reported."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple
from uuid import UUID

from memstore._compat import run_both, to_thread
from memstore.errors import InvalidInput
from memstore.ingest.add import (
    MAX_BATCH_BYTES,
    MAX_BATCH_ITEMS,
    ConversationRef,
    build_row,
    describe_conflict,
    store_new,
)
from memstore.ingest.importers import base, importer_for
from memstore.ingest.importers.files import ImportProblem, find_damage, printable
from memstore.ingest.redaction import Redactor, redactor_for
from memstore.models import TRUST, UNTRUSTED, Message
from memstore.providers import TokenCounter
from memstore.settings import Settings
from memstore.store.database import Database

NO_USER = "it names no user; give --user"


@dataclass(slots=True)
class _Item:
    record: base.Record
    conversation: ConversationRef
    row: Message
    masked: bool


class _Batch(NamedTuple):
    """Messages of each user, those of each conversation in order; and the other items that were read up to here."""

    users: list[list[_Item]]
    notices: list[ImportProblem | base.IgnoredContent]


def _batches(
    entries: Iterator[base.ImportItem], prepare: Callable[[base.Record], _Item | ImportProblem]
) -> Iterator[_Batch]:
    """Yield the messages of a file in batches. Read in a thread of its own: it shares nothing with what stores them."""
    users: dict[UUID, list[_Item]] = {}
    notices: list[ImportProblem | base.IgnoredContent] = []
    count = characters = 0
    for entry in entries:
        item = prepare(entry) if isinstance(entry, base.Record) else entry
        if not isinstance(item, _Item):
            notices.append(item)
        else:
            users.setdefault(item.row.user_id, []).append(item)
            characters += sum(map(len, map(str, item.record.message.values())))
        count += 1
        if count >= MAX_BATCH_ITEMS or characters >= MAX_BATCH_BYTES:
            yield _Batch(list(users.values()), notices)
            users, notices, count, characters = {}, [], 0, 0
    yield _Batch(list(users.values()), notices)


def _prepare(
    record: base.Record, *, user: str | None, max_bytes: int, redactor: Redactor, untrusted: bool
) -> _Item | ImportProblem:
    """Return a message as the row it becomes, or why it becomes none; `user` has those of which the file names none."""
    user = record.user or user
    try:
        if user is None:
            return ImportProblem(record.where, NO_USER)
        redactor.reject_secret_names(user=user, conversation=record.conversation)
        title, channel, scope = map(redactor.redact, (record.title, record.channel, record.scope))
        conversation = ConversationRef(user, record.conversation, title, channel, scope)
        row = build_row(record.message, conversation, max_bytes)
        if untrusted:
            vars(row)["meta"] = row.meta | {TRUST: UNTRUSTED}
        return _Item(record, conversation, row, masked=redactor.redact_message(row))
    except InvalidInput as error:
        return ImportProblem(record.where, str(error))


async def import_file(
    database: Database,
    counter: TokenCounter,
    path: Path,
    settings: Settings,
    *,
    options: base.ImportOptions,
    user: str | None = None,
    format: str = "auto",
    untrusted: bool = False,
    progress: Callable[[int], None] = lambda _: None,
) -> base.ImportReport:
    """Store the messages of a file; those without a user in the file are given to `user`.

    A second import adds nothing: messages are known by their external ids. A known one with other content is skipped.
    No fact rests on `untrusted` messages alone. `progress` is called with the messages so far. While a batch is stored,
    the next is read.
    """
    importer = importer_for(path, format)
    report = base.ImportReport(importer.name)
    redactor, max_bytes = await to_thread(redactor_for, settings), settings.max_message_bytes
    prepare = partial(_prepare, user=user, max_bytes=max_bytes, redactor=redactor, untrusted=untrusted)
    batches = _batches(importer(path, options).read(), prepare)
    done = 0
    next_batch = partial(to_thread, next, batches, None)
    batch = await next_batch()
    while batch is not None:
        reasons = [notice.reason for notice in batch.notices if isinstance(notice, ImportProblem)]
        if NO_USER in reasons and not (done or batch.users):
            raise base.OptionMissing(f"the messages of {printable(path.name)} name no user; give --user")
        following, _ = await run_both(next_batch, partial(_store, database, counter, batch, report))
        done += sum(map(len, batch.users))
        progress(done)
        batch = following
    if not done and not report.skipped:
        damage = find_damage(path)
        reason = f"it {damage}; get it whole" if damage else f"it holds no messages of the format {importer.name}"
        report.add_problem(ImportProblem(printable(path.name), reason))
    return report


async def _store(database: Database, counter: TokenCounter, batch: _Batch, report: base.ImportReport) -> None:
    for notice in batch.notices:
        if isinstance(notice, ImportProblem):
            report.add_problem(notice)
        else:
            report.ignored[notice.what] += notice.count
    for items in batch.users:
        conversations = {item.conversation.id: item.conversation for item in reversed(items)}
        result = await store_new(database, counter, conversations, [item.row for item in items], imported=True)
        for number, message in result.conflicts.items():
            reason = f"{describe_conflict(message)} What is stored stays."
            report.add_problem(ImportProblem(items[number].record.where, reason))
        unchanged = [item for number, item in enumerate(items) if number not in result.conflicts]
        taken = [item for item in unchanged if item.row.id not in result.erased]
        if erased := len(unchanged) - len(taken):
            report.ignored[base.ERASED] += erased
        report.new += len(result.new)
        report.known += len(taken) - len(result.new)
        report.masked += sum(item.masked for item in taken)
