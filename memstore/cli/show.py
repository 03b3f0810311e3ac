"""What people and programs are shown: JSON, tables, progress bars, the token meter."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, is_dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any
from uuid import UUID

import typer
from pydantic import BaseModel
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

import memstore

if TYPE_CHECKING:
    from memstore import MemoryStore
    from memstore.models import Context, Receipt

COLOURS = {
    "system": "white",
    "summaries": "magenta",
    "recent": "blue",
    "facts": "green",
    "hits": "cyan",
    "question": "yellow",
    "overhead": "bright_black",
}

JsonFlag = Annotated[bool, typer.Option("--json", help="Print JSON to stdout.")]
DatabaseOption = Annotated[
    str | None,
    typer.Option("--database", "-d", help="embedded, embedded:FOLDER or postgresql://… [env: MEMSTORE_DATABASE_URL]"),
]

out = Console(highlight=False, soft_wrap=True)
err = Console(stderr=True, highlight=False, soft_wrap=True)


def print_json(value: object) -> None:
    """Print a value as one JSON document."""
    sys.stdout.write(json.dumps(plain(value), ensure_ascii=False, indent=2) + "\n")


def plain(value: Any) -> Any:
    """Give a value of memstore's as JSON has it."""
    if isinstance(value, BaseModel):
        return plain({name: getattr(value, name) for name in type(value).model_fields})
    if is_dataclass(value) and not isinstance(value, type):
        return plain(asdict(value))
    if isinstance(value, Mapping):
        return {str(key): plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(one) for one in value]
    return value.isoformat() if isinstance(value, datetime) else str(value) if isinstance(value, UUID) else value


@contextmanager
def opened(database: str | None, **settings: Any) -> Iterator[MemoryStore]:
    """Open the store that the command is about."""
    with memstore.open(database, settings=settings) as store:
        yield store


@contextmanager
def progress(quiet: bool) -> Iterator[Callable[[str, int, int | None], None]]:
    """Show bars on stderr where that is a terminal; give what moves them: name, done, total."""
    columns = [TextColumn("{task.description:<10}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()]
    with Progress(*columns, console=err, transient=True, disable=quiet or not err.is_terminal) as bars:
        tasks: dict[str, Any] = {}

        def move(name: str, done: int, total: int | None) -> None:
            if name not in tasks:
                tasks[name] = bars.add_task(name, total=total)
            bars.update(tasks[name], completed=done, total=total)

        yield move


def table(title: str, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print rows for people; on a pipe as they are, a line each."""
    if not out.is_terminal:
        for row in rows:
            out.print("\t".join(str(cell) for cell in row), markup=False)
        return
    shown = Table(*columns, title=title, title_justify="left")
    for row in rows:
        shown.add_row(*(escape(str(cell)) for cell in row))
    out.print(shown)


def meter(receipt: Receipt, width: int = 60) -> Text:
    """Give the budget as a coloured bar with its sections' tokens below."""
    bar = Text()
    for section, tokens in receipt.sections.items():
        bar.append("█" * round(width * tokens / receipt.budget), style=COLOURS.get(section, "white"))
    bar.append("·" * max(0, width - len(bar)), style="bright_black")
    bar.append(f"  {receipt.tokens:,} of {receipt.budget:,} tokens\n")
    for section, tokens in receipt.sections.items():
        bar.append(f"■ {section} {tokens:,}  ", style=COLOURS.get(section, "white"))
    return bar


def chat(context: Context) -> None:
    """Print a context's messages for people."""
    for message in context.messages:
        out.print(Text(f"── {message['role']} ", style="bold"))
        content = message.get("content")
        shown = content if isinstance(content, str) else json.dumps(plain(message), ensure_ascii=False)
        out.print(shown, markup=False)
