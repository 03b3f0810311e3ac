"""Importers of histories from elsewhere: one module a format, found by looking at the file.

    file, zip, folder → files (opened, bounded) → json_stream → one format a module → records (base)
    for several: message_tree (branches), chat_messages (parts, tool calls)

Importers only read. How to write one stands in `base`.
"""

from __future__ import annotations

from pathlib import Path

from memstore.errors import InvalidInput

from .base import (
    ERASED as ERASED,
    MOST_NAMED as MOST_NAMED,
    Found as Found,
    Ignored as Ignored,
    Imported as Imported,
    Importer,
    ImportOptions as ImportOptions,
    Record as Record,
    Skipped as Skipped,
    Span as Span,
    parse_options as parse_options,
    printable,
)
from .chatgpt import CHATGPT
from .claude import CLAUDE
from .files import check_file, is_zip, list_names, size_of as size_of
from .gemini import GEMINI
from .jsonl import JSONL
from .langchain import LANGCHAIN
from .openai import OPENAI, SHAREGPT
from .slack import SLACK
from .whatsapp import WHATSAPP

IMPORTERS = (JSONL, CHATGPT, CLAUDE, GEMINI, OPENAI, SHAREGPT, LANGCHAIN, SLACK, WHATSAPP)


def importer_for(path: Path, format: str = "auto") -> Importer:
    """Return the importer of this name, or for "auto" the one that the file or folder looks most like."""
    known = {importer.name: importer for importer in IMPORTERS}
    names = ", ".join(known)
    if format != "auto" and format not in known:
        raise InvalidInput(f"the format {printable(format)} is not known; known are: auto, {names}")
    check_file(path)
    if format != "auto":
        return known[format]
    if is_zip(path) and not list_names(path):
        raise InvalidInput(f"{printable(path.name)} is a zip that is empty, cut off or damaged; get it whole")
    likeness, best = max(((importer.sniff(path), importer) for importer in IMPORTERS), key=lambda pair: pair[0])
    if likeness > 0:
        return best
    if path.is_dir():
        raise InvalidInput(f"{printable(path.name)} is no folder of a known export; name the files in it")
    raise InvalidInput(f"{printable(path.name)} looks like none of the known formats ({names}); name the one it is in")
