"""Files of a history, which may be packed, huge or cut off, read in bounded memory: as bytes, lines or JSON values.

A history is a file, a zip or a folder, and nothing of it is unpacked to disk. A line that is broken costs itself; where
a list of JSON breaks, what stood before has come, and the rest is not read.
"""

from __future__ import annotations

import codecs
import gzip
import io
import json
import os
import re
import zipfile
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from itertools import count, islice
from pathlib import Path, PurePath, PurePosixPath
from typing import Any, TypeAlias, TypeVar, cast

from memstore.errors import InvalidInput
from memstore.text import is_deep, read_json

T = TypeVar("T")

HEAD_BYTES = 64 * 1024
READ_BYTES = 256 * 1024
MAX_LINE_BYTES = 16 * 1024 * 1024
# Real conversations have some megabytes at most; in memory a character takes up to 4 bytes.
MAX_VALUE_BYTES = 64 * 1024 * 1024
BOM = b"\xef\xbb\xbf"
# Errors of reading when the bytes end early or are damaged (gzip's own error is an OSError).
READ_ERRORS = (OSError, EOFError, zlib.error, zipfile.BadZipFile)
PRETTY = "write each message as one JSON object on a line of its own, in UTF-8"
_NO_SPACE = re.compile(r"[^ \t\n\r]")
_NEXT_LINE = re.compile(r"(?<=\n)[{\[]")
# Telegram writes a control character as \x0B, which JSON does not know.
_ESCAPE = re.compile(r"\\(?:x([0-9a-fA-F]{2})|.)", re.DOTALL)
# The keys and numbers that lead to a value in JSON.
JsonPath: TypeAlias = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class ImportProblem:
    """Something in a file that could not be read: where it is, what is wrong, and what to do."""

    where: str
    reason: str


def printable(text: str, longest: int = 60) -> str:
    """Return a text on one short line, without control characters."""
    short = text if len(text) <= longest else text[: longest - 1] + "…"
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in short)


# --- files


def check_file(path: Path) -> None:
    with suppress(OSError):  # such as for a name that is too long
        if (path.is_file() or path.is_dir()) and os.access(path, os.R_OK):
            return
    raise InvalidInput(f"there is no file {printable(str(path), 200)}, or it cannot be read")


def find_damage(path: Path) -> str | None:
    """Return why nothing can be read of a file, whatever its format; None for a folder."""
    try:
        if path.is_dir():
            return None
        if is_zip(path):
            with _open_zip(path) as archive:
                damage = "is a zip without files"
                for name in archive.namelist():
                    try:
                        if not name.endswith("/"):
                            _open_member(archive, name).close()
                            return None
                    except zipfile.BadZipFile as error:
                        damage = f"is damaged or locked ({printable(str(error), 200)})"
                return damage
        with open_file(path) as stream:
            if not stream.read1(HEAD_BYTES).strip():
                return "is empty"
        return "is called a zip and is none: it is cut off or damaged" if path.suffix.lower() == ".zip" else None
    except READ_ERRORS as error:
        return f"is cut off or damaged ({printable(str(error), 200)})"


@contextmanager
def open_file(path: Path) -> Iterator[io.BufferedIOBase]:
    """Open a file's bytes, unpacked where they are gzip's, whatever the file is called."""
    with io.BufferedReader(io.FileIO(path), READ_BYTES) as raw:
        yield unpack(raw)


def unpack(raw: io.BufferedReader[Any]) -> io.BufferedIOBase:
    return gzip.GzipFile(fileobj=raw) if raw.peek(2)[:2] == b"\x1f\x8b" else raw


def read_head(path: Path, size: int = HEAD_BYTES) -> bytes:
    """Return the first bytes of a file, unpacked: fewer where it ends or breaks before."""
    with open_file(path) as stream:
        return _read_up_to(stream, size)


def _read_up_to(stream: io.BufferedIOBase, size: int) -> bytes:
    data = b""
    with suppress(*READ_ERRORS):
        while len(data) < size and (more := stream.read1(size - len(data))):
            data += more
    return data


def is_single(path: Path) -> bool:
    return path.is_file() and not is_zip(path)


