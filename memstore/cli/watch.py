"""Counts that are looked at again and again: a table that stays where it is, or a line of JSON each time."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from contextlib import suppress

from memstore.cli.exits import flush
from memstore.cli.show import out

Counts = Mapping[str, int]


def watched(count: Callable[[], Counts], seconds: float, *, as_json: bool) -> None:
    """Show counts every so many seconds until Ctrl-C, which is no error here."""
    with suppress(KeyboardInterrupt):
        if as_json or not out.is_terminal:
            _lines(count, seconds)
        else:
            _table(count, seconds)


def _lines(count: Callable[[], Counts], seconds: float) -> None:
    while True:
        print(json.dumps(count()))
        flush()
        time.sleep(seconds)


def _table(count: Callable[[], Counts], seconds: float) -> None:
    from rich.live import Live
    from rich.table import Table

    first = before = count()
    with Live(console=out, auto_refresh=False) as live:
        while True:
            found = count()
            drawn = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
            for name in ("what", "how many", f"in {seconds:g} s", "since the start"):
                drawn.add_column(name, justify="left" if name == "what" else "right", no_wrap=True)
            for name, number in found.items():
                drawn.add_row(name, f"{number:,}", _changed(number - before[name]), _changed(number - first[name]))
            live.update(drawn, refresh=True)
            before = found
            time.sleep(seconds)


def _changed(by: int) -> str:
    return f"{by:+,}" if by else ""
