"""Read an export line by line: lines that cannot be read are reported, and the digest of all of them is checked."""

from __future__ import annotations

import gzip
import io
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import IO, Any, cast

from memstore.errors import InvalidInput
from memstore.export.schema import FORMAT, HEADER, ExportLine, Footer, Header, parse_line
from memstore.ingest.importers import ImportProblem, ImportReport
from memstore.ingest.importers.files import (
    BOM,
    GZIP,
    LONGEST_LINE,
    READ_ERRORS,
    check_file,
    numbered_lines,
    open_file,
    parse_object,
    printable,
    read_head,
)

BATCH = 500  # lines that are stored together
BATCH_BYTES = 8 * 1024 * 1024
VECTORS = 8  # times as long as a message is what is written of it with its vectors, at most
AGAIN = "what stands before was taken in; import the whole export again, and the rest is added"
CUT_OFF = f"the export is cut off: its last line is not there; {AGAIN}"
CHANGED = "the export was changed after it was written: its SHA-256 is another one; what could be read was taken in"
BEHIND = "what follows the last line of the export was not read; import it by itself"


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


def read_lines(stream: io.BufferedIOBase, name: str, max_message_bytes: int) -> Iterator[LocatedLine | ImportProblem]:
    """Yield the lines of an export; report those that cannot be read.

    Raises `InvalidInput` where it is no export at all, or one of a version that is not known.
    """
    digest, present, number = sha256(), b"", 0  # the digest is of all lines before the present one

    def readline(size: int) -> bytes:
        nonlocal present
        digest.update(present)
        present = stream.readline(size)
        return present

    longest = LONGEST_LINE + VECTORS * max_message_bytes
    try:
        for number, data in numbered_lines(readline, longest):
            where = f"{name}, line {number}"
            if data is not None and not data.strip():
                continue
            try:
                if data is None:
                    raise InvalidInput(f"the line is longer than {longest:,} bytes; raise max_message_bytes")
                line = parse_line(data)
                if (number == 1) != isinstance(line, Header):
                    raise InvalidInput("the header is the first line, and no other")
            except InvalidInput as error:
                if number == 1:
                    raise InvalidInput(f"{name} is no export that can be read: {error}") from None
                yield ImportProblem(where, str(error))
                continue
            if isinstance(line, Footer):
                if line.sha256 != digest.hexdigest():
                    yield ImportProblem(where, CHANGED)
                if stream.read(1):
                    yield ImportProblem(where, BEHIND)
                return
            if not isinstance(line, Header):
                yield LocatedLine(where, len(data or b""), line)
    except READ_ERRORS as error:
        reason = f"the file is damaged ({printable(str(error), 200)}); {AGAIN}"
        yield ImportProblem(f"{name}, after line {number}", reason)
        return
    if number == 0:
        raise InvalidInput(f"{name} is no export: it is empty")
    yield ImportProblem(f"{name}, after line {number}", CUT_OFF)


def batch_lines(lines: Iterable[LocatedLine | ImportProblem], report: ImportReport) -> Iterator[list[LocatedLine]]:
    """Yield lines of one kind and of one conversation, or of one user, together; report those that cannot be read."""
    batch: list[LocatedLine] = []
    size = 0
    for one in lines:
        if isinstance(one, ImportProblem):
            report.add_problem(one)
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
