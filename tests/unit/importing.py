"""What the tests of importers share: what was found, by its kind, and JSON that is not as a format has it.

A module with the tests of a format has samples of it: `SAMPLES`, by the format's name with more words behind it, the
name of a file and what it holds, as JSON or as bytes. In `.jsonl` a list is a value a line.
"""

import io
import json
import zipfile
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, settings, strategies as st

from memstore.ingest.importers import IgnoredContent, ImportItem, ImportOptions, ImportProblem, Record
from memstore.ingest.importers.base import Importer

ALWAYS = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)

any_text = st.text(st.characters(exclude_categories=()), max_size=3)
KEYS = ["a", "parent", "message", "messages", "parts", "text", "content", "id", "type", "role", "name", "tool_calls"]
junk: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | any_text | st.sampled_from(["a", "b", "user", "human"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=3),
    max_leaves=6,
)


Samples = dict[str, tuple[str, Any]]


def read_file(importer: type[Importer], path: Path, content: Any, **how: Any) -> list[ImportItem]:
    """Write a file, and read it: bytes and texts as they are, anything else as JSON."""
    text = content if isinstance(content, bytes | str) else json.dumps(content)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return list(importer(path, ImportOptions(**how)).read())


def records(found: Iterable[ImportItem]) -> list[Record]:
    return [one for one in found if isinstance(one, Record)]


def texts(found: Iterable[ImportItem]) -> list[Any]:
    return [one.message["content"] for one in records(found)]


def reasons(found: Iterable[ImportItem]) -> list[str]:
    return [one.reason for one in found if isinstance(one, ImportProblem)]


def ignored(found: Iterable[ImportItem]) -> Counter[str]:
    counts: Counter[str] = Counter()
    for one in found:
        if isinstance(one, IgnoredContent):
            counts[one.what] += one.count
    return counts


def zipped(files: dict[str, bytes | str], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return buffer.getvalue()
