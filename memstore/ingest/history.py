"""History in: a file read by its importer and stored in batches. What is good is kept, what is not is named."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from pathlib import Path
from uuid import UUID

from memstore._compat import run_both, to_thread
from memstore.errors import InvalidInput
from memstore.ingest.add import Place, SortedOut, add_new, conflict, draft, preview
from memstore.ingest.check import TRUST, UNTRUSTED
from memstore.ingest.importers import Found, Imported, LeftOut, Reading, Record, Skipped, Span, importer_for, size_of
from memstore.ingest.importers.records import ERASED, MOST_NAMED
from memstore.ingest.redaction import KEEP_ALL, Redactor, redactor_for
from memstore.models import Message
from memstore.providers import TokenCounter
from memstore.settings import Settings
from memstore.store.database import Database

BATCH = 500  # messages to a transaction
HELD = 2000  # messages that wait for others of their user, where a file mixes them
HELD_CHARACTERS = 8 * 1024 * 1024
PLACES = 1000  # conversations whose ids are not made again for each message


@dataclass(slots=True)
class _Read:
    """A message as it was read: where it stands in the file, where it belongs, and what of it is checked."""

    record: Record
    place: Place
    draft: Message
    masked: bool = False


@dataclass(slots=True)
class _Batch:
    """Messages of one user, those of each conversation in their order; and what was read until here beside them."""

    said: list[_Read]
    skipped: list[Skipped]
    left_out: Counter[str]
    read: int  # bytes, as they lie on disk


@dataclass(slots=True)
class _Reader:
    """Reads a file into batches, in a thread of its own: it shares nothing with what stores them."""

    user: str | None
    max_bytes: int
    redactor: Redactor = KEEP_ALL
    untrusted: bool = False
    read: int = 0
    skipped: list[Skipped] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)
    places: Callable[..., Place] = field(default_factory=lambda: lru_cache(PLACES)(Place))

    def seen(self, size: int) -> None:
        """Count bytes that were read."""
        self.read += size

    def batches(self, found: Iterator[Found]) -> Iterator[_Batch]:
        """Give the messages of each user together, as far as they stand near each other; at the end what is left."""
        held: dict[UUID, list[_Read]] = {}
        count = characters = 0
        for record in self._records(found):
            if (one := self._checked(record)) is None:
                continue
            waiting = held.setdefault(one.draft.user_id, [])
            waiting.append(one)
            count, characters = count + 1, characters + _size(record)
            if len(waiting) == BATCH:
                yield self._batch(held.pop(one.draft.user_id))
                count -= BATCH
            if count >= HELD or characters >= HELD_CHARACTERS:
                yield from map(self._batch, held.values())
                held, count, characters = {}, 0, 0
        yield from map(self._batch, held.values())
        yield self._batch([])

    def _batch(self, said: list[_Read]) -> _Batch:
        batch = _Batch(said, self.skipped, self.left_out, self.read)
        self.skipped, self.left_out = [], Counter()
        return batch

    def _records(self, found: Iterator[Found]) -> Iterator[Record]:
        for one in found:
            if isinstance(one, Record):
                yield one
            elif isinstance(one, LeftOut):
                self.left_out[one.what] += one.count
            else:
                self.skipped.append(one)

    def _checked(self, record: Record) -> _Read | None:
        """Give a message, checked; or note why it is none."""
        owner = record.user or self.user
        try:
            if owner is None:
                raise InvalidInput("it names no user; say whose it is with --user")
            redactor = self.redactor
            redactor.reject_secret_names(user=owner, conversation=record.conversation)
            place = self.places(
                owner, record.conversation, redactor.redact(record.title), redactor.redact(record.channel)
            )
            made = draft(record.message, "message 1", place, self.max_bytes)
            if self.untrusted:
                vars(made)["meta"] = made.meta | {TRUST: UNTRUSTED}
            return _Read(record, place, made, redactor.redact_message(made))
        except InvalidInput as error:
            self.skipped.append(Skipped(record.where, str(error)))
            return None


def _size(record: Record) -> int:
    """Give about how many characters a message has."""
    said = record.message
    content, rest = said.get("content"), [said.get(key) for key in ("tool_calls", "metadata")]
    size = len(content) if isinstance(content, str) else len(str(content))
    return size + sum(len(str(one)) for one in rest if one)


@dataclass(slots=True)
class _Import:
    """An import while it runs: where to, and what it did so far."""

    database: Database
    counter: TokenCounter
    dry_run: bool
    done: Imported
    spans: dict[int, Span | None] = field(default_factory=dict)
    previewed: dict[UUID, set[UUID]] = field(default_factory=dict)


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
    untrusted: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> Imported:
    """Take the messages of a file in; `user` owns those for which the file gives none.

    A second import adds nothing: messages are known by their external ids. A known one with other content is skipped
    and named. With `dry_run` nothing is stored, and the same is told. No fact rests on `untrusted` messages alone.
    `progress` is called with the bytes read so far and those that there are. While a batch is stored, the next one is
    read.
    """
    importer = importer_for(path, format)
    running = _Import(database, counter, dry_run, Imported(importer.name))
    reader = _Reader(user, settings.max_message_bytes, await to_thread(redactor_for, settings), untrusted)
    batches = reader.batches(importer.read(path, replace(reading, seen=reader.seen)))
    size = size_of(path)
    following = partial(to_thread, next, batches, None)
    coming = await following()
    while coming is not None:
        coming, batch = await run_both(following, partial(_take, coming, running))
        if progress is not None:
            progress(min(batch.read, size), size)
    return running.done


async def _take(batch: _Batch, running: _Import) -> _Batch:
    """Store a batch, or preview what storing it would do; tell of both."""
    done, said = running.done, batch.said
    done.left_out.update(batch.left_out)
    for skipped in batch.skipped:
        done.skip(skipped)
    if said:
        fresh, conflicts, erased = await (_preview if running.dry_run else _store)(said, running)
        for number, twin in conflicts.items():
            done.skip(Skipped(said[number].record.where, f"{conflict(twin)} What is stored stays."))
        kept = [one for number, one in enumerate(said) if number not in conflicts and one.draft.id not in erased]
        if gone := len(said) - len(conflicts) - len(kept):
            done.left_out[ERASED] += gone
        _count(kept, len(fresh), running)
    return batch


async def _store(said: Sequence[_Read], running: _Import) -> SortedOut:
    places = {one.place.id: one.place for one in reversed(said)}
    return await add_new(running.database, running.counter, places, [one.draft for one in said])


async def _preview(said: Sequence[_Read], running: _Import) -> SortedOut:
    """Tell what storing would do; ids that come twice are found where their conversation stands together."""
    fresh, conflicts, erased = await preview(running.database, [one.draft for one in said])
    running.previewed = {one.place.id: running.previewed.get(one.place.id, set()) for one in said}
    unseen = [one for one in fresh if one.id not in running.previewed[one.conversation_id]]
    for one in unseen:
        running.previewed[one.conversation_id].add(one.id)
    return SortedOut(unseen, conflicts, erased)


def _count(said: Sequence[_Read], new: int, running: _Import) -> None:
    done = running.done
    done.new += new
    done.known += len(said) - new
    done.masked += sum(one.masked for one in said)
    for one in said:
        # Half an id is kept: a file may hold a million conversations.
        key = one.place.id.int >> 64
        if key not in running.spans:
            place = one.place
            span = Span(place.user_name, place.name, place.title) if len(done.spans) < MOST_NAMED else None
            done.spans += [span] if span else []
            running.spans[key] = span
            done.conversations += 1
        if span := running.spans[key]:
            span.add(one.record.message.get("occurred_at"))
