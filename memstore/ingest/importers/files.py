"""Reading files that may be packed, huge, cut off or hostile, in bounded memory; nothing is ever unpacked to disk.

A history is a file, a zip or a folder: `parts` opens, one after the other, those of its files that are wanted.
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
from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Protocol, TypeVar, cast

from memstore.errors import InvalidInput

from .reading import PLAINLY, Reading
from .records import Skipped, shown

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
    """What the readers here need of an open file."""

    def read1(self, size: int, /) -> bytes:
        """Give some bytes, at most `size`, and none at the end."""
        ...

    def readline(self, size: int = -1, /) -> bytes:
        """Give the bytes up to a line's end and with it, at most `size`."""
        ...


@dataclass(frozen=True, slots=True)
class _Broken:
    """A file that could not even be opened: its reader is told so, as of one that breaks later."""

    error: Exception

    def read1(self, size: int, /) -> bytes:
        """Raise what opening it raised."""
        raise self.error

    def readline(self, size: int = -1, /) -> bytes:
        """Raise what opening it raised."""
        raise self.error


class _Watched(io.FileIO):
    """A file that tells how much further than ever before one has read in it, passing by included."""

    def __init__(self, path: Path, seen: Callable[[int], None]) -> None:
        super().__init__(path)
        self.watching = True
        self._seen = seen
        self._furthest = 0

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        """Read, and tell how far."""
        size = super().readinto(buffer) or 0
        here = self.tell()
        if self.watching and here > self._furthest:
            self._seen(here - self._furthest)
            self._furthest = here
        return size


def size_of(path: Path) -> int:
    """Give how many bytes a file, or all files of a folder, have on disk."""
    files = _files(path) if path.is_dir() else [path]
    return sum(file.stat().st_size for file in files)


def check_file(path: Path) -> None:
    """Raise InvalidInput, in words, unless the path is a file or a folder that can be read."""
    name = shown(str(path), 200)
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
def opened(path: Path, seen: Callable[[int], None] = PLAINLY.seen) -> Iterator[IO[bytes]]:
    """Open a file's bytes, unpacked where they are gzip's, whatever the file is called."""
    with io.BufferedReader(_Watched(path, seen), CHUNK) as raw:
        if raw.peek(2)[:2] != GZIP:
            yield cast(IO[bytes], raw)
            return
        with gzip.GzipFile(fileobj=raw) as unpacked:
            yield cast(IO[bytes], unpacked)


def head(path: Path, size: int = HEAD) -> bytes:
    """Give the first bytes of a file, unpacked: fewer where it ends or breaks before."""
    with opened(path) as stream:
        return take(cast(ByteStream, stream), size)


def take(stream: ByteStream, size: int) -> bytes:
    """Give the next bytes of a stream: fewer where it ends or breaks before."""
    got = b""
    with suppress(*READ_ERRORS):
        while len(got) < size and (more := stream.read1(size - len(got))):
            got += more
    return got


def is_zip(path: Path) -> bool:
    """Whether a file is a zip, whatever it is called."""
    return path.is_file() and head(path, 4) in ZIP


@dataclass(frozen=True, slots=True)
class Part:
    """A file of a history: its name in the zip or folder, the name to report, and its bytes while it is the turn."""

    name: str
    where: str
    stream: ByteStream


def parts(
    path: Path, wanted: re.Pattern[str], limit: int, seen: Callable[[int], None] = PLAINLY.seen
) -> Generator[Part]:
    """Open, one after the other, the file itself or, in a zip or folder, those with a wanted name.

    `limit` is on the unpacked bytes of all of them together. InvalidInput where a zip holds too much, or none.
    """
    if path.is_dir():
        yield from _of_folder(path, wanted, seen)
    elif is_zip(path):
        yield from _of_zip(path, wanted, limit, seen)
    else:
        with opened(path, seen) as stream:
            yield Part(path.name, shown(path.name), cast(ByteStream, stream))


def read_parts(
    path: Path, wanted: re.Pattern[str], reading: Reading, read: Callable[[Part], Iterator[T]], again: str
) -> Iterator[T | Skipped]:
    """Give what `read` finds in each wanted part; what keeps one from being opened is told, with what to do again."""
    check_file(path)
    try:
        for part in parts(path, wanted, MOST_UNPACKED, reading.seen):
            yield from read(part)
    except InvalidInput as error:
        yield Skipped(shown(path.name), str(error))
    except READ_ERRORS as error:
        yield Skipped(shown(path.name), f"the file is damaged or locked ({shown(str(error), 200)}); {again}")


