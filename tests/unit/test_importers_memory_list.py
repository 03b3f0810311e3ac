"""Lists of memories, as assistants write them for the prompt by which people take theirs along."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from memstore.ingest.importers import importer_for
from memstore.ingest.importers.memory_list import MemoryList
from tests.unit.importing import Samples, reasons, records

# Written by a language model for this purpose, in the form of the prompts that Claude and Gemini publish.
LIST = """\
```
## Instructions
[2025-03-02] - Always answer in German, and keep it short
## Identity
[unknown] - User's name is Tilda Brandt
[2024-11] - User is allergic to walnuts
## Projects
- [2025-06-30] Moves the choir's website to a static generator
```
"""
SAMPLES: Samples = {"memories": ("my-memories.md", b"## Preferences\n[2025-03-02] - hello\n")}


def read(path: Path, text: str) -> list[tuple[str, str, datetime | None]]:
    path.write_text(text, encoding="utf-8")
    return [
        (one.message["content"], one.message["metadata"]["imported_memory"], one.message.get("occurred_at"))
        for one in records(MemoryList(path).read())
    ]


def test_each_line_is_a_memory_with_its_date_the_earliest_first(tmp_path: Path) -> None:
    path = tmp_path / "memories.md"
    assert read(path, LIST) == [
        ("User is allergic to walnuts", "saved memory", datetime(2024, 11, 1, 12, tzinfo=UTC)),
        ("Always answer in German, and keep it short", "instructions", datetime(2025, 3, 2, 12, tzinfo=UTC)),
        ("Moves the choir's website to a static generator", "saved memory", datetime(2025, 6, 30, 12, tzinfo=UTC)),
        ("User's name is Tilda Brandt", "saved memory", None),
    ]
    assert importer_for(path) is MemoryList
    assert importer_for(path.rename(tmp_path / "from gemini.txt")) is MemoryList


def test_any_list_of_lines_is_one_where_the_format_is_named(tmp_path: Path) -> None:
    path = tmp_path / "list.txt"
    assert [text for text, _, _ in read(path, "Likes rye bread\n\n* Has a dog, Bo\n2) Lives in Ghent\n---\n")] == [
        "Likes rye bread",
        "Has a dog, Bo",
        "Lives in Ghent",
    ]
    assert importer_for(path, "memories") is MemoryList


def test_a_day_that_is_none_is_told_and_the_others_are_read(tmp_path: Path) -> None:
    path = tmp_path / "memories.md"
    path.write_text("[2025-02-30] - Was in Oslo\n[2025-02-28] - Was in Bergen\n")
    found = list(MemoryList(path).read())
    assert [one.message["content"] for one in records(found)] == ["Was in Bergen"]
    (reason,) = reasons(found)
    assert "day is out of range" in reason


@pytest.mark.parametrize(
    "text", ["# Notes\n\nA page about [2024-05-01] and more.\n", "[x] bought milk\n[ ] call Ann\n", ""]
)
def test_other_texts_are_no_lists(tmp_path: Path, text: str) -> None:
    path = tmp_path / "notes.md"
    path.write_text(text)
    assert not MemoryList.sniff(path)
