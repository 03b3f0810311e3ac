"""Open files that may be packed, huge or cut off, in bounded memory; nothing is unpacked to disk.

A history is a file, a zip or a folder: `read_parts` reads, one after the other, those of its files that are wanted.
"""

from __future__ import annotations

import gzip
import io
import os
import re
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar, cast

from memstore.errors import InvalidInput

from .base import DEFAULTS, ImportOptions, Skipped, printable

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

T = TypeVar("T")

HEAD = 64 * 1024
CHUNK = 256 * 1024
BOM = b"\xef\xbb\xbf"
GZIP = b"\x1f\x8b"
ZIP = (b"PK\x03\x04", b"PK\x05\x06")
# What reading may raise when the bytes end early or are not what they should be (gzip's own error is an OSError).
READ_ERRORS = (OSError, EOFError, zlib.error, zipfile.BadZipFile)
ONE_FILE = re.compile(r"(?!)")  # wanted of a zip or a folder: nothing
_ANY = re.compile(r"(?s:.*)")
_HIDDEN = re.compile(r"(?:.*/)?(?:__MACOSX/|\.(?!\.?/)).*")  # what a Mac and file managers leave beside what is packed


class _CountingFile(io.FileIO):
    """A file that reports how many bytes are read."""

    def __init__(self, path: Path, on_read: Callable[[int], None]) -> None:
        super().__init__(path)
        self._on_read = on_read

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        size = super().readinto(buffer) or 0
        self._on_read(size)
        return size


def size_of(path: Path) -> int:
    """Return how many bytes a file, or all files of a folder, have on disk."""
    files = _files_below(path) if path.is_dir() else [path]
    return sum(file.stat().st_size for file in files)


def check_file(path: Path) -> None:
    """Raise `InvalidInput` unless the path is a file or a folder that can be read."""
    name = printable(str(path), 200)
    try:
        if not path.exists():
            raise InvalidInput(f"there is no file {name}")
        if path.is_dir():
            next(path.iterdir(), None)
            return
        if not path.is_file():
            raise InvalidInput(f"{name} is a pipe or a device; save what it gives as a file and import that")
        with path.open("rb"):
            pass
    except (OSError, ValueError) as error:
        raise InvalidInput(f"{name} cannot be read: {getattr(error, 'strerror', None) or error}") from error


@contextmanager
def open_file(path: Path, on_read: Callable[[int], None] = DEFAULTS.on_read) -> Iterator[io.BufferedIOBase]:
    """Open a file's bytes, unpacked where they are gzip's, whatever the file is called."""
    with io.BufferedReader(_CountingFile(path, on_read), CHUNK) as raw:
        if raw.peek(2)[:2] != GZIP:
            yield raw
            return
        with gzip.GzipFile(fileobj=raw) as unpacked:
            yield unpacked


def read_head(path: Path, size: int = HEAD) -> bytes:
    """Return the first bytes of a file, unpacked: fewer where it ends or breaks before."""
    with open_file(path) as stream:
        return _read_up_to(stream, size)


def _read_up_to(stream: io.BufferedIOBase, size: int) -> bytes:
    data = b""
    with suppress(*READ_ERRORS):
        while len(data) < size and (more := stream.read1(size - len(data))):
            data += more
    return data


def is_zip(path: Path) -> bool:
    """Return whether a file is a zip, whatever it is called."""
    return path.is_file() and read_head(path, 4) in ZIP


@dataclass(frozen=True, slots=True)
class Part:
    """An open file of a history: its name in the zip or folder, the name to report, and its bytes."""

    name: str
    where: str
    stream: io.BufferedIOBase


def read_parts(
    path: Path, wanted: re.Pattern[str], options: ImportOptions, read: Callable[[Part], Iterable[T]], again: str
) -> Iterator[T | Skipped]:
    """Yield what `read` yields of the file, or of each file in a zip or folder whose name is wanted.

    What keeps one from being opened is reported, with what to do `again`.
    """
    where = ""
    try:
        for name, where, open_part in _parts(path, wanted, options.on_read):
            try:
                with open_part() as stream:
                    yield from read(Part(name, where, stream))
            except READ_ERRORS as error:
                yield Skipped(where, f"the file is damaged or locked ({printable(str(error), 200)}); {again}")
        if not where:
            yield Skipped(printable(path.name), f"it does not hold the history; {again}")
    except zipfile.BadZipFile as error:
        yield Skipped(printable(path.name), f"the file is damaged or locked ({printable(str(error), 200)}); {again}")


def first_head(path: Path, wanted: re.Pattern[str]) -> bytes:
    """Return the first bytes of the first wanted file, without its BOM; none where there is none or it is broken."""
    with suppress(*READ_ERRORS):
        for _, _, open_part in _parts(path, wanted, DEFAULTS.on_read):
            with open_part() as stream:
                return _read_up_to(stream, HEAD).removeprefix(BOM).lstrip()
    return b""


def list_names(path: Path) -> list[str]:
    """Return the names of all files in a zip or folder, relative to it; of a file its own; none of a broken zip."""
    with suppress(*READ_ERRORS):
        return [name for name, _, _ in _parts(path, _ANY, DEFAULTS.on_read)]
    return []


def _parts(
    path: Path, wanted: re.Pattern[str], on_read: Callable[[int], None]
) -> Iterator[tuple[str, str, Callable[[], AbstractContextManager[io.BufferedIOBase]]]]:
    """Yield the name in the zip or folder, the name to report, and how to open it."""
    if path.is_dir():
        for file in _files_below(path):
            name = file.relative_to(path).as_posix()
            if wanted.fullmatch(name):
                yield name, f"{printable(path.name)}, {printable(name, 120)}", partial(open_file, file, on_read)
    elif is_zip(path):
        with io.BufferedReader(_CountingFile(path, on_read), CHUNK) as raw, zipfile.ZipFile(raw) as archive:
            for name in sorted(archive.namelist()):
                if wanted.fullmatch(name) and not _HIDDEN.fullmatch(name):
                    yield name, f"{printable(path.name)}, {printable(name)}", partial(_open_member, archive, name)
    else:
        yield path.name, printable(path.name), partial(open_file, path, on_read)


def _files_below(path: Path) -> list[Path]:
    """Return the files below a folder; none that is hidden, and none through a link, which may lead out of it."""
    files = (Path(folder, name) for folder, _, names in os.walk(path) for name in names)
    return sorted(
        file
        for file in files
        if file.is_file() and not file.is_symlink() and not _HIDDEN.fullmatch(file.relative_to(path).as_posix())
    )


def _open_member(archive: zipfile.ZipFile, name: str) -> io.BufferedIOBase:
    try:
        return cast(io.BufferedIOBase, archive.open(name))
    except RuntimeError as error:  # it wants a password, or its way of packing is not known
        raise zipfile.BadZipFile(str(error)) from error