def names(path: Path) -> list[str]:
    """Give the names of all files in a zip or folder, relative to it; of a file its own; none of a broken zip."""
    if path.is_dir():
        return [file.relative_to(path).as_posix() for file in _files(path)]
    if not is_zip(path):
        return [path.name]
    try:
        with _archive(path) as archive:
            return [name for name in archive.namelist() if not _HIDDEN.fullmatch(name)]
    except READ_ERRORS:
        return []


def first_head(path: Path, wanted: re.Pattern[str]) -> bytes:
    """Give the first bytes of the first wanted file, without its BOM; none where there is none or it is broken."""
    try:
        with closing(parts(path, wanted, limit=1 << 64)) as files:
            return next((take(part.stream, HEAD) for part in files), b"").removeprefix(BOM).lstrip()
    except (InvalidInput, *READ_ERRORS):
        return b""


def _of_folder(path: Path, wanted: re.Pattern[str], seen: Callable[[int], None]) -> Generator[Part]:
    files = _files(path)
    chosen = [file for file in files if wanted.fullmatch(file.relative_to(path).as_posix())]
    if not chosen:
        raise InvalidInput("the folder does not hold the history; give the folder of the export as it was unpacked")
    seen(sum(file.stat().st_size for file in files) - sum(file.stat().st_size for file in chosen))
    for file in sorted(chosen, key=lambda file: by_number(file.as_posix())):
        name = file.relative_to(path).as_posix()
        where = f"{shown(path.name)}, {shown(name, 120)}"
        yield from _part(name, where, partial(opened, file, seen))


def _files(path: Path) -> list[Path]:
    """Give the files below a folder; none that is hidden, and none through a link, which may lead out of it."""
    found = []
    for folder, folders, files in os.walk(path):
        folders[:] = [name for name in folders if not name.startswith((".", "__MACOSX"))]
        here = [Path(folder, name) for name in files if not name.startswith(".")]
        found += [file for file in here if file.is_file() and not file.is_symlink()]
    return sorted(found)


def _of_zip(path: Path, wanted: re.Pattern[str], limit: int, seen: Callable[[int], None]) -> Generator[Part]:
    watched = _Watched(path, seen)
    watched.watching = False  # the directory stands at the end of a zip, and is read first
    with io.BufferedReader(watched, CHUNK) as raw, _archive(cast(IO[bytes], raw)) as archive:
        watched.watching = True
        chosen = [
            one for one in archive.infolist() if wanted.fullmatch(one.filename) and not _HIDDEN.fullmatch(one.filename)
        ]
        if not chosen:
            raise InvalidInput("the zip does not hold the history; give the zip of the export as it was downloaded")
        # zipfile never gives more of an entry than the directory says, so its sizes are a bound and not just a claim.
        if sum(entry.file_size for entry in chosen) > limit:
            raise InvalidInput(f"the zip unpacks to more than {limit:,} bytes; unpack it and import the files in it")
        for entry in sorted(chosen, key=lambda entry: by_number(entry.filename)):
            where = f"{shown(path.name)}, {shown(entry.filename)}"
            yield from _part(entry.filename, where, partial(_entry, archive, entry))


def _part(name: str, where: str, open: Callable[[], AbstractContextManager[Any]]) -> Generator[Part]:
    """Give a file while it is open, or one that tells whoever reads it why it could not be opened."""
    with ExitStack() as stack:
        stream: ByteStream
        try:
            stream = stack.enter_context(open())
        except READ_ERRORS as error:
            stream = _Broken(error)
        yield Part(name, where, stream)


def by_number(name: str) -> list[tuple[str, int, str]]:
    """Order names by the numbers in them: 10 comes after 9. No int() of it: a name may have thousands of digits."""
    split = re.findall(r"([^0-9]*)0*([0-9]*)", name)
    return [(rest, len(digits), digits) for rest, digits in split]


def _archive(file: Path | IO[bytes]) -> zipfile.ZipFile:
    try:
        return zipfile.ZipFile(file)
    except _ZIP_ERRORS as error:
        raise zipfile.BadZipFile(str(error)) from error


def _entry(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> zipfile.ZipExtFile:
    try:
        return cast(zipfile.ZipExtFile, archive.open(entry))
    except _ZIP_ERRORS as error:
        raise zipfile.BadZipFile(str(error)) from error
