"""History in: a file read by its importer and stored in batches. What is good is kept, what is not is named."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from uuid import UUID

from memstore.errors import Conflict, Erased, InvalidInput
from memstore.ingest.add import Place, add_many, look_at
from memstore.ingest.importers import Found, Imported, LeftOut, Reading, Record, Skipped, Span, importer_for, size_of
from memstore.ingest.importers.records import MOST_NAMED
from memstore.providers import TokenCounter
from memstore.settings import Settings
from memstore.store import messages as store
from memstore.store.database import Database
from memstore.waiting import in_thread

ERASED = "erased before"  # what is left out so
BATCH = 500  # messages to a transaction
HELD = 2000  # messages that wait for others of their conversation, where a file mixes them
HELD_CHARACTERS = 8 * 1024 * 1024


@dataclass(slots=True)
class _Batch:
    """Messages of one conversation, in their order."""

    place: Place
    records: list[Record]


@dataclass(slots=True)
class _Import:
    """An import while it runs: where to, and what it did so far."""

    database: Database
    counter: TokenCounter
    settings: Settings
    user: str | None
    dry_run: bool
    done: Imported
    read: int = 0  # bytes, as they lie on disk
    spans: dict[int, Span | None] = field(default_factory=dict)
    previewed: tuple[Place | None, set[UUID]] = (None, set())

    def seen(self, size: int) -> None:
        """Count bytes that were read."""
        self.read += size


async def import_file(
    database: Database,
    counter: TokenCounter,
    path: Path,
    settings: Settings,
    *,
    reading: Reading,
    user: str | None = None,
    format: str = "auto",
    dry_run: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> Imported:
    """Take the messages of a file in; `user` owns those for which the file gives none.

    A second import adds nothing: messages are known by their external ids. A known one with other content is skipped
    and named. With `dry_run` nothing is stored, and the same is told. `progress` is called with the bytes read so far
    and those that there are.
    """
    importer = importer_for(path, format)
    running = _Import(database, counter, settings, user, dry_run, Imported(importer.name))
    size = size_of(path)
    batches = _batches(importer.read(path, replace(reading, seen=running.seen)), running)
    while (batch := await in_thread(next, batches, None)) is not None:
        await _take(batch, running)
        if progress is not None:
            progress(min(running.read, size), size)
    return running.done


def _batches(found: Iterator[Found], running: _Import) -> Iterator[_Batch]:
    """Give the messages of each conversation together, as far as they stand near each other; tell what is none."""
    held: dict[Place, list[Record]] = {}
    count = characters = 0
    for record in _records(found, running.done):
        try:
            place = _place(record, running.user)
        except InvalidInput as error:
            running.done.skip(Skipped(record.where, str(error)))
            continue
        waiting = held.setdefault(place, [])
        waiting.append(record)
        count, characters = count + 1, characters + _size(record)
        if len(waiting) == BATCH:
            yield _Batch(place, held.pop(place))
            count -= BATCH
        if count >= HELD or characters >= HELD_CHARACTERS:
            yield from (_Batch(*one) for one in held.items())
            held, count, characters = {}, 0, 0
    yield from (_Batch(*one) for one in held.items())


def _records(found: Iterator[Found], done: Imported) -> Iterator[Record]:
    for one in found:
        if isinstance(one, LeftOut):
            done.left_out[one.what] += one.count
        elif isinstance(one, Skipped):
            done.skip(one)
        else:
            yield one


def _size(record: Record) -> int:
    """Give about how many characters a message has."""
    rest = [record.message.get(key) for key in ("content", "tool_calls", "metadata")]
    return sum(len(one) if isinstance(one, str) else len(str(one)) for one in rest if one)


def _place(record: Record, user: str | None) -> Place:
    owner = record.user or user
    if owner is None:
        raise InvalidInput("it names no user; say whose it is with --user")
    return Place(owner, record.conversation, record.title, record.channel)


async def _take(batch: _Batch, running: _Import) -> None:
    """Store a batch; where one of its messages is refused, store its halves, until that one is found and named."""
    try:
        await (_look if running.dry_run else _store)(batch, running)
    except Erased as error:
        erased = {number - 1 for number in error.numbers}
        running.done.left_out[ERASED] += len(erased)
        rest = [record for number, record in enumerate(batch.records) if number not in erased]
        if rest:
            await _take(_Batch(batch.place, rest), running)
    except (InvalidInput, Conflict) as error:
        if len(batch.records) == 1:
            running.done.skip(Skipped(batch.records[0].where, str(error)))
            return
        middle = len(batch.records) // 2
        for half in (batch.records[:middle], batch.records[middle:]):
            await _take(_Batch(batch.place, half), running)


async def _store(batch: _Batch, running: _Import) -> None:
    given = [record.message for record in batch.records]
    async with running.database.scope(batch.place.user_id) as scope:
        info = await store.conversation(scope, batch.place.id)
    last = info.last_seq if info else 0
    limit = running.settings.max_message_bytes
    stored = await add_many(running.database, running.counter, batch.place, given, max_bytes=limit)
    _count(batch, len({message.id for message in stored if message.seq > last}), running)


async def _look(batch: _Batch, running: _Import) -> None:
    """Count what storing a batch would do; ids that come twice are found where their conversation stands together."""
    given = [record.message for record in batch.records]
    limit = running.settings.max_message_bytes
    found = await look_at(running.database, running.counter, batch.place, given, max_bytes=limit)
    if running.previewed[0] != batch.place:
        running.previewed = (batch.place, set())
    fresh = {message.id for message in found if not message.seq} - running.previewed[1]
    running.previewed[1].update(fresh)
    _count(batch, len(fresh), running)


def _count(batch: _Batch, new: int, running: _Import) -> None:
    done, place = running.done, batch.place
    done.new += new
    done.known += len(batch.records) - new
    # Half an id is kept: a file may hold a million conversations.
    key = place.id.int >> 64
    if key not in running.spans:
        span = Span(place.user_name, place.name, place.title) if len(done.spans) < MOST_NAMED else None
        done.spans += [span] if span else []
        running.spans[key] = span
        done.conversations += 1
    if span := running.spans[key]:
        for record in batch.records:
            span.add(record.message.get("occurred_at"))