def is_zip(path: Path) -> bool:
    return path.is_file() and read_head(path, 4) in (b"PK\x03\x04", b"PK\x05\x06")


@dataclass(frozen=True, slots=True)
class OpenFile:
    """An open file of a history: its name in the zip or folder, the name to report, and its bytes."""

    name: str
    where: str
    stream: io.BufferedIOBase


def read_files(
    path: Path, wanted: Collection[str], read: Callable[[OpenFile], Iterable[T]], advice: str
) -> Iterator[T | ImportProblem]:
    """Yield what `read` yields of the file, or of each file in a zip or folder that has a name as wanted.

    A file that cannot be opened is reported, with `advice`.
    """
    where, damage = "", "the file is damaged or locked"
    try:
        for name, where, open_one in _files(path, wanted):
            try:
                with open_one() as stream:
                    yield from read(OpenFile(name, where, stream))
            except READ_ERRORS as error:
                yield ImportProblem(where, f"{damage} ({printable(str(error), 200)}); {advice}")
        if not where:
            yield ImportProblem(printable(path.name), f"it does not hold the history; {advice}")
    except zipfile.BadZipFile as error:
        yield ImportProblem(printable(path.name), f"{damage} ({printable(str(error), 200)}); {advice}")


def open_files(path: Path, wanted: Collection[str]) -> Iterator[OpenFile]:
    """Yield the file, or each file in a zip or folder of a name that is wanted, while it is open; no broken one."""
    with suppress(*READ_ERRORS):
        for name, where, open_one in _files(path, wanted):
            with suppress(*READ_ERRORS), open_one() as stream:
                yield OpenFile(name, where, stream)


def read_start(file: OpenFile) -> bytes:
    return _read_up_to(file.stream, HEAD_BYTES).removeprefix(BOM).lstrip()


def first_values(file: OpenFile) -> list[Any]:
    """Return the first JSON objects and lists of an open file, and go back to its beginning."""
    values: list[Any] = []
    with suppress(*READ_ERRORS):
        is_json = read_start(file)[:1] in (b"{", b"[")
        file.stream.seek(0)
        if is_json:
            entries = islice(numbered_values(file, "", ""), 20)
            values = [entry[1] for entry in entries if isinstance(entry, tuple)]
        file.stream.seek(0)
    return [value for value in values if isinstance(value, dict | list)]


def list_names(path: Path) -> list[str]:
    """Return the names of all files in a zip or folder, relative to it; of a file its own; none of a broken zip."""
    with suppress(*READ_ERRORS):
        return [name for name, _, _ in _files(path, ("*",))]
    return []


def has_name(name: str, patterns: Collection[str]) -> bool:
    """Return whether the end of a path is as a pattern says, in any case, or all of it for a pattern with / before."""
    path = PurePosixPath(name.lower())
    return any((PurePosixPath("/", path) if pattern[0] == "/" else path).match(pattern) for pattern in patterns)


def _files(
    path: Path, wanted: Collection[str]
) -> Iterator[tuple[str, str, Callable[[], AbstractContextManager[io.BufferedIOBase]]]]:
    """Yield the name in the zip or folder, the name to report, and how to open it."""
    if path.is_dir():
        for file in _files_below(path):
            name = file.relative_to(path).as_posix()
            if has_name(name, wanted):
                yield name, f"{printable(path.name)}, {printable(name, 120)}", partial(open_file, file)
    elif is_zip(path):
        with _open_zip(path) as archive:
            for name in sorted(archive.namelist()):
                if not name.endswith("/") and has_name(name, wanted) and not _is_hidden(PurePosixPath(name)):
                    yield name, f"{printable(path.name)}, {printable(name)}", partial(_open_member, archive, name)
    else:
        yield path.name, printable(path.name), partial(open_file, path)


def _files_below(path: Path) -> list[Path]:
    """Return the files below a folder; none that is hidden, and none through a link, which may lead out of it."""
    files = [Path(folder, name) for folder, _, names in os.walk(path) for name in names]
    files = [file for file in files if file.is_file() and not file.is_symlink()]
    return sorted(file for file in files if not _is_hidden(file.relative_to(path)))


