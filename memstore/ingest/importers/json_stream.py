"""Long files of JSON in bounded memory: line by line, element by element of one list, or value by value.

A line or a value that is broken costs itself: the reader goes on behind it, where it can tell where that is.
"""

from __future__ import annotations

import codecs
import json
import math
import re
from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NoReturn

from memstore.errors import InvalidInput
from memstore.ingest.validation import walk_json

from .base import Skipped, printable
from .files import BOM, CHUNK, READ_ERRORS, ByteStream, Part

LONGEST_LINE = 16 * 1024 * 1024  # bytes
PRETTY = "write each message as one JSON object on a line of its own, in UTF-8"
# What one value may have. Real conversations have some megabytes at most; in memory a character takes up to 4 bytes.
LONGEST_VALUE = 64 * 1024 * 1024

# The space that JSON allows between values, and no other.
_SPACE = re.compile(r"[ \t\n\r]*")
_MARKS = re.compile(r'["\\\[\]{}]')
_SCALAR_END = re.compile(r"[,\]\s]")
_NEXT_LINE = re.compile(r"\n(?=[{\[])")
_KEYS = re.compile(rb'"([A-Za-z_0-9]{1,60})"\s*:')
_DECODER = json.JSONDecoder(strict=False)


@dataclass(frozen=True, slots=True)
class Broken:
    """A value that cannot be read, and why."""

    reason: str


def find_keys(head: bytes) -> set[str]:
    """Return the keys of all objects in the beginning of a file: inside a text their quotes would be escaped."""
    return {key.decode() for key in _KEYS.findall(head)}


def numbered_lines(stream: ByteStream, longest: int = LONGEST_LINE) -> Iterator[tuple[int, bytes | None]]:
    """Yield the lines with their numbers from 1, without the file's BOM, and None for one longer than `longest`."""
    number = 0
    while line := stream.readline(longest + 1):
        number += 1
        if number == 1:
            line = line.removeprefix(BOM)
        if len(line) <= longest or line.endswith(b"\n"):
            yield number, line or b"\n"  # a line of nothing but a BOM is a line too
            continue
        while line and not line.endswith(b"\n"):
            line = stream.readline(longest)
        yield number, None


def parse_object(line: bytes) -> dict[str, Any]:
    """Return the JSON object of a line; raise `InvalidInput` for what is none, or has a key twice."""
    try:
        value = _STRICT.decode(line.decode())
    except UnicodeDecodeError as error:
        raise InvalidInput(f"byte {error.start + 1} of the line is not UTF-8; save the file as UTF-8") from None
    except json.JSONDecodeError as error:
        raise InvalidInput(f"it is not JSON ({error.msg}, at character {error.pos + 1}); {PRETTY}") from None
    except RecursionError:
        raise InvalidInput("it is nested too deep; make it flatter") from None
    except ValueError:
        raise InvalidInput("it holds a number of thousands of digits; write it as a text") from None
    if not isinstance(value, dict):
        raise InvalidInput(f"it is not a JSON object; {PRETTY}")
    return value


def _refuse_double_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        twice = next(key for key, count in Counter(key for key, _ in pairs).items() if count > 1)
        raise InvalidInput(f'the key "{printable(twice)}" is given twice; leave the one that is meant')
    return found


def _refuse_constant(constant: str) -> NoReturn:
    raise InvalidInput(f"{constant} is not JSON; write null or a text")


def _finite_float(written: str) -> float:
    number = float(written)
    if not math.isfinite(number):
        raise InvalidInput("it holds a number too large for a float; write it as a text")
    return number


_STRICT = json.JSONDecoder(
    object_pairs_hook=_refuse_double_keys, parse_constant=_refuse_constant, parse_float=_finite_float
)


def numbered_elements(part: Part, unit: str, again: str) -> Iterator[tuple[str, Any] | Skipped]:
    """Yield a list's elements with their places, "conversation 3"; report those that cannot be read, and an early end.

    Bytes that are not UTF-8 come as lone surrogates, for the reader of the text to replace: one bad byte must not cost
    what comes after it.
    """
    number = 0
    try:
        for number, value in enumerate(array_elements(part.stream), 1):
            where = f"{part.where}, {unit} {number}"
            yield Skipped(where, f"{value.reason}; {again}") if isinstance(value, Broken) else (where, value)
    except InvalidInput as error:
        yield Skipped(f"{part.where}, after {unit} {number}", f"{error}; the rest of the file was not read; {again}")


def numbered_values(part: Part, again: str) -> Iterator[tuple[str, Any] | Skipped]:
    """Yield a part's values with their places, "line 3" or "item 3"; report those that cannot be read."""
    place = "its beginning"
    try:
        for place, value in json_values(part.stream):
            where = f"{part.where}, {place}"
            try:
                deque(walk_json(value), maxlen=0)  # Python cannot write back what is nested too deep
            except InvalidInput as error:
                value = Broken(str(error))
            yield Skipped(where, f"{value.reason}; {again}") if isinstance(value, Broken) else (where, value)
    except InvalidInput as error:
        yield Skipped(f"{part.where}, after {place}", f"{error}; the rest of the file was not read; {again}")


def array_elements(stream: ByteStream) -> Iterator[Any]:
    """Yield the elements of a JSON array, `Broken` for one that cannot be read.

    Raises `InvalidInput` where the array ends too early, or where the next element begins cannot be told.
    """
    text = _Window(stream)
    if text.skip_space() != "[":
        raise InvalidInput("it is not a JSON list")
    yield from _elements(text)


