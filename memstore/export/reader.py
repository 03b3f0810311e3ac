"""Read an export line by line: lines that cannot be read are reported, and the digest of all of them is checked."""

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
from memstore.export.schema import FORMAT, HEADER, ExportLine, Footer, Header, parse_line
from memstore.ingest.importers import Skipped
from memstore.ingest.importers.base import printable
from memstore.ingest.importers.files import BOM, GZIP, READ_ERRORS, check_file, open_file, read_head
from memstore.ingest.importers.json_stream import LONGEST_LINE, numbered_lines, parse_object

BATCH = 500  # lines that are stored together
BATCH_BYTES = 8 * 1024 * 1024
VECTORS = 8  # times as long as a message is what is written of it with its vectors, at most
OTHERS = "lines of other users"
AGAIN = "what stands before was taken in; import the whole export again, and the rest is added"
CUT_OFF = f"the export is cut off: its last line is not there; {AGAIN}"
CHANGED = "the export was changed after it was written: its SHA-256 is another one; what could be read was taken in"


@dataclass(frozen=True, slots=True)
class LocatedLine:
    """A line, where it stands and how many bytes it has."""

    where: str
    size: int
    line: ExportLine


def is_export(path: Path) -> bool:
    """Return whether a file begins as an export does."""
    if not path.is_file():
        return False
    try:
        first, _, _ = read_head(path).removeprefix(BOM).partition(b"\n")
        header = parse_object(first)
    except (InvalidInput, OSError):
        return False
    return header.get("kind") == HEADER and header.get("format") == FORMAT


@contextmanager
def open_export(source: Path | IO[bytes], on_read: Callable[[int], None]) -> Iterator[io.BufferedIOBase]:
    """Open a file, or take a stream, unpacked where its bytes are gzip's."""
    if isinstance(source, Path):
        check_file(source)
        with open_file(source, on_read) as stream:
            yield stream
        return
    raw = source if isinstance(source, io.BufferedReader) else io.BufferedReader(cast(Any, source))
    if raw.peek(2)[:2] == GZIP:
        with gzip.GzipFile(fileobj=raw) as unpacked:
            yield unpacked
    else:
        yield raw


@dataclass(slots=True)
class _DigestingStream:
    """A stream with the SHA-256 of all lines that were read before the present one."""

    stream: io.BufferedIOBase
    digest: Any = field(default_factory=sha256)
    present: bytes = b""

    def readline(self, size: int = -1, /) -> bytes:
        self.digest.update(self.present)
        self.present = self.stream.readline(size)
        return self.present

    def restart(self) -> None:
        """Begin anew after the present line: another export follows."""
        self.digest, self.present = sha256(), b""


def read_lines(stream: io.BufferedIOBase, name: str, max_message_bytes: int) -> Iterator[LocatedLine | Skipped]:
    """Yield the lines of an export, or of several that follow each other; report those that cannot be read.

    Raises `InvalidInput` where it is no export at all, or one of a version that is not known.
    """
    digesting, inside, number = _DigestingStream(stream), False, 0
    longest = LONGEST_LINE + VECTORS * max_message_bytes
    try:
        for number, data in numbered_lines(digesting.readline, longest):
            where = f"{name}, line {number}"
            try:
                if data is None:
                    reason = f"the line is longer than {longest:,} bytes; raise max_message_bytes to have it read"
                    raise InvalidInput(reason)
                if not data.strip():
                    continue
                line = parse_line(data)
            except InvalidInput as error:
                if number == 1:
                    raise InvalidInput(f"{name} is no export that can be read: {error}") from None
                yield Skipped(where, str(error))
                continue
            if isinstance(line, Footer):
                if line.sha256 != digesting.digest.hexdigest():
                    yield Skipped(where, CHANGED)
                digesting.restart()
                inside = False
            elif isinstance(line, Header):
                if inside:
                    yield Skipped(where, CUT_OFF)
                inside = True
            elif inside:
                yield LocatedLine(where, len(data), line)
            elif number == 1:
                raise InvalidInput(f"{name} is no export: its first line is not the header")
            else:
                yield Skipped(where, "it stands after the last line of the export")
    except READ_ERRORS as error:
        reason = f"the file is damaged ({printable(str(error), 200)}); {AGAIN}"
        yield Skipped(f"{name}, after line {number}", reason)
        return
    if number == 0:
        raise InvalidInput(f"{name} is no export: it is empty")
    if inside:
        yield Skipped(f"{name}, after line {number}", CUT_OFF)


def only_of_user(
    lines: Iterable[LocatedLine | Skipped], name: str, left_out: Counter[str]
) -> Iterator[LocatedLine | Skipped]:
    """Yield the lines of one user; count those of others."""
    for one in lines:
        if isinstance(one, LocatedLine) and one.line.user != name:
            left_out[OTHERS] += 1
        else:
            yield one


def batch_lines(lines: Iterable[LocatedLine | Skipped], skip: Callable[[Skipped], None]) -> Iterator[list[LocatedLine]]:
    """Yield lines of one kind and of one conversation, or of one user, together; report those that cannot be read."""
    batch: list[LocatedLine] = []
    size = 0
    for one in lines:
        if isinstance(one, Skipped):
            skip(one)
            continue
        full = len(batch) == BATCH or size > BATCH_BYTES
        if batch and (full or _group(one.line) != _group(batch[0].line)):
            yield batch
            batch, size = [], 0
        batch.append(one)
        size += one.size
    if batch:
        yield batch


def _group(line: ExportLine) -> tuple[str, str, str | None]:
    return line.kind, line.user, getattr(line, "conversation", None)
