"""Reading files that may be packed, huge, cut off or hostile, in bounded memory; nothing is ever unpacked to disk."""

from __future__ import annotations

import codecs
import gzip
import json
import lzma
import re
import struct
import zipfile
import zlib
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, Protocol, cast

from memstore.errors import InvalidInput

from .records import shown

HEAD = 64 * 1024
CHUNK = 256 * 1024
GZIP = b"\x1f\x8b"
ZIP = (b"PK\x03\x04", b"PK\x05\x06")
# What reading may raise when the bytes end early or are not what they should be (gzip's own error is an OSError).
READ_ERRORS = (OSError, EOFError, zlib.error, lzma.LZMAError, zipfile.BadZipFile)
# What zipfile raises besides, for a directory of nonsense, a password, or a method it does not know (found by fuzzing).
_ZIP_ERRORS = (ValueError, OverflowError, RuntimeError, struct.error)

# The space that JSON allows between values, and no other.
_SPACE = re.compile(r"[ \t\n\r]*")
_DECODER = json.JSONDecoder(strict=False)


class ByteStream(Protocol):
    """What the readers here need of an open file."""

    def read1(self, size: int, /) -> bytes:
        """Give some bytes, at most `size`, and none at the end."""
        ...


def check_file(path: Path) -> None:
    """Raise InvalidInput, in words, unless the path is a file that can be read."""
    name = shown(str(path), 200)
    try:
        if path.is_dir():
            raise InvalidInput(f"{name} is a folder; name the file in it that holds the history")
        if not path.exists():
            raise InvalidInput(f"there is no file {name}")
        if not path.is_file():
            raise InvalidInput(f"{name} is a pipe or a device; save what it gives as a file and import that")
        with path.open("rb"):
            pass
    except (OSError, ValueError) as error:
        raise InvalidInput(f"{name} cannot be read: {getattr(error, 'strerror', None) or error}") from error


@contextmanager
def opened(path: Path) -> Iterator[IO[bytes]]:
    """Open a file's bytes, unpacked where they are gzip's, whatever the file is called."""
    with path.open("rb") as raw:
        if raw.peek(2)[:2] != GZIP:
            yield raw
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


def parts(path: Path, wanted: re.Pattern[str], limit: int) -> Generator[tuple[str, ByteStream]]:
    """Open, one after the other, the file itself or, in a zip, those with a wanted name; with a name to report.

    `limit` is on the unpacked bytes of all of them together. InvalidInput where the zip holds too much or none.
    """
    if head(path, 4) not in ZIP:
        with opened(path) as stream:
            yield shown(path.name), cast(ByteStream, stream)
        return
    with _archive(path) as archive:
        chosen = [entry for entry in archive.infolist() if wanted.fullmatch(entry.filename)]
        if not chosen:
            raise InvalidInput("the zip does not hold the history; give the zip of the export as it was downloaded")
        # zipfile never gives more of an entry than the directory says, so its sizes are a bound and not just a claim.
        if sum(entry.file_size for entry in chosen) > limit:
            raise InvalidInput(f"the zip unpacks to more than {limit:,} bytes; unpack it and import the files in it")
        for entry in sorted(chosen, key=_by_number):
            with _entry(archive, entry) as member:
                yield f"{shown(path.name)}, {shown(entry.filename)}", member


def _by_number(entry: zipfile.ZipInfo) -> list[tuple[str, int, str]]:
    """Order names by the numbers in them: 10 comes after 9. No int() of it: a name may have thousands of digits."""
    split = re.findall(r"([^0-9]*)0*([0-9]*)", entry.filename)
    return [(rest, len(digits), digits) for rest, digits in split]


def _archive(path: Path) -> zipfile.ZipFile:
    try:
        return zipfile.ZipFile(path)
    except _ZIP_ERRORS as error:
        raise zipfile.BadZipFile(str(error)) from error