def json_values(stream: ByteStream) -> Iterator[tuple[str, Any]]:
    """Yield the elements of an array, or else values that follow one another, such as one a line; with their place.

    Of values that follow one another a broken one costs all up to the next line that begins with a bracket.
    """
    text = _Window(stream)
    if text.skip_space() == "[" and not text.is_first_of_lines():
        for number, element in enumerate(_elements(text), 1):
            yield f"item {number}", element
        return
    while text.skip_space():
        line = text.line
        try:
            value = text.value()
        except InvalidInput as error:
            value = Broken(str(error))
            text.skip_line()
        yield f"line {line}", value


def _elements(text: _Window) -> Iterator[Any]:
    text.go(1)
    mark = text.skip_space()
    while mark != "]":
        text.skip_space()
        try:
            value = text.value()
        except InvalidInput as error:
            value = Broken(str(error))
            text.skip_value(error)
        yield value
        mark = text.skip_space()
        if mark not in (",", "]"):
            raise text.broken("a comma or the list's end was expected" if mark else "the file ends here")
        text.go(mark == ",")
    text.go(1)
    if text.skip_space():
        raise text.broken("the list ended before this; nothing after it was read")


class _Window:
    """The part of a text that is held while its values are read one by one."""

    def __init__(self, stream: ByteStream) -> None:
        self.text = ""
        self.at = 0
        self.line = 1
        self._stream = stream
        self._decode = codecs.getincrementaldecoder("utf-8-sig")("surrogateescape").decode
        self._dropped = 0
        self._failure: InvalidInput | None = None

    def go(self, count: int) -> None:
        self.line += self.text.count("\n", self.at, self.at + count)
        self.at += count

    def skip_space(self) -> str:
        while True:
            space = _SPACE.match(self.text, self.at)
            self.go(space.end() - self.at if space else 0)
            if self.at < len(self.text):
                return self.text[self.at]
            if not self._more():
                return ""

    def is_first_of_lines(self) -> bool:
        """Return whether the list that begins here ends with its line, and another value follows on the next."""
        end = self.text.find("\n", self.at)
        if end < 0 or not self.text[end + 1 :].lstrip(" \t\r\n").startswith(("[", "{")):
            return False
        try:
            return isinstance(json.loads(self.text[self.at : end]), list)
        except (ValueError, RecursionError):
            return False

    def value(self) -> Any:
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
                    self.go(end - self.at)
                    return value

    def skip_value(self, error: InvalidInput) -> None:
        """Go behind the broken value that begins here, holding none of it; raise where its end is not found."""
        if self.text[self.at : self.at + 1] in ("", "]"):
            raise error
        if self.text[self.at] not in '"{[':
            self._skip_to(_SCALAR_END, error)
            return
        depth, quoted = 0, False
        while True:
            mark = self._skip_to(_MARKS, error)
            if mark == "\\":
                # Inside a text, whatever follows is a part of it; elsewhere it is as wrong as all of this is.
                self.go(1)
                self.go(1 if self.at < len(self.text) or self._more() else 0)
                continue
            self.go(1)
            if mark == '"':
                quoted = not quoted
            elif not quoted:
                depth += 1 if mark in "[{" else -1
            if depth <= 0 and not quoted:
                return

    def skip_line(self) -> None:
        while (found := _NEXT_LINE.search(self.text, self.at)) is None:
            # A line's end may be the last that is held.
            self.go(max(len(self.text) - self.at - 1, 0))
            if not self._more():
                self.go(len(self.text) - self.at)
                return
        self.go(found.end() - self.at)

    def broken(self, why: str, at: int | None = None) -> InvalidInput:
        return InvalidInput(f"it breaks at character {self._dropped + (self.at if at is None else at) + 1:,}: {why}")

    def _skip_to(self, wanted: re.Pattern[str], error: InvalidInput) -> str:
        while (found := wanted.search(self.text, self.at)) is None:
            self.go(len(self.text) - self.at)
            if not self._more():
                raise error
        self.go(found.start() - self.at)
        return found[0]

    def _cut(self, error: json.JSONDecodeError) -> bool:
        """Return whether more text could mend it: else a broken file would be read to its end, or to the limit."""
        return error.msg.startswith("Unterminated string") or error.pos >= len(self.text) - len("-Infinity")

    def _more(self) -> bool:
        """Read on, at least as much as is held: so a long value is parsed again few times, however long it is."""
        if self._failure:
            raise self._failure
        if len(self.text) - self.at > LONGEST_VALUE:
            raise self.broken(f"what begins here is larger than {LONGEST_VALUE:,} characters")
        data = self._read(max(CHUNK, len(self.text) - self.at))
        new = self._decode(data, not data)
        if new:
            self.text, self._dropped, self.at = self.text[self.at :] + new, self._dropped + self.at, 0
        # Bytes may come and no character: half of one, or a BOM.
        return bool(data or new)

    def _read(self, size: int) -> bytes:
        """Read so many bytes; where that fails midway, return what came, and fail the next time."""
        data: list[bytes] = []
        try:
            while size > 0 and (piece := self._stream.read1(size)):
                data.append(piece)
                size -= len(piece)
        except READ_ERRORS as error:
            self._failure = InvalidInput(f"the file is cut off or damaged ({printable(str(error), 200)})")
            if not data:
                raise self._failure from error
        return b"".join(data)
