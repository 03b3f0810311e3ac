"""`conversations.json`, as ChatGPT and Claude both export it: conversations in a list, zipped, in a folder or bare."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

from .files import Part, read_parts
from .json_stream import numbered_elements
from .reading import Reading
from .records import Found, Skipped

# One file, or from some size on several: `conversations-000.json`, …
MEMBER = re.compile(r"(?!__MACOSX/)(?:.*/)?conversations(?:[-_]?[0-9]{1,9})?\.json")

# Reads one conversation: as it was given, the file's name and its place there, to report, and whether all branches.
OfConversation = Callable[[object, str, str, bool], Iterator[Found]]


def read_conversations(path: Path, reading: Reading, of: OfConversation, again: str) -> Iterator[Found]:
    """Give what `of` finds in each conversation of an export, and what could not be read of it."""

    def part(opened: Part) -> Iterator[Found]:
        for one in numbered_elements(opened, "conversation", again):
            if isinstance(one, Skipped):
                yield one
            else:
                yield from of(one[1], opened.where, one[0], reading.all_branches)

    return read_parts(path, MEMBER, reading, part, again)
