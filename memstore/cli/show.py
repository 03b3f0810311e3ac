"""What people and programs are shown: JSON, tables, progress bars, the token meter.

Whatever was stored is shown as text: it may hold escape sequences, and rich's own markup.
"""

from __future__ import annotations

import io
import json
import logging
import os
import re
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import UUID

from rich.console import Console
from rich.text import Text

from memstore.plain import plain

if TYPE_CHECKING:
    from rich.table import Table

    from memstore.models import Context, Json, Receipt, Replay

COLOURS = {
    "system": "white",
    "summaries": "magenta",
    "recent": "blue",
    "facts": "green",
    "hits": "cyan",
    "question": "yellow",
    "tools": "bright_magenta",
    "overhead": "bright_black",
}
ROLES = {"system": "magenta", "developer": "magenta", "user": "yellow", "assistant": "blue", "tool": "cyan"}
NARROW = 72  # columns; on a smaller terminal a table's text is a column of single words
CELL = 24  # columns at most for what stands beside a row's text
WHOLE = ("id",)  # but for these columns, which are copied
METER = 60
SHORT = 8  # digits of an id

# What a terminal obeys (C0 but tab and newline, DEL, C1), what makes a line look like another, and half characters.
_SPELLED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")

out = Console(highlight=False, soft_wrap=True, markup=False, emoji=False)
err = Console(stderr=True, highlight=False, soft_wrap=True, markup=False, emoji=False)


def safe(text: object) -> str:
    """Give a text as it can be printed anywhere: what a terminal would obey is spelled out."""
    plain_ends = str(text).replace("\r\n", "\n")
    return _SPELLED.sub(lambda found: found[0].encode("unicode_escape").decode(), plain_ends)


def line(text: object) -> str:
    """Give a text on one line, safe to print."""
    return safe(" ".join(str(text).split()))


def styled(*parts: str | tuple[str, str]) -> Text:
    """Give a text of parts, some with a style, all safe to print."""
    return Text.assemble(*(safe(part) if isinstance(part, str) else (safe(part[0]), part[1]) for part in parts))


def say(*parts: str | tuple[str, str]) -> None:
    """Print to stdout, for people."""
    out.print(styled(*parts))


def hint(text: str) -> None:
    """Say on stderr what may help."""
    err.print(Text(line(text), style="bright_black"))


def complain(text: str) -> None:
    """Say on stderr what went wrong, on one line."""
    err.print(Text.assemble(("memstore: ", "bold red"), line(text)))


def called() -> str:
    """Give how this command is called here: by its name where the shell finds it, else by its path, or by Python."""
    from shutil import which

    script = Path(sys.argv[0])
    if script.name == "__main__.py":
        return f"{Path(sys.executable).name} -m memstore"
    if which("memstore") or script.name != "memstore":
        return "memstore"
    return os.path.relpath(script) if script.is_relative_to(Path.cwd()) else str(script)


def never_fail_to_print() -> None:
    """Spell out what the encoding of stdout and stderr has no characters for."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def print_json(value: object) -> None:
    """Print a value as one JSON document, which is also safe to look at."""
    unicode = (getattr(sys.stdout, "encoding", None) or "").lower().replace("-", "") == "utf8"
    text = json.dumps(plain(value), ensure_ascii=not unicode, indent=2)
    print(_SPELLED.sub(lambda found: f"\\u{ord(found[0]):04x}", text))


class Warnings(logging.Handler):
    """Shows log records on stderr, a line each; with their tracebacks where that was asked for."""

    def __init__(self, *, tracebacks: bool) -> None:
        super().__init__()
        self.tracebacks = tracebacks

    def emit(self, record: logging.LogRecord) -> None:
        """Print the record."""
        try:
            error = record.exc_info[1] if record.exc_info else None
            cause = f": {type(error).__name__}: {error}" if error else ""
            err.print(Text(line(f"{record.levelname.lower()}: {record.getMessage()}{cause}"), style="yellow"))
            if error and self.tracebacks:
                err.print(Text(safe("".join(traceback.format_exception(error)))))
        except Exception:  # as logging asks of its handlers: who warns must not fail by it
            self.handleError(record)


def show_warnings(*, verbose: bool) -> None:
    """Show the warnings of every library; all of memstore's own records, and tracebacks, where `verbose`."""
    logging.basicConfig(handlers=[Warnings(tracebacks=verbose)], force=True)
    logging.getLogger().setLevel(logging.WARNING)
    if verbose:
        logging.getLogger("memstore").setLevel(logging.DEBUG)


def show_records() -> None:
    """Show records as the settings say: warnings as text, or every record of memstore's as a line of JSON."""
    from memstore.records import JsonLines
    from memstore.settings import load

    if load({}).log_format == "json":
        handler = logging.StreamHandler()
        handler.setFormatter(JsonLines())
        logging.basicConfig(handlers=[handler], force=True, level=logging.WARNING)
        logging.getLogger("memstore").setLevel(logging.INFO)


