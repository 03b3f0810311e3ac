#!/usr/bin/env python3
"""Write what docs/reference/cli.md says of each command, from its help.

tools/cli_reference.py            write it
tools/cli_reference.py --check    exit 1 where the page says something else
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from typer.main import get_command

from memstore.cli import app

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "cli.md"
BEGIN = "<!-- commands: tools/cli_reference.py -->\n"
EVERYWHERE = ("--help", "--json", "--database")  # what the page says of all commands


def describe(name: str, command: Any) -> Iterator[str]:
    """Return the lines of a command, or of the commands of a group."""
    if hasattr(command, "commands"):
        for part, each in command.commands.items():
            yield from describe(f"{name} {part}", each)
        return
    with command.make_context(name, [], resilient_parsing=True) as context:
        pieces = [piece for piece in command.collect_usage_pieces(context) if piece != "[OPTIONS]"]
        parameters = command.get_params(context)
    takes_database = any("--database" in each.opts for each in parameters)
    yield from ["", f"### `{' '.join([name, *pieces])}`{' ᵈ' if takes_database else ''}", ""]
    for paragraph in command.help.split("\n\n"):
        text = " ".join(paragraph.split())
        yield from ["```text", text, "```", ""] if text.startswith("JSON") else [text, ""]
    rows = [row for each in parameters if not {*each.opts} & {*EVERYWHERE} and (row := each.get_help_record(context))]
    if rows:
        yield from ["| | |", "|---|---|"]
        yield from (f"| `{flag.replace('|', chr(92) + '|')}` | {meaning} |" for flag, meaning in rows)


def main() -> int:
    """Write or check the page."""
    page = PAGE.read_text(encoding="utf-8")
    head = page.partition(BEGIN)[0]
    new = head + BEGIN + "\n".join(describe("memstore", get_command(app))) + "\n"
    if "--check" in sys.argv:
        return int(new != page)
    PAGE.write_text(new, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
