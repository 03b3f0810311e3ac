"""Importers of histories from elsewhere: one module a format, found by looking at the file.

    file, zip, folder → files (opened, bounded; lines, JSON values) → one format a module → records (base)

Importers only read. How to write one stands in `base`; then list it here.
"""

from __future__ import annotations

from pathlib import Path

from memstore.errors import InvalidInput

from .base import (
    IgnoredContent as IgnoredContent,
    Importer,
    ImportItem as ImportItem,
    ImportOptions as ImportOptions,
    ImportReport as ImportReport,
    OptionMissing as OptionMissing,
    Record as Record,
    parse_options as parse_options,
)
from .chatgpt import ChatGPT
from .claude import Claude
from .coding_agents import ClaudeCode, Codex
from .files import ImportProblem as ImportProblem, check_file, find_damage, printable
from .gemini import Gemini
from .jsonl import Jsonl
from .langchain import LangChain
from .memory_list import MemoryList
from .openai import OpenAIChats
from .slack import Slack
from .telegram import Telegram
from .whatsapp import WhatsApp

# The first that recognizes a file reads it. Telegram comes first: its file is one value, which others would read whole
# to recognize it.
IMPORTERS = (
    Telegram,
    Jsonl,
    ChatGPT,
    Claude,
    ClaudeCode,
    Codex,
    Gemini,
    OpenAIChats,
    LangChain,
    MemoryList,
    Slack,
    WhatsApp,
)


def importer_for(path: Path, format: str = "auto") -> type[Importer]:
    importers: dict[str, type[Importer]] = {importer.name: importer for importer in IMPORTERS}
    names = ", ".join(map(_describe, IMPORTERS))
    if format != "auto" and format not in importers:
        raise InvalidInput(f"the format {printable(format)} is not known; known are: auto, {names}")
    check_file(path)
    if format != "auto":
        return importers[format]
    for importer in IMPORTERS:
        if importer.sniff(path):
            return importer
    file = printable(path.name)
    if damage := find_damage(path):
        raise InvalidInput(f"{file} {damage}; get it whole")
    if path.is_dir():
        raise InvalidInput(f"{file} is no folder of a known export; name the files in it, or its format with --format")
    raise InvalidInput(f"{file} looks like none of the known formats ({names}); name the one it is in with --format")


def _describe(importer: type[Importer]) -> str:
    options = ", ".join(f"--{name.replace('_', '-')}" for name in importer.option_names)
    return f"{importer.name} ({options})" if options else importer.name
