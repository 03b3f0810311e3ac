"""Open files that may be packed, huge, cut off or hostile, in bounded memory; nothing is unpacked to disk.

A history is a file, a zip or a folder: `read_parts` reads, one after the other, those of its files that are wanted.
"""

from __future__ import annotations

import gzip
import io
import lzma
import os
import re
import struct
import zipfile
import zlib
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar, cast

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
MOST_UNPACKED = 16 * 1024**3  # bytes out of one zip; read as a stream, so it is time that is bounded, not memory
# What reading may raise when the bytes end early or are not what they should be (gzip's own error is an OSError).
READ_ERRORS = (OSError, EOFError, zlib.error, lzma.LZMAError, zipfile.BadZipFile)
# What zipfile raises besides, for a directory of nonsense, a password, or a method it does not know (found by fuzzing).
_ZIP_ERRORS = (ValueError, OverflowError, RuntimeError, struct.error)
ONE_FILE = re.compile(r"(?!)")  # wanted of a zip or a folder: nothing
_HIDDEN = re.compile(r"(?:.*/)?(?:__MACOSX/|\.(?!\.?/)).*")  # what a Mac and file managers leave beside what is packed


class ByteStream(Protocol):
    """What readers need of an open file."""

    def read1(self, size: int, /) -> bytes:
        """Return some bytes, at most `size`, and none at the end."""
        ...

    def readline(self, size: int = -1, /) -> bytes:
        """Return the bytes up to a line's end and with it, at most `size`."""
        ...


class _CountingFile(io.FileIO):
    """A file that reports how much further than before one has read in it, skipped bytes included."""

    def __init__(self, path: Path, on_read: Callable[[int], None], *, counting: bool = True) -> None:
        super().__init__(path)
        self.counting = counting
        self._on_read = on_read
        self._furthest = 0

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        size = super().readinto(buffer) or 0
        here = self.tell()
        if self.counting and here > self._furthest:
            self._on_read(here - self._furthest)
            self._furthest = here
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
def open_file(path: Path, on_read: Callable[[int], None] = DEFAULTS.on_read) -> Iterator[IO[bytes]]:
    """Open a file's bytes, unpacked where they are gzip's, whatever the file is called."""
    with io.BufferedReader(_CountingFile(path, on_read), CHUNK) as raw:
        if raw.peek(2)[:2] != GZIP:
            yield cast(IO[bytes], raw)
            return
        with gzip.GzipFile(fileobj=raw) as unpacked:
            yield cast(IO[bytes], unpacked)


def read_head(path: Path, size: int = HEAD) -> bytes:
    """Return the first bytes of a file, unpacked: fewer where it ends or breaks before."""
    with open_file(path) as stream:
        return _read_up_to(cast(ByteStream, stream), size)


def _read_up_to(stream: ByteStream, size: int) -> bytes:
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
    stream: ByteStream


class _Entry(NamedTuple):
    """A file of a history that is not opened yet."""

    name: str
    where: str
    open: Callable[[], AbstractContextManager[Any]]


def read_parts(
    path: Path, wanted: re.Pattern[str], options: ImportOptions, read: Callable[[Part], Iterable[T]], again: str
) -> Iterator[T | Skipped]:
    """Yield what `read` yields of the file, or of each file in a zip or folder whose name is wanted.

    What keeps one from being opened is reported, with what to do `again`. Raises `InvalidInput` where nothing is there.
    """
    check_file(path)
    try:
        for entry in _entries(path, wanted, MOST_UNPACKED, options.on_read):
            try:
                with entry.open() as stream:
                    yield from read(Part(entry.name, entry.where, stream))
            except READ_ERRORS as error:
                yield Skipped(entry.where, f"the file is damaged or locked ({printable(str(error), 200)}); {again}")
    except InvalidInput as error:
        yield Skipped(printable(path.name), str(error))
    except READ_ERRORS as error:
        yield Skipped(printable(path.name), f"the file is damaged or locked ({printable(str(error), 200)}); {again}")


