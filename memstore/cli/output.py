"""Prints JSON, tables, progress and contexts; configures logging to stderr.

Stored text may hold escape sequences and rich's markup, so it is escaped, and printed as plain text.
"""

from __future__ import annotations

import io
import json
import logging
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any
from uuid import UUID

from rich.console import Console
from rich.text import Text

from memstore.cli.options import common, with_options
from memstore.text import CONTROL_CHARS, escape_controls, quantify

if TYPE_CHECKING:
    from memstore.models import CallProgress, Context, DeriveReport, Json, Usage

out = Console(highlight=False, soft_wrap=True, markup=False, emoji=False)
err = Console(stderr=True, highlight=False, soft_wrap=True, markup=False, emoji=False)


def to_json(value: Any) -> Any:
    if hasattr(value, "as_dict"):
        return to_json(value.as_dict())
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: to_json(getattr(value, field.name)) for field in fields(value) if field.repr}
    # A pydantic model. isinstance would need its class, and importing pydantic would slow --help.
    if hasattr(type(value), "model_fields"):
        fields_by_name = type(value).model_fields.items()
        return {field.serialization_alias or name: to_json(getattr(value, name)) for name, field in fields_by_name}
    if isinstance(value, Mapping):
        return {str(key): to_json(member) for key, member in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [to_json(member) for member in value]
    return value.isoformat() if isinstance(value, datetime) else str(value) if isinstance(value, UUID) else value


def escape(text: object) -> str:
    """Return a text with escape sequences and control characters spelled out."""
    text = str(text).replace("\r\n", "\n")
    return CONTROL_CHARS.sub(lambda match: match[0].encode("unicode_escape").decode(), text)


def one_line(text: object) -> str:
    return escape(" ".join(str(text).split()))


def echo(*parts: str | tuple[str, str]) -> None:
    out.print(Text.assemble(*(escape(part) if isinstance(part, str) else (escape(part[0]), part[1]) for part in parts)))


def echo_hint(text: str, style: str = "bright_black") -> None:
    err.print(Text(one_line(text), style=style))


def echo_error(text: str) -> None:
    err.print(Text.assemble(("memstore: ", "bold red"), one_line(with_options(text))))


def flush() -> None:
    # It is None if the command was started with stdout closed.
    if sys.stdout is not None:
        sys.stdout.flush()


def escape_unencodable() -> None:
    """Let stdout and stderr spell out characters that their encoding does not have."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def print_json(value: object) -> None:
    unicode = (getattr(sys.stdout, "encoding", None) or "").lower().replace("-", "") == "utf8"
    text = json.dumps(to_json(value), ensure_ascii=not unicode, indent=2)
    print(escape_controls(text))


def print_result(value: object, text: str) -> None:
    if common.as_json:
        print_json(value)
    else:
        echo(text)


def format_derived_counts(report: DeriveReport) -> str:
    parts = (report.chunks, "chunk"), (report.summaries, "summary"), (report.facts, "fact")
    return ", ".join(quantify(*part) for part in parts)


def print_rows(value: object, columns: Sequence[str], rows: Iterable[Sequence[object]], empty: str = "") -> None:
    """Print a list: with --json the value, on a terminal a table, on a pipe rows with tabs.

    The last column has the text. If there are no rows, `empty` is printed to stderr.
    """
    if common.as_json:
        print_json(value)
        return
    cells = [[_cell(cell) for cell in row] for row in rows]
    if not cells:
        if empty:
            echo_hint(empty)
        return
    if not out.is_terminal:
        for row in cells:
            print("\t".join(row))
        return
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in columns[:-1]:
        width = None if name == "id" else 24  # ids are copied
        table.add_column(name, no_wrap=True, max_width=width, overflow="ellipsis", style="bright_black")
    table.add_column(columns[-1], overflow="fold", min_width=40)
    for row in cells:
        table.add_row(*map(Text, row))
    # The width that the table needs, on a terminal that is wide enough.
    if out.measure(table, options=out.options.update(max_width=1000)).minimum <= out.width:
        out.print(table, soft_wrap=False)
        return
    for row in cells:
        out.print(Text(row[-1]), soft_wrap=False)
        out.print(Text("  " + " · ".join(filter(None, row[:-1])), style="bright_black"), soft_wrap=False)


def print_models(models: Sequence[object], *columns: str, empty: str = "") -> None:
    print_rows(models, columns, ([getattr(model, name) for name in columns] for model in models), empty)


def _cell(value: object) -> str:
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%d}"
    if isinstance(value, float):
        return f"{value:.2f}"
    return "" if value is None else one_line(value)


class EscapedFormatter(logging.Formatter):
    """Formats log records safe for a terminal: on one line, or with their tracebacks."""

    def __init__(self, *, tracebacks: bool) -> None:
        super().__init__("%(levelname)s: %(message)s")
        self.tracebacks = tracebacks

    def format(self, record: logging.LogRecord) -> str:
        if self.tracebacks:
            return escape(super().format(record))
        error = record.exc_info[1] if record.exc_info else None
        cause = f": {type(error).__name__}: {error}" if error else ""
        return one_line(f"{record.levelname.lower()}: {record.getMessage()}{cause}")


def configure_warning_log(*, verbose: bool) -> None:
    """Log the warnings of every library to stderr; if `verbose`, all records of memstore and tracebacks."""
    _log(EscapedFormatter(tracebacks=verbose), logging.DEBUG if verbose else logging.NOTSET)


def configure_service_log() -> bool:
    """Log as the settings say: warnings as text, or all records of memstore as JSON. Return whether it is JSON."""
    from memstore.settings import load
    from memstore.telemetry import JsonFormatter

    is_json = load({}).log_format == "json"
    if is_json:
        _log(JsonFormatter(), logging.INFO)
    return is_json


def _log(formatter: logging.Formatter, level: int) -> None:
    handler = logging.StreamHandler()
    handler.setFormatter(formatter)
    logging.basicConfig(handlers=[handler], force=True, level=logging.WARNING)
    logging.getLogger("memstore").setLevel(level)


class ProgressLine:
    """The progress of a command, and the call that it waits for. It is drawn some times a second, as its times run."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._call: CallProgress | None = None
        self._called_at = 0.0

    def update(self, name: str, done: int, total: int | None) -> None:
        self.text = f"{name}: {done:,}" + (f" of {total:,}" if total else "")

    def show_call(self, call: CallProgress) -> None:
        self._call, self._called_at = call, time.monotonic()
        if call.total:
            self.update(call.usage.deriver, call.done, call.total)

    def __rich__(self) -> Text:
        # Rich would obey markup in a str.
        return Text(str(self))

    def __str__(self) -> str:
        call, now = self._call, time.monotonic()
        parts = [self.text]
        if call is not None:
            parts.append(describe_usage(call.usage))
            if call.refused:
                parts.append(f"{call.refused:,} refused")
            if call.asked_at is not None:
                parts.append(f"asked {format_seconds(now - call.asked_at)} ago")
                if call.seconds_left is not None:
                    parts.append(f"{format_seconds(max(0.0, call.seconds_left - (now - self._called_at)))} left")
        return one_line("; ".join(parts))


@contextmanager
def show_progress(waiting: str, *, quiet: bool = False) -> Iterator[ProgressLine]:
    """Show a progress line on stderr, `waiting` at first. Print nothing to stdout meanwhile.

    On a terminal it is drawn in place; elsewhere it is printed every ten seconds if it changed.
    """
    line, is_over = ProgressLine(waiting), threading.Event()
    if quiet:
        yield line
        return
    if err.is_terminal and not err.is_dumb_terminal:
        with err.status(line):
            yield line
        return

    def repeat() -> None:
        said = str(line)
        while not is_over.wait(10.0):
            if str(line) != said:
                said = str(line)
                echo_hint(said)

    thread = threading.Thread(target=repeat, daemon=True)
    thread.start()
    try:
        yield line
    finally:
        is_over.set()
        thread.join()


def describe_usage(usage: Usage) -> str:
    """Return what calls of a chat model cost, such as "7 calls of qwen3:4b-instruct: 8,300 tokens in, 2,100 out"."""
    name = usage.model.partition("@")[0]
    if not usage.calls:
        return f"asking {name}"
    rate = f", {usage.tokens_per_second:,.0f} a second" if usage.completion_tokens else ""
    tokens = f"{usage.prompt_tokens:,} tokens in, {usage.completion_tokens:,} out{rate}"
    # In the currency of the settings' prices.
    cost = "" if usage.cost is None else f", cost {usage.cost:,.{2 if usage.cost >= 1 else 4}f}"
    return f"{quantify(usage.calls, 'call')} of {name}: {tokens}{cost}"


def format_seconds(seconds: float) -> str:
    """Return a time as minutes and seconds, with hours where there are some: 02:05, 1:02:05."""
    return str(timedelta(seconds=int(seconds))).removeprefix("0:")


def short_id(id: UUID) -> str:
    return id.hex[:8]


def print_context(context: Context) -> None:
    if common.as_json:
        print_json(context)
        return
    if context.text is not None:
        print(escape(context.text))
    else:
        system = [] if context.system is None else [{"role": "system", "content": context.system}]
        for message in [*system, *context.messages]:
            role = str(message["role"])
            name = f" {message['name']}" if message.get("name") else ""
            echo((f"── {role}{name}", "bold"))
            # Not by rich, which turns tabs into blanks.
            print(escape(_message_text(message)))
    receipt = context.receipt
    sections = ", ".join(f"{name} {tokens:,}" for name, tokens in receipt.sections.items() if tokens)
    echo((f"\n{receipt.tokens:,} of {receipt.budget:,} tokens", "bold"), f": {sections}")


def _message_text(message: Json) -> str:
    content = message.get("content")
    if isinstance(content, list) and all(part.get("type") == "text" for part in content):
        content = "\n".join(str(part.get("text", "")) for part in content)
    if isinstance(content, str) and not message.get("tool_calls"):
        return content
    rest = {key: value for key, value in message.items() if key != "role" and value is not None}
    return json.dumps(to_json(rest), ensure_ascii=False)
