#!/usr/bin/env python3
"""Write the calls and results of docs/reference/python.md, from their docstrings and signatures.

tools/python_reference.py            write it
tools/python_reference.py --check    exit 1 if the page differs
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import memstore
from memstore import models
from memstore._sync.client.admin import Embeddings, Tokens, Webhooks
from memstore._sync.client.backfills import Backfills
from memstore._sync.client.documents import Documents
from memstore.ingest.importers.base import ImportReport

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "python.md"
BEGIN = "<!-- calls: tools/python_reference.py -->\n"
CALLS = {
    "memstore": (memstore.open, memstore.estimate),
    "store": memstore.MemoryStore,
    "store.backfills": Backfills,
    "store.embeddings": Embeddings,
    "store.tokens": Tokens,
    "store.webhooks": Webhooks,
    "user": memstore.UserScope,
    "user.documents()": Documents,
    "conversation": memstore.ConversationScope,
}
RESULTS = (
    *(models.Message, models.Hit, models.Fact, models.FactChange, models.Entity, models.Profile, models.Summary),
    *(models.Conversation, models.Context, models.Receipt, models.Replay, models.Document, models.Section),
    *(models.DeriveReport, ImportReport, models.ExportReport, models.Certificate, models.ScanResult),
    *(models.BackfillPlan, models.BackfillStatus, models.Usage, models.Event, models.InvalidResponse),
)


def describe() -> Iterator[str]:
    """Return the lines of the generated part."""
    for name, owner in CALLS.items():
        yield from ["", f"## {'Functions' if name == 'memstore' else f'`{name}`'}", ""]
        if isinstance(owner, type):
            yield from _paragraphs(owner)
        for call, member, is_property in _members(owner):
            signature = "" if is_property else _signature(member)
            yield from [f"### `{name}.{call}{signature}`", "", *_paragraphs(member)]
    yield from ["", "## Results", "", "| class | fields | |", "|---|---|---|"]
    for model in RESULTS:
        about = next(_paragraphs(model), "").replace("|", "\\|")
        yield f"| `{model.__name__}` | {', '.join(f'`{name}`' for name in _fields(model))} | {about} |"


def _members(owner: Any) -> Iterator[tuple[str, Any, bool]]:
    """Return the public calls of a class by name, in the order of their source, and whether each is a property."""
    if isinstance(owner, tuple):
        yield from ((function.__name__, function, False) for function in owner)
        return
    for part in owner.__mro__[:-1]:
        for name, member in vars(part).items():
            if not name.startswith("_") and name != "open":
                is_property = isinstance(member, property)
                yield name, member.fget if isinstance(member, property) else getattr(owner, name), is_property


def _signature(function: Callable[..., Any]) -> str:
    """Return the parameters without their types, long defaults as "…", and what is returned."""
    signature = inspect.signature(function)
    parts: list[str] = []
    for parameter in signature.parameters.values():
        if parameter.name == "self":
            continue
        if parameter.kind is parameter.KEYWORD_ONLY and not any(part.startswith("*") for part in parts):
            parts.append("*")
        stars = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")
        default = "" if parameter.default is parameter.empty else repr(parameter.default)
        parts.append(f"{stars}{parameter.name}" + (f"={default if len(default) < 15 else '…'}" if default else ""))
    returned = str(signature.return_annotation).strip("'").replace("Self", "MemoryStore")
    return f"({', '.join(parts)})" + ("" if returned == "None" else f" → {returned}")


def _fields(model: type) -> list[str]:
    names = [field.name for field in fields(model)] if is_dataclass(model) else [*getattr(model, "model_fields", ())]
    names += [name for name, value in vars(model).items() if isinstance(value, property)]
    return [name for name in names if not name.startswith("_")]


def _paragraphs(value: Any) -> Iterator[str]:
    """Return the paragraphs of a docstring as Markdown, each with an empty line after it."""
    for paragraph in (inspect.getdoc(value) or "").split("\n\n"):
        if not paragraph.startswith(">>>"):
            text = re.sub(r"docs/reference/([\w-]+)\.md", r"[\1](\1.md)", " ".join(paragraph.split()))
            yield from [text, ""]


def main() -> int:
    """Write or check the page."""
    page = PAGE.read_text(encoding="utf-8")
    new = re.sub(r"\n{3,}", "\n\n", page.partition(BEGIN)[0] + BEGIN + "\n".join(describe())) + "\n"
    if "--check" in sys.argv:
        return int(new != page)
    PAGE.write_text(new, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