def first_head(path: Path, wanted: re.Pattern[str]) -> bytes:
    """Return the first bytes of the first wanted file, without its BOM; none where there is none or it is broken."""
    try:
        with closing(_entries(path, wanted, 1 << 64, DEFAULTS.on_read)) as entries:
            for entry in entries:
                with entry.open() as stream:
                    return _read_up_to(stream, HEAD).removeprefix(BOM).lstrip()
    except (InvalidInput, *READ_ERRORS):
        pass
    return b""


def list_names(path: Path) -> list[str]:
    """Return the names of all files in a zip or folder, relative to it; of a file its own; none of a broken zip."""
    if path.is_dir():
        return [file.relative_to(path).as_posix() for file in _files_below(path)]
    if not is_zip(path):
        return [path.name]
    try:
        with _open_zip(path) as archive:
            return [name for name in archive.namelist() if not _HIDDEN.fullmatch(name)]
    except READ_ERRORS:
        return []


def _entries(path: Path, wanted: re.Pattern[str], limit: int, on_read: Callable[[int], None]) -> Generator[_Entry]:
    if path.is_dir():
        yield from _folder_entries(path, wanted, on_read)
    elif is_zip(path):
        yield from _zip_entries(path, wanted, limit, on_read)
    else:
        yield _Entry(path.name, printable(path.name), partial(open_file, path, on_read))


def _folder_entries(path: Path, wanted: re.Pattern[str], on_read: Callable[[int], None]) -> Generator[_Entry]:
    files = {file.relative_to(path).as_posix(): file for file in _files_below(path)}
    chosen = [name for name in files if wanted.fullmatch(name)]
    if not chosen:
        raise InvalidInput("the folder does not hold the history; give the folder of the export as it was unpacked")
    on_read(sum(files[name].stat().st_size for name in files.keys() - chosen))
    for name in sorted(chosen, key=_natural_key):
        where = f"{printable(path.name)}, {printable(name, 120)}"
        yield _Entry(name, where, partial(open_file, files[name], on_read))


def _files_below(path: Path) -> list[Path]:
    """Return the files below a folder; none that is hidden, and none through a link, which may lead out of it."""
    found = []
    for folder, folders, files in os.walk(path):
        folders[:] = [name for name in folders if not name.startswith((".", "__MACOSX"))]
        here = [Path(folder, name) for name in files if not name.startswith(".")]
        found += [file for file in here if file.is_file() and not file.is_symlink()]
    return sorted(found)


def _zip_entries(path: Path, wanted: re.Pattern[str], limit: int, on_read: Callable[[int], None]) -> Generator[_Entry]:
    file = _CountingFile(path, on_read, counting=False)
    with io.BufferedReader(file, CHUNK) as raw, _open_zip(cast(IO[bytes], raw)) as archive:
        file.counting = True  # only now: the directory stands at the end of a zip, and is read first
        infos = archive.infolist()
        chosen = [one for one in infos if wanted.fullmatch(one.filename) and not _HIDDEN.fullmatch(one.filename)]
        if not chosen:
            raise InvalidInput("the zip does not hold the history; give the zip of the export as it was downloaded")
        # zipfile never gives more of an entry than the directory says, so its sizes are a bound and not just a claim.
        if sum(info.file_size for info in chosen) > limit:
            raise InvalidInput(f"the zip unpacks to more than {limit:,} bytes; unpack it and import the files in it")
        for info in sorted(chosen, key=lambda info: _natural_key(info.filename)):
            where = f"{printable(path.name)}, {printable(info.filename)}"
            yield _Entry(info.filename, where, partial(_open_zip_entry, archive, info))


def _natural_key(name: str) -> list[tuple[str, int, str]]:
    """Sort names by the numbers in them: 10 comes after 9."""
    split = re.findall(r"([^0-9]*)0*([0-9]*)", name)
    return [(rest, len(digits), digits) for rest, digits in split]  # no int(): a name may have thousands of digits


def _open_zip(file: Path | IO[bytes]) -> zipfile.ZipFile:
    try:
        return zipfile.ZipFile(file)
    except _ZIP_ERRORS as error:
        raise zipfile.BadZipFile(str(error)) from error


def _open_zip_entry(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> IO[bytes]:
    try:
        return archive.open(info)
    except _ZIP_ERRORS as error:
        raise zipfile.BadZipFile(str(error)) from error
