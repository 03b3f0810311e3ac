"""Read an export line by line, and build rows of its lines. Lines that cannot be used are reported.

The digest of all lines is checked.
"""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from hashlib import sha256
from pathlib import Path
from typing import IO, Any, Generic, TypeVar, cast
from uuid import UUID

import numpy as np

from memstore.context.request import check_settings
from memstore.derive.chunks import chunk_of
from memstore.derive.dependencies import Dependencies
from memstore.errors import InvalidInput
from memstore.export import schema
from memstore.ingest.add import MAX_BATCH_BYTES, MAX_BATCH_ITEMS, UNCOUNTED_TOKENS, count_tokens
from memstore.ingest.importers import ImportProblem, ImportReport, files
from memstore.ingest.redaction import Redactor
from memstore.ingest.validation import validate_message
from memstore.models import Conversation, FactColumns, Json, Message, Summary
from memstore.providers import TokenCounter, Vectors
from memstore.store.chunks import text_of_chunk
from memstore.store.messages import CLEARED_SETTING
from memstore.store.rows import ChunkRow, Lists, NewChunk, Row
from memstore.store.tokenize import hash_terms

AGAIN = "the lines before were imported; import the whole export again, and the rest is added"
NOT_MASKED = (
    "it seems to hold a secret, which this store masks before storing, and rows derived from it are in the file: "
    "memstore export --no-derived writes messages alone, which are masked when they are imported"
)

Item = TypeVar("Item", Message, Summary, FactColumns)


@dataclass(frozen=True, slots=True)
class LocatedLine:
    """A line, where it stands and how many bytes it has."""

    where: str
    size: int
    line: schema.ExportLine


def is_export(path: Path) -> bool:
    try:
        if not path.is_file():
            return False
        first, _, _ = files.read_head(path).removeprefix(files.BOM).partition(b"\n")
        header = files.parse_object(first)
    except (InvalidInput, OSError):
        return False
    return header.get("kind") == "export" and header.get("format") == schema.FORMAT


@contextmanager
def open_export(source: Path | IO[bytes]) -> Iterator[io.BufferedIOBase]:
    if isinstance(source, Path):
        files.check_file(source)
        with files.open_file(source) as stream:
            yield stream
        return
    yield files.unpack(source if isinstance(source, io.BufferedReader) else io.BufferedReader(cast(Any, source)))


def read_lines(stream: io.BufferedIOBase, name: str, max_message_bytes: int) -> Iterator[LocatedLine | ImportProblem]:
    """Yield the lines of an export; report those that cannot be read.

    Raises `InvalidInput` where it is no export at all, or one of a version that is not known.
    """
    # The digest is of all lines before the present one.
    digest, present, number = sha256(), b"", 0

    def readline(size: int) -> bytes:
        nonlocal present
        digest.update(present)
        present = stream.readline(size)
        return present

    # An exported message with its vectors is at most eight times as long.
    longest = files.MAX_LINE_BYTES + 8 * max_message_bytes
    try:
        for number, data in files.numbered_lines(readline, longest):
            where = f"{name}, line {number}"
            if data is not None and not data.strip():
                continue
            try:
                if data is None:
                    raise InvalidInput(f"the line is longer than {longest:,} bytes; raise max_message_bytes")
                line = schema.parse_line(data)
                if (number == 1) != isinstance(line, schema.Header):
                    raise InvalidInput("the header is the first line, and no other")
            except InvalidInput as error:
                if number == 1:
                    raise InvalidInput(f"{name} is no export that can be read: {error}") from None
                yield ImportProblem(where, str(error))
                continue
            if isinstance(line, schema.Footer):
                if line.sha256 != digest.hexdigest():
                    changed = "the export was changed after it was written: its SHA-256 differs"
                    yield ImportProblem(where, f"{changed}; all readable lines were imported")
                if stream.read(1):
                    reason = "lines after the last line of the export were not read; import them by themselves"
                    yield ImportProblem(where, reason)
                return
            if not isinstance(line, schema.Header):
                yield LocatedLine(where, len(data or b""), line)
    except files.READ_ERRORS as error:
        reason = f"the file is damaged ({files.printable(str(error), 200)}); {AGAIN}"
        yield ImportProblem(f"{name}, after line {number}", reason)
        return
    if number == 0:
        raise InvalidInput(f"{name} is no export: it is empty")
    reason = f"the export is cut off: its last line is not there; {AGAIN}"
    yield ImportProblem(f"{name}, after line {number}", reason)


