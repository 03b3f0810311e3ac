"""Long files line by line: a line is given with its number, and one that is too long to hold is passed by."""

from __future__ import annotations

from collections.abc import Iterator

from .files import BOM, ByteStream

LONGEST_LINE = 16 * 1024 * 1024  # bytes


def numbered_lines(stream: ByteStream, longest: int = LONGEST_LINE) -> Iterator[tuple[int, bytes | None]]:
    """Give the lines with their numbers from 1, without the file's BOM, and None for one longer than `longest`."""
    number = 0
    while line := stream.readline(longest + 1):
        number += 1
        if number == 1:
            line = line.removeprefix(BOM)
        if len(line) <= longest or line.endswith(b"\n"):
            # A line of nothing but a BOM is a line too.
            yield number, line or b"\n"
            continue
        while line and not line.endswith(b"\n"):
            line = stream.readline(longest)
        yield number, None
