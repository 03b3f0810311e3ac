"""Histories from elsewhere, read into the pivot's words: an importer to a format, found by looking at the file.

Importers only read: what they give is stored by whoever asked, and what they cannot read they name and pass by.
"""

from __future__ import annotations

from pathlib import Path

from memstore.errors import InvalidInput

from .chatgpt import ChatGPT
from .files import check_file
from .jsonl import JsonLines
from .records import Imported, Importer, Record, Skipped, shown

__all__ = ["IMPORTERS", "Imported", "Importer", "Record", "Skipped", "importer_for"]

IMPORTERS: tuple[Importer, ...] = (JsonLines(), ChatGPT())


def importer_for(path: Path, format: str = "auto") -> Importer:
    """Give the importer of this name, or for "auto" the one that the file looks most like."""
    known = {importer.name: importer for importer in IMPORTERS}
    names = ", ".join(known)
    if format != "auto" and format not in known:
        raise InvalidInput(f"the format {shown(format)} is not known; known are: auto, {names}")
    check_file(path)
    if format != "auto":
        return known[format]
    likeness, best = max(((importer.sniff(path), importer) for importer in IMPORTERS), key=lambda pair: pair[0])
    if likeness <= 0:
        raise InvalidInput(f"{shown(path.name)} looks like none of the known formats ({names}); name the one it is in")
    return best