def _entry(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> zipfile.ZipExtFile:
    try:
        return cast(zipfile.ZipExtFile, archive.open(entry))
    except _ZIP_ERRORS as error:
        raise zipfile.BadZipFile(str(error)) from error


def array_elements(stream: ByteStream, limit: int) -> Iterator[Any]:
    """Give the elements of a file that is one JSON array, each when it is whole; then InvalidInput if the array breaks.

    `limit` is on the characters of one element. Bytes that are not UTF-8 come as lone surrogates, for the reader of
    the text to replace: one bad byte must not cost what comes after it.
    """
    text = _Window(stream, limit)
    if text.skip_space() != "[":
        raise InvalidInput("it is not a JSON list")
    text.at += 1
    mark = text.skip_space()
    while mark != "]":
        text.skip_space()
        yield text.value()
        mark = text.skip_space()
        if mark not in (",", "]"):
            raise text.broken("a comma or the list's end was expected" if mark else "the file ends here")
        text.at += mark == ","
    text.at += 1
    if text.skip_space():
        raise text.broken("the list ended before this; nothing after it was read")


class _Window:
    """The part of a text that is held while its values are read one by one."""

    def __init__(self, stream: ByteStream, limit: int) -> None:
        self.text = ""
        self.at = 0
        self._stream = stream
        self._limit = limit
        self._decode = codecs.getincrementaldecoder("utf-8-sig")("surrogateescape").decode
        self._dropped = 0
        self._failure: InvalidInput | None = None

    def skip_space(self) -> str:
        """Go to the next character that is not space, and give it; at the end, nothing."""
        while True:
            space = _SPACE.match(self.text, self.at)
            self.at = space.end() if space else self.at
            if self.at < len(self.text):
                return self.text[self.at]
            if not self._more():
                return ""

    def value(self) -> Any:
        """Give the JSON value that begins here, and go behind it."""
        while True:
            try:
                value, end = _DECODER.raw_decode(self.text, self.at)
            except json.JSONDecodeError as error:
                if not (self._cut(error) and self._more()):
                    raise self.broken(error.msg, error.pos) from None
            except (RecursionError, ValueError):
                raise self.broken("what begins here is nested too deep, or a number in it is too long") from None
            else:
                # Only a number can go on behind what is held: what is left of it then is "e+" at most.
                if len(self.text) - end > 2 or self.text[end - 1] in '}]"' or not self._more():
                    self.at = end
                    return value

    def broken(self, why: str, at: int | None = None) -> InvalidInput:
        """Say where the text stops making sense."""
        return InvalidInput(f"it breaks at character {self._dropped + (self.at if at is None else at) + 1:,}: {why}")

    def _cut(self, error: json.JSONDecodeError) -> bool:
        """Say whether more text could mend it: else a broken file would be read to its end, or to the limit."""
        return error.msg.startswith("Unterminated string") or error.pos >= len(self.text) - len("-Infinity")

    def _more(self) -> bool:
        """Read on, at least as much as is held: so a long value is parsed again few times, however long it is."""
        if self._failure:
            raise self._failure
        if len(self.text) - self.at > self._limit:
            raise self.broken(f"what begins here is larger than {self._limit:,} characters")
        data = self._read(max(CHUNK, len(self.text) - self.at))
        new = self._decode(data, not data)
        if new:
            self.text, self._dropped, self.at = self.text[self.at :] + new, self._dropped + self.at, 0
        # Bytes may come and no character: half of one, or a BOM.
        return bool(data or new)

    def _read(self, size: int) -> bytes:
        """Read so many bytes; where that fails midway, give what came, and fail the next time."""
        got: list[bytes] = []
        try:
            while size > 0 and (data := self._stream.read1(size)):
                got.append(data)
                size -= len(data)
        except READ_ERRORS as error:
            self._failure = InvalidInput(f"the file is cut off or damaged ({shown(str(error), 200)})")
            if not got:
                raise self._failure from error
        return b"".join(got)
