"""A list of memories, as Claude and Gemini write it for the prompt by which people take their memories along.

    ## Preferences
    [2025-03-02] - Prefers answers in German          [unknown] - Has two cats

Each line is a memory, whatever marks its beginning. With `--format memories` lines need no dates.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from memstore.models import ImportedMemory

from .base import Importer, ImportItem
from .files import MAX_LINE_BYTES, ImportProblem, OpenFile, is_single, numbered_lines, open_files, read_start
from .memories import SavedMemories

_ENTRY = re.compile(
    r"\s*(?:[-*+•]|\d+[.)])?\s*\[(?P<date>\d{4}(?:-\d\d(?:-\d\d)?)?|unknown|unbekannt|n/?a|no date)\]"
    r"[\s:–—-]*(?P<text>.*\S)",
    re.IGNORECASE,
)
_HEADING = re.compile(r"\s*(?:#+\s*|\*\*|__)(?P<title>.*?)[\s:*_#]*$")


class MemoryList(Importer):
    name = "memories"
    advice = "save the list as a text file, one memory a line"
    files = ("*memor*.md", "*memor*.txt")

    @classmethod
    def sniff(cls, path: Path) -> bool:
        """Return whether a file has dated entries, two of three lines or more that are no headings."""
        if not is_single(path):
            return False
        return any(_is_list(read_start(file).decode("utf-8", "replace")) for file in open_files(path, cls.files))

    def read_file(self, file: OpenFile) -> Iterator[ImportItem]:
        memories, kind = SavedMemories("imported"), _kind_of("")
        for number, line in numbered_lines(file.stream.readline, MAX_LINE_BYTES):
            where = f"{file.where}, line {number}"
            if line is None:
                yield ImportProblem(where, f"the line is longer than {MAX_LINE_BYTES:,} bytes; {self.advice}")
                continue
            text = line.decode("utf-8-sig", "replace").rstrip()
            try:
                if entry := _ENTRY.fullmatch(text):
                    memories.add(entry["text"], kind, where, _time_of(entry["date"]))
                elif heading := _HEADING.fullmatch(text):
                    kind = _kind_of(heading["title"])
                elif not _is_empty(text):
                    memories.add(text.strip().lstrip("-*+•0123456789.) "), kind, where, None)
            except ValueError as error:
                yield ImportProblem(where, f"it has no day of a calendar: {error}; {self.advice}")
        yield from memories.by_time()


def _is_list(text: str) -> bool:
    lines = [line for line in text.splitlines() if not _is_empty(line) and not _HEADING.fullmatch(line)]
    return 3 * sum(_ENTRY.fullmatch(line) is not None for line in lines) >= 2 * max(len(lines), 1)


def _kind_of(title: str) -> ImportedMemory:
    rules = ("instructions", "anweisungen", "rules")
    return "instructions" if any(word in title.casefold() for word in rules) else "saved memory"


def _is_empty(line: str) -> bool:
    """Whether a line is blank, a rule, or the fence of a block of code."""
    return line.lstrip().startswith(("```", "~~~")) or not line.strip("-*_=> \t")


def _time_of(date: str) -> datetime | None:
    """Return the noon of a day, of a month's or a year's first one; None of a date that nobody knows."""
    if not date[0].isdigit():
        return None
    year, month, day = [*map(int, date.split("-")), 1, 1][:3]
    return datetime(year, month, day, 12, tzinfo=UTC)
