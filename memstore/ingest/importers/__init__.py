"""Histories from elsewhere, read into the pivot's words: an importer to a format, found by looking at the file.

Importers only read: what they give is stored by whoever asked, and what they cannot read they name and pass by.

    file, zip, folder → files (opened, bounded) → lines | json_stream → one format a module → records
    what several need: trees, content, chat_message, html_text, local_times, made_ids, scratch
"""

from __future__ import annotations

from pathlib import Path

from memstore.errors import InvalidInput

from .chatgpt import ChatGPT
from .claude import Claude
from .files import check_file, size_of
from .gemini import Gemini
from .jsonl import JsonLines
from .langchain import LangChain
from .openai import OpenAI
from .reading import Reading
from .records import Found, Imported, Importer, LeftOut, Record, Skipped, Span, shown
from .sharegpt import ShareGPT
from .slack import Slack
from .whatsapp import WhatsApp

__all__ = [
    "IMPORTERS",
    "Found",
    "Imported",
    "Importer",
    "LeftOut",
    "Reading",
    "Record",
    "Skipped",
    "Span",
    "importer_for",
    "size_of",
]

IMPORTERS: tuple[Importer, ...] = (
    JsonLines(),
    ChatGPT(),
    Claude(),
    Gemini(),
    OpenAI(),
    ShareGPT(),
    LangChain(),
    Slack(),
    WhatsApp(),
)


def importer_for(path: Path, format: str = "auto") -> Importer:
    """Give the importer of this name, or for "auto" the one that the file or folder looks most like."""
    known = {importer.name: importer for importer in IMPORTERS}
    names = ", ".join(known)
    if format != "auto" and format not in known:
        raise InvalidInput(f"the format {shown(format)} is not known; known are: auto, {names}")
    check_file(path)
    if format != "auto":
        return known[format]
    likeness, best = max(((importer.sniff(path), importer) for importer in IMPORTERS), key=lambda pair: pair[0])
    if likeness > 0:
        return best
    if path.is_dir():
        raise InvalidInput(f"{shown(path.name)} is no folder of a known export; name the files in it")
    raise InvalidInput(f"{shown(path.name)} looks like none of the known formats ({names}); name the one it is in")
