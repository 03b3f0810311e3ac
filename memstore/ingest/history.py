"""History in: a file read by its importer and stored in batches. What is good is kept, what is not is named."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from memstore.errors import Conflict, InvalidInput
from memstore.ingest.add import Place, add_many
from memstore.ingest.importers import Imported, Record, Skipped, importer_for
from memstore.providers import TokenCounter
from memstore.settings import Settings
from memstore.store import messages as store
from memstore.store.database import Database
from memstore.waiting import in_thread

BATCH = 500  # messages to a transaction


@dataclass(slots=True)
class _Batch:
    """Neighbours of one conversation."""

    place: Place
    records: list[Record]


async def import_file(
    database: Database,
    counter: TokenCounter,
    path: Path,
    settings: Settings,
    *,
    user: str | None = None,
    format: str = "auto",
    progress: Callable[[int], None] | None = None,
) -> Imported:
    """Take the messages of a file in; `user` owns those for which the file gives none.

    A second import adds nothing: messages are known by their external ids. A known one with other content is skipped
    and named. `progress` is called with the number of records seen so far.
    """
    done = Imported()
    batches = _batches(importer_for(path, format).read(path), user, done)
    while (batch := await in_thread(next, batches, None)) is not None:
        await _take(database, counter, batch, settings, done)
        if progress is not None:
            progress(done.read)
    return done


def _batches(records: Iterator[Record | Skipped], user: str | None, done: Imported) -> Iterator[_Batch]:
    batch: _Batch | None = None
    for record in records:
        if isinstance(record, Skipped):
            done.skipped.append(record)
            continue
        try:
            place = _place(record, user)
        except InvalidInput as error:
            done.skipped.append(Skipped(record.where, str(error)))
            continue
        if batch is not None and (batch.place != place or len(batch.records) == BATCH):
            yield batch
            batch = None
        batch = batch or _Batch(place, [])
        batch.records.append(record)
    if batch is not None:
        yield batch


def _place(record: Record, user: str | None) -> Place:
    owner = record.user or user
    if owner is None:
        raise InvalidInput("it names no user; say whose it is with --user")
    return Place(owner, record.conversation, record.title, record.channel)


async def _take(database: Database, counter: TokenCounter, batch: _Batch, settings: Settings, done: Imported) -> None:
    """Store a batch; where one of its messages is refused, store them one by one and name those that are."""
    try:
        await _store(database, counter, batch, settings, done)
    except (InvalidInput, Conflict) as error:
        if len(batch.records) == 1:
            done.skipped.append(Skipped(batch.records[0].where, str(error)))
            return
        for record in batch.records:
            await _take(database, counter, _Batch(batch.place, [record]), settings, done)


async def _store(database: Database, counter: TokenCounter, batch: _Batch, settings: Settings, done: Imported) -> None:
    given = [record.message for record in batch.records]
    async with database.scope(batch.place.user_id) as scope:
        info = await store.conversation(scope, batch.place.id)
    last = info.last_seq if info else 0
    limit = settings.max_message_bytes
    stored = await add_many(database, counter, batch.place, given, max_bytes=limit)
    new = len({message.id for message in stored if message.seq > last})
    done.new += new
    done.known += len(stored) - new
    done.conversations.add((batch.place.user_name, batch.place.name))