def _is_hidden(path: PurePath) -> bool:
    """Return whether a file in a zip or folder is a leftover of a Mac or of a file manager."""
    return any(part == "__MACOSX" or (part.startswith(".") and part != "..") for part in path.parts)


def _open_zip(path: Path) -> zipfile.ZipFile:
    try:
        return zipfile.ZipFile(path)
    except (NotImplementedError, UnicodeDecodeError) as error:
        # The zip is of a newer version of the format, or damaged.
        raise zipfile.BadZipFile(str(error)) from error


def _open_member(archive: zipfile.ZipFile, name: str) -> io.BufferedIOBase:
    try:
        return cast(io.BufferedIOBase, archive.open(name))
    except (RuntimeError, UnicodeDecodeError) as error:
        # It wants a password, or is packed or named in no known way.
        raise zipfile.BadZipFile(str(error)) from error


# --- JSON, line by line or value by value


def numbered_lines(readline: Callable[[int], bytes], longest: int) -> Iterator[tuple[int, bytes | None]]:
    """Yield the lines with their numbers from 1, without the file's BOM, and None for one longer than `longest`."""
    number = 0
    while line := readline(longest + 1):
        number += 1
        if number == 1:
            line = line.removeprefix(BOM)
        if len(line) <= longest or line.endswith(b"\n"):
            # A line of nothing but a BOM is a line too.
            yield number, line or b"\n"
            continue
        while line and not line.endswith(b"\n"):
            line = readline(longest)
        yield number, None


def parse_object(line: bytes) -> dict[str, Any]:
    try:
        value = read_json(line.decode())
    except UnicodeDecodeError as error:
        raise InvalidInput(f"byte {error.start + 1} of the line is not UTF-8; save the file as UTF-8") from None
    except json.JSONDecodeError as error:
        raise InvalidInput(f"it is not JSON ({error.msg}, at character {error.pos + 1}); {PRETTY}") from None
    except ValueError:
        raise InvalidInput("it is nested too deep, or a number in it is too long; write it as a text") from None
    if not isinstance(value, dict):
        raise InvalidInput(f"it is not a JSON object; {PRETTY}")
    return value


def numbered_values(file: OpenFile, unit: str, advice: str) -> Iterator[tuple[str, Any] | ImportProblem]:
    """Yield the elements of a list, or else values that follow one another, such as one a line, with their places.

    Bytes that are not UTF-8 come as lone surrogates, for the reader of the text to replace: one bad byte must not cost
    what comes after it.
    """
    text, number, in_list = _Window(file.stream), 0, False
    while mark := text.find(_NO_SPACE):
        if (mark == "[" and not in_list) or (mark in ",]" and in_list):
            text.at += 1
            in_list = mark != "]"
            continue
        number += 1
        where = f"{file.where}, {unit} {number}" if in_list else f"{file.where}, line {text.line}"
        try:
            value = text.value()
        except InvalidInput as error:
            if in_list:
                yield ImportProblem(where, f"{error}; the rest of the file was not read; {advice}")
                return
            yield ImportProblem(where, f"{error}; {advice}")
            text.at += 1
            text.find(_NEXT_LINE)
        else:
            yield where, value
    if in_list:
        yield ImportProblem(f"{file.where}, after {unit} {number}", f"the file ends in the middle; {advice}")


def nested_values(
    file: OpenFile, is_opened: Callable[[JsonPath], bool], advice: str
) -> Iterator[tuple[JsonPath, Any] | ImportProblem]:
    """Yield the values of one JSON value with their paths: those of what `is_opened` names one by one, others whole.

    So a huge object is read in bounded memory. Where it breaks, what stood before has come.
    """
    text = _Window(file.stream)
    try:
        yield from _nested(text, (), is_opened)
        if text.find(_NO_SPACE):
            raise InvalidInput("something follows behind its end")
    except InvalidInput as error:
        yield ImportProblem(f"{file.where}, line {text.line}", f"{error}; the rest of the file was not read; {advice}")