def batch_lines(lines: Iterable[LocatedLine | ImportProblem], report: ImportReport) -> Iterator[list[LocatedLine]]:
    """Yield lines of one kind and of one conversation, or of one user, together; report those that cannot be read."""
    batch: list[LocatedLine] = []
    size = 0
    for record in lines:
        if isinstance(record, ImportProblem):
            report.add_problem(record)
            continue
        full = len(batch) == MAX_BATCH_ITEMS or size > MAX_BATCH_BYTES
        if batch and (full or _group(record.line) != _group(batch[0].line)):
            yield batch
            batch, size = [], 0
        batch.append(record)
        size += record.size
    if batch:
        yield batch


def _group(line: schema.ExportLine) -> tuple[str, str, str | None]:
    return line.kind, line.user, getattr(line, "conversation", None)


@dataclass(frozen=True, slots=True)
class Entry(Generic[Item]):
    where: str
    line: schema.ItemLine
    row: Item
    lists: Lists
    chunks: list[ChunkRow]


@dataclass(frozen=True, slots=True)
class EntryBuilder:
    """Builds what is stored of lines: messages that are too long, and secrets that cannot be masked, are refused."""

    max_message_bytes: int
    redactor: Redactor
    counter: TokenCounter
    report: ImportReport

    def entries(self, batch: Sequence[LocatedLine], user: schema.UserLine | None) -> list[Entry[Any]]:
        dimensions = user.embedder.dimensions if user and user.embedder else None
        entries: list[Entry[Any]] = []
        for record in batch:
            line: Any = record.line
            try:
                if isinstance(line, schema.MessageLine):
                    validate_message(line, max_bytes=self.max_message_bytes)
                row = line.row()
                self._redact(line, row)
                lists = line.lists if isinstance(line, schema.FactLine) else self.redactor.redact_json(line.lists)
                entries.append(Entry(record.where, line, row, lists, _chunks(row, line, dimensions)))
            except InvalidInput as error:
                self.report.add_problem(ImportProblem(record.where, str(error)))
        return entries

    def _redact(self, line: schema.ItemLine, row: Row) -> None:
        """Mask the secrets of a message of which nothing was derived; raise `InvalidInput` for those of others."""
        if isinstance(row, Message):
            if self.redactor.redact_message(row):
                # The chunks are of its words.
                if line.chunks:
                    raise InvalidInput(NOT_MASKED)
                vars(row).update(tokens=UNCOUNTED_TOKENS)
                count_tokens([row], self.counter)
            return
        content: list[Any] = [value for value in vars(row).values() if isinstance(value, str)]
        if isinstance(line, schema.FactLine):
            content.append({line.attribute or "": line.value})
            content.append(line.lists)
        if self._has_secret(content):
            raise InvalidInput(NOT_MASKED)

    def _has_secret(self, content: Sequence[Any]) -> bool:
        counts: Counter[str] = Counter()
        self.redactor.redact_json(content, counts)
        return bool(counts)

    def conversation(self, where: str, line: schema.ConversationLine) -> tuple[Conversation, Lists]:
        """Return a conversation, and the lists of its line."""
        row, redactor = line.row(), self.redactor
        row.settings = self.settings(where, row.settings)
        row.title, row.channel, row.scope = map(redactor.redact, (row.title, row.channel, row.scope))
        return row, redactor.redact_json(line.lists)

    def settings(self, where: str, settings: Json) -> Json:
        """Return settings of a user or a conversation; report invalid ones, and return none."""
        # A strategy or a rule may be installed elsewhere alone.
        special = (CLEARED_SETTING, "strategy", "visibility")
        try:
            check_settings({name: value for name, value in settings.items() if name not in special})
        except InvalidInput as error:
            self.report.add_problem(ImportProblem(where, f"its settings are left out: {error}"))
            return {}
        return self.redactor.redact_json(settings)

    def document(self, line: schema.DocumentLine) -> tuple[Json, list[Json]]:
        """Return a document and its vectors, but for those of texts that hold a secret."""
        redactor = self.redactor
        for label in (*line.namespace, line.key):
            redactor.reject_secret_names(name_of_a_document=label)
        value = redactor.redact_json(line.value)
        vectors = []
        for vector_line in line.vectors:
            is_of_value = vector_line.text is None
            if (is_of_value and value != line.value) or self._has_secret([vector_line.path, vector_line.text]):
                continue
            vector = schema.decode_vector(vector_line.vector, vector_line.path)
            if not len(vector) or not np.isfinite(vector).all():
                raise InvalidInput(f"the vector of {vector_line.path} has no components, or some that are not finite")
            vectors.append(vector_line.model_dump() | {"id": line.id, "embedding": vector})
        ttl = None if line.ttl is None else timedelta(seconds=line.ttl)
        row = line.model_dump(exclude={"kind", "user", "vectors"}) | {"value": value, "ttl": ttl}
        return row, vectors


