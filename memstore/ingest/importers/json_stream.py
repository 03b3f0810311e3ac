"""Long files of JSON in bounded memory: line by line, or value by value.

A line that is broken costs itself; where a list breaks, what stood before has come, and the rest is not read.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from memstore.errors import InvalidInput

from .base import Skipped, report_damage
from .files import BOM, CHUNK, READ_ERRORS, Part

T = TypeVar("T")

LONGEST_LINE = 16 * 1024 * 1024  # bytes
PRETTY = "write each message as one JSON object on a line of its own, in UTF-8"
# What one value may have. Real conversations have some megabytes at most; in memory a character takes up to 4 bytes.
LONGEST_VALUE = 64 * 1024 * 1024

# The space that JSON allows between values, and no other.
_SPACE = re.compile(r"[ \t\n\r]*")
_NEXT_LINE = re.compile(r"\n(?=[{\[])")
_KEYS = re.compile(rb'"([A-Za-z_0-9]{1,60})"\s*:')
_DECODER = json.JSONDecoder(strict=False)


def find_keys(head: bytes) -> set[str]:
    """Return the keys of all objects in the beginning of a file: inside a text their quotes would be escaped."""
    return {key.decode() for key in _KEYS.findall(head)}


def numbered_lines(readline: Callable[[int], bytes], longest: int = LONGEST_LINE) -> Iterator[tuple[int, bytes | None]]:
    """Yield the lines with their numbers from 1, without the file's BOM, and None for one longer than `longest`."""
    number = 0
    while line := readline(longest + 1):
        number += 1
        if number == 1:
            line = line.removeprefix(BOM)
        if len(line) <= longest or line.endswith(b"\n"):
            yield number, line or b"\n"  # a line of nothing but a BOM is a line too
            continue
        while line and not line.endswith(b"\n"):
            line = readline(longest)
        yield number, None


def parse_object(line: bytes) -> dict[str, Any]:
    """Return the JSON object of a line; raise `InvalidInput` for what is none."""
    try:
        value = json.loads(line.decode())
    except UnicodeDecodeError as error:
        raise InvalidInput(f"byte {error.start + 1} of the line is not UTF-8; save the file as UTF-8") from None
    except json.JSONDecodeError as error:
        raise InvalidInput(f"it is not JSON ({error.msg}, at character {error.pos + 1}); {PRETTY}") from None
    except (RecursionError, ValueError):
        raise InvalidInput("it is nested too deep, or a number in it is too long; write it as a text") from None
    if not isinstance(value, dict):
        raise InvalidInput(f"it is not a JSON object; {PRETTY}")
    return value


def numbered_values(part: Part, unit: str, again: str) -> Iterator[tuple[str, Any] | Skipped]:
    """Yield the elements of a list, or else values that follow one another, such as one a line, with their places.

    Bytes that are not UTF-8 come as lone surrogates, for the reader of the text to replace: one bad byte must not cost
    what comes after it.
    """
    text, number, in_list = _Window(part), 0, False
    while mark := text.skip_space():
        if (mark == "[" and not in_list) or (mark in ",]" and in_list):
            text.go(1)
            in_list = mark != "]"
            continue
        number += 1
        where = f"{part.where}, {unit} {number}" if in_list else f"{part.where}, line {text.line}"
        try:
            value = text.value()
        except InvalidInput as error:
            if in_list:
                yield Skipped(where, f"{error}; the rest of the file was not read; {again}")
                return
            yield Skipped(where, f"{error}; {again}")
            text.skip_line()
        else:
            yield where, value
    if in_list:
        yield Skipped(f"{part.where}, after {unit} {number}", f"the file ends in the middle; {again}")


def convert_values(
    part: Part, unit: str, again: str, convert: Callable[[Any, str], Iterator[T]]
) -> Iterator[T | Skipped]:
    """Yield what `convert` makes of each value and its place; report what cannot be read."""
    for one in numbered_values(part, unit, again):
        if isinstance(one, Skipped):
            yield one
        else:
            yield from report_damage(convert(one[1], one[0]), one[0], again)


class _Window:
    """The part of a text that is held while its values are read one by one."""

    def __init__(self, part: Part) -> None:
        self.text = ""
        self.at = 0
        self.line = 1
        self._stream = part.stream
        self._decode = codecs.getincrementaldecoder("utf-8-sig")("surrogateescape").decode
        self._dropped = 0

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

    def value(self) -> Any:
        while True:
            try:
                value, end = _DECODER.raw_decode(self.text, self.at)
            except json.JSONDecodeError as error:
                # Only what breaks at the end of what is held can be mended by more of it.
                cut = error.msg.startswith("Unterminated string") or error.pos >= len(self.text) - len("-Infinity")
                if not (cut and self._more()):
                    raise self._broken(error.msg, error.pos) from None
            except (RecursionError, ValueError):
                raise self._broken("what begins here is nested too deep, or a number in it is too long") from None
            else:
                # Only a number can go on behind what is held: what is left of it then is "e+" at most.
                if len(self.text) - end > 2 or self.text[end - 1] in '}]"' or not self._more():
                    self.go(end - self.at)
                    return value

    def skip_line(self) -> None:
        """Go to the next line that begins with a bracket."""
        while (found := _NEXT_LINE.search(self.text, self.at)) is None:
            self.go(max(len(self.text) - self.at - 1, 0))  # a line's end may be the last that is held
            if not self._more():
                self.go(len(self.text) - self.at)
                return
        self.go(found.end() - self.at)

    def _broken(self, why: str, at: int | None = None) -> InvalidInput:
        return InvalidInput(f"it breaks at character {self._dropped + (self.at if at is None else at) + 1:,}: {why}")

    def _more(self) -> bool:
        """Read on, at least as much as is held: so a long value is parsed again few times, however long it is."""
        wanted = max(CHUNK, len(self.text) - self.at)
        if wanted > LONGEST_VALUE:
            raise self._broken(f"what begins here is larger than {LONGEST_VALUE:,} characters")
        pieces: list[bytes] = []
        try:
            while wanted > 0 and (piece := self._stream.read1(wanted)):
                pieces.append(piece)
                wanted -= len(piece)
        except READ_ERRORS:
            if not pieces:  # else what came is read first; the next reading fails again
                raise
        data = b"".join(pieces)
        new = self._decode(data, not data)
        if new:
            self.text, self._dropped, self.at = self.text[self.at :] + new, self._dropped + self.at, 0
        # Bytes may come and no character: half of one, or a BOM.
        return bool(data or new)
