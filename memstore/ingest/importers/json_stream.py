"""JSON that is longer than memory, value by value: the elements of one list, or values that follow one another.

A value that is broken costs itself: the reader goes on behind it, where it can tell where that is.
"""

from __future__ import annotations

import codecs
import json
import re
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from memstore.errors import InvalidInput

from .files import CHUNK, READ_ERRORS, ByteStream, Part
from .records import Skipped, shown, within

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


def keys_in(head: bytes) -> set[str]:
    """Give the keys of all objects in the beginning of a file: inside a text their quotes would be escaped."""
    return {key.decode() for key in _KEYS.findall(head)}


def array_elements(stream: ByteStream, limit: int | None = None) -> Iterator[Any]:
    """Give the elements of a file that is one JSON array, each when it is whole, `Broken` for one that cannot be read.

    InvalidInput where the array ends too early or what follows cannot be told. `limit` is on the characters of one
    element. Bytes that are not UTF-8 come as lone surrogates, for the reader of the text to replace: one bad byte must
    not cost what comes after it.
    """
    text = _Window(stream, limit)
    if text.skip_space() != "[":
        raise InvalidInput("it is not a JSON list")
    yield from _elements(text)


def numbered_elements(part: Part, unit: str, again: str) -> Iterator[tuple[str, Any] | Skipped]:
    """Give a part's elements with their places, "conversation 3"; those that cannot be read, and an early end, told."""
    number = 0
    try:
        for number, given in enumerate(array_elements(part.stream), 1):
            place = f"{part.where}, {unit} {number}"
            yield Skipped(place, f"{given.reason}; {again}") if isinstance(given, Broken) else (place, given)
    except InvalidInput as error:
        yield Skipped(f"{part.where}, after {unit} {number}", f"{error}; the rest of the file was not read; {again}")


def numbered_values(part: Part, again: str) -> Iterator[tuple[str, Any] | Skipped]:
    """Give a part's values with their places, "line 3" or "item 3"; one that cannot be read is told, as is an end."""
    place = "its beginning"
    try:
        for place, given in json_values(part.stream):
            where = f"{part.where}, {place}"
            given = _flat(given)
            yield Skipped(where, f"{given.reason}; {again}") if isinstance(given, Broken) else (where, given)
    except InvalidInput as error:
        yield Skipped(f"{part.where}, after {place}", f"{error}; the rest of the file was not read; {again}")


def _flat(given: Any) -> Any:
    """Give a value that Python can write back, which it cannot when it is nested too deep."""
    try:
        deque(within(given), maxlen=0)
    except InvalidInput as error:
        return Broken(str(error))
    return given


def json_values(stream: ByteStream, limit: int | None = None) -> Iterator[tuple[str, Any]]:
    """Give the elements of an array, or else the values that follow one another, such as one a line; with their place.

    Of values that follow one another a broken one costs all up to the next line that begins with a bracket.
    """
    text = _Window(stream, limit)
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

    def __init__(self, stream: ByteStream, limit: int | None) -> None:
        self.text = ""
        self.at = 0
        self.line = 1
        self._stream = stream
        self._limit = LONGEST_VALUE if limit is None else limit
        self._decode = codecs.getincrementaldecoder("utf-8-sig")("surrogateescape").decode
        self._dropped = 0
        self._failure: InvalidInput | None = None

    def go(self, count: int) -> None:
        """Go so many characters on."""
        self.line += self.text.count("\n", self.at, self.at + count)
        self.at += count

    def skip_space(self) -> str:
        """Go to the next character that is not space, and give it; at the end, nothing."""
        while True:
            space = _SPACE.match(self.text, self.at)
            self.go(space.end() - self.at if space else 0)
            if self.at < len(self.text):
                return self.text[self.at]
            if not self._more():
                return ""

    def is_first_of_lines(self) -> bool:
        """Whether the list that begins here ends with its line, and another value follows on the next."""
        end = self.text.find("\n", self.at)
        if end < 0 or not self.text[end + 1 :].lstrip(" \t\r\n").startswith(("[", "{")):
            return False
        try:
            return isinstance(json.loads(self.text[self.at : end]), list)
        except (ValueError, RecursionError):
            return False

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
                    self.go(end - self.at)
                    return value

    def skip_value(self, error: InvalidInput) -> None:
        """Go behind the broken value that begins here, holding none of it; where that is not to be found, raise."""
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
        """Go to the next line that begins with a bracket, or to the end, holding nothing of what is between."""
        while (found := _NEXT_LINE.search(self.text, self.at)) is None:
            # A line's end may be the last that is held.
            self.go(max(len(self.text) - self.at - 1, 0))
            if not self._more():
                self.go(len(self.text) - self.at)
                return
        self.go(found.end() - self.at)

    def broken(self, why: str, at: int | None = None) -> InvalidInput:
        """Say where the text stops making sense."""
        return InvalidInput(f"it breaks at character {self._dropped + (self.at if at is None else at) + 1:,}: {why}")

    def _skip_to(self, wanted: re.Pattern[str], error: InvalidInput) -> str:
        """Go to the next of these characters and give it; where the text ends before, raise the error."""
        while (found := wanted.search(self.text, self.at)) is None:
            self.go(len(self.text) - self.at)
            if not self._more():
                raise error
        self.go(found.start() - self.at)
        return found[0]

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