def _chunks(row: Row, line: schema.ItemLine, dimensions: int | None) -> list[ChunkRow]:
    """Return an item's chunks; raise `InvalidInput` for one that lies outside of its text, or has a wrong vector."""
    length = len(row.text or "")
    chunks = []
    for index, chunk_line in enumerate(line.chunks):
        if not chunk_line.start <= chunk_line.stop <= length:
            raise InvalidInput(
                f"its chunk {index} is {chunk_line.start} to {chunk_line.stop}, and its text has {length} characters"
            )
        vector = None
        if chunk_line.vector is not None and dimensions is not None:
            vector = schema.decode_vector(chunk_line.vector, f"its chunk {index}")
            # A longer one would be found for whatever is asked; of what is not finite nothing would come out right.
            if len(vector) != dimensions or not abs(np.linalg.norm(vector) - 1) < 1e-3:
                raise InvalidInput(f"the vector of its chunk {index} is not {dimensions} components of length 1")
        chunk = chunk_of(row, index, (chunk_line.start, chunk_line.stop), chunk_line.conversation_id)
        chunks.append(ChunkRow(chunk, chunk_line.recorded_at, vector))
    return chunks


def hash_chunks(entries: Sequence[Entry[Any]], dependencies: Dependencies | None) -> dict[UUID, list[NewChunk]]:
    """Return the chunks of items to be stored, with their own vectors, or with new ones that `dependencies` make."""
    chunks = [(entry.row, kept) for entry in entries for kept in entry.chunks]
    texts = [
        text_of_chunk(kept.chunk.tier, kept.chunk.speaker, (row.text or "")[kept.chunk.start : kept.chunk.stop])
        for row, kept in chunks
    ]
    vectors: Sequence[Vectors | None] = [kept.vector for _, kept in chunks]
    if dependencies is not None:
        vectors = dependencies.embed(texts)
    hashed: dict[UUID, list[NewChunk]] = {}
    for (row, kept), text, vector in zip(chunks, texts, vectors, strict=True):
        tags = row.tags if isinstance(row, Message) else ()
        chunk = NewChunk(kept.chunk, *hash_terms(text, row.user_id), vector, tags, kept.recorded_at)
        hashed.setdefault(row.id, []).append(chunk)
    return hashed


def describe_difference(stored: Message, message: Message) -> str | None:
    compared = sorted(Message.model_fields.keys() - {"recorded_at", "tokens", "counter"})
    names = [name for name in compared if getattr(stored, name) != getattr(message, name)]
    if not names:
        return None
    return f"the message is known with another {', another '.join(names)}; the stored one stays as it is"