@contextmanager
def progress(waiting: str, *, of_bytes: bool = False) -> Iterator[Callable[[str, int, int | None], None]]:
    """Show bars on stderr where that is a terminal; give what moves them: name, done, total, which may be bytes.

    `waiting` is shown until the first moves. Print nothing to stdout meanwhile.
    """
    from rich.progress import BarColumn, DownloadColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = [
        TextColumn("{task.description:<10}", markup=False),
        BarColumn(bar_width=30),
        DownloadColumn() if of_bytes else MofNCompleteColumn(),
        TimeRemainingColumn(),
    ]
    quiet = not err.file.isatty() or err.is_dumb_terminal
    # Redirected, what goes to stdout would come out on stderr, even where stdout is a file.
    with Progress(*columns, console=err, transient=True, disable=quiet, redirect_stdout=False) as bars:
        tasks = {"": bars.add_task(line(waiting), total=None)}

        def move(name: str, done: int, total: int | None) -> None:
            if "" in tasks:
                bars.remove_task(tasks.pop(""))
            if name not in tasks:
                tasks[name] = bars.add_task(line(name), total=total)
            bars.update(tasks[name], completed=done, total=total)

        yield move


def table(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print rows, whose last cell is the text: as a table, in blocks where that is too wide, on a pipe with tabs."""
    cells = [[line(cell) for cell in row] for row in rows]
    if not out.is_terminal:
        for row in cells:
            print("\t".join(row))
    elif out.width < NARROW:
        for *beside, text in cells:
            out.print(Text("  ".join(filter(None, beside)), style="bright_black"))
            out.print(Text(text))
    elif cells:
        out.print(_drawn(columns, cells), soft_wrap=False)


def _drawn(columns: Sequence[str], cells: Sequence[Sequence[str]]) -> Table:
    from rich import box
    from rich.table import Table

    drawn = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in columns[:-1]:
        most = None if name in WHOLE else CELL
        drawn.add_column(name, no_wrap=True, max_width=most, overflow="ellipsis", style="bright_black")
    drawn.add_column(columns[-1], overflow="fold")
    for row in cells:
        drawn.add_row(*map(Text, row))
    return drawn


def short_id(id: UUID) -> str:
    """Give how an id begins, where it is told alone."""
    return id.hex[:SHORT]


def short_ids(ids: Iterable[UUID]) -> dict[UUID, str]:
    """Give how each id begins, with as many digits as tell these apart, and eight at least."""
    every = set(ids)
    length = next(
        (
            digits
            for digits in range(SHORT, len(UUID(int=0).hex))
            if len({id.hex[:digits] for id in every}) == len(every)
        ),
        len(UUID(int=0).hex),
    )
    return {id: id.hex[:length] for id in every}


def meter(receipt: Receipt) -> Text:
    """Give the budget as a coloured bar, with its sections' tokens below."""
    ends = f"  {receipt.tokens:,} of {receipt.budget:,} tokens"
    width = max(8, min(METER, out.width - len(ends)))
    bar = Text()
    tokens = 0
    for section, size in receipt.sections.items():
        tokens += size
        # To where the sections so far reach: each one rounded by itself would add up to more than the whole.
        bar.append("█" * (round(width * tokens / receipt.budget) - len(bar)), style=COLOURS.get(section, "white"))
    bar.append("·" * (width - len(bar)), style="bright_black")
    bar.append(f"{ends}\n")
    for section, size in receipt.sections.items():
        if size:
            bar.append(f"■ {section} {size:,}  ", style=COLOURS.get(section, "white"))
    return bar


def chat(context: Context | Replay) -> None:
    """Print a context's messages for people, or its text as it is."""
    if context.text is not None:
        print(safe(context.text))
        return
    apart = [] if context.system is None else [{"role": "system", "content": context.system}]
    for message in [*apart, *context.messages]:
        role = str(message["role"])
        name = f" {message['name']}" if message.get("name") else ""
        say((f"── {role}{name}", f"bold {ROLES.get(role, 'white')}"))
        # Not by rich, which makes blanks of tabs.
        print(safe(_spoken(message)))


def _spoken(message: Json) -> str:
    """Give what a message says: its text, also where that is in parts, else all of it but the role."""
    content = message.get("content")
    if isinstance(content, list) and all(one.get("type") == "text" for one in content):
        content = "\n".join(str(one.get("text", "")) for one in content)
    if isinstance(content, str) and not message.get("tool_calls"):
        return content
    rest = {key: value for key, value in message.items() if key != "role" and value is not None}
    return json.dumps(plain(rest), ensure_ascii=False)
