"""An export read line by line: each with its place, those that cannot be read named, and the sum of all checked."""

from __future__ import annotations

import gzip
import io
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import IO, Any, cast

from memstore.errors import InvalidInput
from memstore.export.shapes import FORMAT, HEADER, Footer, Header, Line, read
from memstore.ingest.importers import files
from memstore.ingest.importers.files import BOM, GZIP, READ_ERRORS, ByteStream
from memstore.ingest.importers.lines import LONGEST_LINE, numbered_lines, parsed
from memstore.ingest.importers.records import Skipped, shown

BATCH = 500  # lines that are stored together
BATCH_BYTES = 8 * 1024 * 1024
VECTORS = 8  # times as long as a message is what is written of it with its vectors, at most


@dataclass(frozen=True, slots=True)
class Located:
    """A line, where it stands and how many bytes it has."""

    where: str
    size: int
    line: Line


def is_export(path: Path) -> bool:
    """Whether a file begins as an export does."""
    if not path.is_file():
        return False
    try:
        first, _, _ = files.head(path).removeprefix(BOM).partition(b"\n")
        given = parsed(first)
    except (InvalidInput, OSError):
        return False
    return given.get("kind") == HEADER and given.get("format") == FORMAT


@contextmanager
def opened(source: Path | IO[bytes], seen: Callable[[int], None]) -> Iterator[ByteStream]:
    """Open a file, or take a stream, unpacked where its bytes are gzip's."""
    if isinstance(source, Path):
        files.check_file(source)
        with files.opened(source, seen) as stream:
            yield cast(ByteStream, stream)
        return
    raw = source if isinstance(source, io.BufferedReader) else io.BufferedReader(cast(Any, source))
    if raw.peek(2)[:2] == GZIP:
        with gzip.GzipFile(fileobj=raw) as unpacked:
            yield cast(ByteStream, unpacked)
    else:
        yield cast(ByteStream, raw)


@dataclass(slots=True)
class _Summed:
    """A stream with the SHA-256 of all that was read of it before the present line."""

    stream: ByteStream
    digest: Any = field(default_factory=sha256)
    present: bytes = b""

    def read1(self, size: int, /) -> bytes:
        """Give nothing: an export is read by lines."""
        raise io.UnsupportedOperation

    def readline(self, size: int = -1, /) -> bytes:
        """Give the next line, or so much of it."""
        self.digest.update(self.present)
        self.present = self.stream.readline(size)
        return self.present

    def begin(self) -> None:
        """Begin anew after the present line: another export follows."""
        self.digest, self.present = sha256(), b""


def lines(stream: ByteStream, name: str, max_message_bytes: int) -> Iterator[Located | Skipped]:
    """Give what each line holds, and each that cannot be read with the reason; several exports may follow each other.

    `InvalidInput` where it is no export at all, or one of a version that is not known.
    """
    summed, inside, number = _Summed(stream), False, 0
    longest = LONGEST_LINE + VECTORS * max_message_bytes
    try:
        for number, line in numbered_lines(summed, longest):
            where = f"{name}, line {number}"
            try:
                found = _read(line, longest)
            except InvalidInput as error:
                if number == 1:
                    raise InvalidInput(f"{name} is no export that can be read: {error}") from None
                yield Skipped(where, str(error))
                continue
            if found is None:
                continue
            if isinstance(found, Footer):
                if found.sha256 != summed.digest.hexdigest():
                    yield Skipped(where, CHANGED)
                summed.begin()
                inside = False
            elif isinstance(found, Header):
                if inside:
                    yield Skipped(where, CUT_OFF)
                inside = True
            elif inside:
                yield Located(where, len(line or b""), found)
            elif number == 1:
                raise InvalidInput(f"{name} is no export: its first line is not the header")
            else:
                yield Skipped(where, "it stands after the last line of the export")
    except READ_ERRORS as error:
        yield Skipped(f"{name}, after line {number}", f"the file is damaged ({shown(str(error), 200)}); {AGAIN}")
        return
    if number == 0:
        raise InvalidInput(f"{name} is no export: it is empty")
    if inside:
        yield Skipped(f"{name}, after line {number}", CUT_OFF)


def of_user(found: Iterable[Located | Skipped], name: str, left_out: Counter[str]) -> Iterator[Located | Skipped]:
    """Give the lines of one user; those of others are counted."""
    for one in found:
        if isinstance(one, Located) and one.line.user != name:
            left_out[OTHERS] += 1
        else:
            yield one


OTHERS = "lines of other users"
AGAIN = "what stands before was taken in; import the whole export again, and the rest is added"
CUT_OFF = f"the export is cut off: its last line is not there; {AGAIN}"
CHANGED = "the export was changed after it was written: its SHA-256 is another one; what could be read was taken in"


def _read(line: bytes | None, longest: int) -> Line | Header | Footer | None:
    if line is None:
        raise InvalidInput(f"the line is longer than {longest:,} bytes; raise max_message_bytes to have it read")
    return read(line) if line.strip() else None


@dataclass(frozen=True, slots=True)
class Batch:
    """Lines of one kind, of one conversation or one user's facts, as they follow each other."""

    lines: list[Located]

    @property
    def first(self) -> Line:
        """The first of them."""
        return self.lines[0].line


def batches(found: Iterator[Located | Skipped], skip: Callable[[Skipped], None]) -> Iterator[Batch]:
    """Give the lines in batches; tell those that cannot be read."""
    held: list[Located] = []
    size = 0
    for one in found:
        if isinstance(one, Skipped):
            skip(one)
            continue
        full = len(held) == BATCH or size > BATCH_BYTES
        if held and (full or _place(one.line) != _place(held[0].line)):
            yield Batch(held)
            held, size = [], 0
        held.append(one)
        size += one.size
    if held:
        yield Batch(held)


def _place(line: Line) -> tuple[str, str, str | None]:
    return line.kind, line.user, getattr(line, "conversation", None)