def _nested(text: _Window, path: JsonPath, is_opened: Callable[[JsonPath], bool]) -> Iterator[tuple[JsonPath, Any]]:
    mark = text.expect(_NO_SPACE)
    if mark not in ("{", "[") or not is_opened(path):
        yield path, text.value()
        return
    text.at += 1
    end = "}" if mark == "{" else "]"
    for number in count():
        mark = text.expect(_NO_SPACE)
        if mark == end:
            text.at += 1
            return
        if number:
            if mark != ",":
                raise InvalidInput(f"it is not JSON (Expecting ',' or '{end}')")
            text.at += 1
            text.expect(_NO_SPACE)
        key: str | int = number
        if end == "}":
            key = text.value()
            if not isinstance(key, str) or text.expect(_NO_SPACE) != ":":
                raise InvalidInput("it is not JSON (Expecting a key and ':')")
            text.at += 1
        yield from _nested(text, (*path, key), is_opened)


class _Window:
    """The part of a text that is held while its values are read one by one."""

    def __init__(self, stream: io.BufferedIOBase) -> None:
        self.text, self.at, self.line = "", 0, 1
        self._stream = stream
        self._decode_value = json.JSONDecoder(strict=False).raw_decode
        self._decode = codecs.getincrementaldecoder("utf-8-sig")("surrogateescape").decode

    def find(self, pattern: re.Pattern[str]) -> str:
        """Go to the next match of the pattern, and return its character; "" at the end."""
        while (match := pattern.search(self.text, self.at)) is None:
            # A line's end may be the last that is held.
            self._go(max(len(self.text) - 1, self.at))
            if not self._more():
                self._go(len(self.text))
                return ""
        self._go(match.start())
        return match[0]

    def expect(self, pattern: re.Pattern[str]) -> str:
        """Go to the next match of the pattern, and return its character; raise `InvalidInput` at the end."""
        if not (mark := self.find(pattern)):
            raise InvalidInput("the file ends in the middle")
        return mark

    def value(self) -> Any:
        """Return the value that begins here, and go behind it; raise `InvalidInput` if none does."""
        while True:
            try:
                value, end = self._decode_value(self.text, self.at)
            except json.JSONDecodeError as error:
                if error.msg.startswith("Invalid \\escape") and self._mend_escapes(error.pos):
                    continue
                # Only what breaks at the end of what is held can be mended by more of it.
                cut = error.msg.startswith("Unterminated string") or error.pos >= len(self.text) - len("-Infinity")
                if not (cut and self._more()):
                    raise InvalidInput(f"it is not JSON ({error.msg})") from None
            except (RecursionError, ValueError):
                raise InvalidInput("it is nested too deep, or a number in it is too long") from None
            else:
                if is_deep(value):
                    raise InvalidInput("it is nested too deep")
                # A number may go on behind what is held: 1 of 12, 1. of 1.5, 1e+ of 1e+5.
                if isinstance(value, int | float) and end + 2 >= len(self.text):
                    end -= self.at
                    if self._more():
                        continue
                self._go(end)
                return value

    def _mend_escapes(self, at: int) -> bool:
        """Write escapes of Telegram's as JSON has them, from one that is broken on; return whether there were any."""
        mended = _ESCAPE.sub(lambda escape: f"\\u00{escape[1]}" if escape[1] else escape[0], self.text[at:])
        is_changed = mended != self.text[at:]
        self.text = self.text[:at] + mended
        return is_changed

    def _go(self, to: int) -> None:
        self.line += self.text.count("\n", self.at, to)
        self.at = to

    def _more(self) -> bool:
        """Read on, at least as much as is held: so a long value is parsed again few times, however long it is."""
        wanted = max(READ_BYTES, len(self.text) - self.at)
        if wanted > MAX_VALUE_BYTES:
            raise InvalidInput(f"the value that begins here is larger than {MAX_VALUE_BYTES:,} characters")
        pieces: list[bytes] = []
        try:
            while wanted > 0 and (piece := self._stream.read1(wanted)):
                pieces.append(piece)
                wanted -= len(piece)
        except READ_ERRORS:
            # What came is read first; the next reading fails again.
            if not pieces:
                raise
        data = b"".join(pieces)
        new = self._decode(data, not data)
        self.text, self.at = self.text[self.at :] + new, 0
        # Bytes may come and no character: half of one, or a BOM.
        return bool(data or new)
