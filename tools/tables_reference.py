#!/usr/bin/env python3
"""Write the tables of docs pages that the code declares: lines of an export, reasons of a receipt.

tools/tables_reference.py            write them
tools/tables_reference.py --check    exit 1 if a page differs
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import UnionType
from typing import Any, Union, get_args, get_origin

from pydantic import BaseModel

from memstore.export import schema
from memstore.models import Reason

PAGES = Path(__file__).parents[1] / "docs" / "reference"


def lines_of_exports() -> Iterator[str]:
    yield from ["| `kind` | keys |", "|---|---|"]
    for line in (schema.Header, *get_args(schema.ExportLine), schema.Footer):
        yield f"| `{get_args(line.model_fields['kind'].annotation)[0]}` | {_keys(line)} |"


def _keys(line: type[BaseModel]) -> str:
    shown = []
    for name, field in line.model_fields.items():
        element = _element(field.annotation)
        # Chunks are of several kinds of lines, and have a paragraph of their own.
        keys = f" {{{_keys(element)}}}" if element is not None and element is not schema.ChunkLine else ""
        shown += [f"`{name}`" + keys] if name != "kind" else []
    return ", ".join(shown)


def _element(annotation: Any) -> type[BaseModel] | None:
    """Return the object that a key holds, or many of."""
    if get_origin(annotation) in (list, dict, Union, UnionType):
        return next(filter(None, map(_element, get_args(annotation))), None)
    return annotation if isinstance(annotation, type) and issubclass(annotation, BaseModel) else None


def reasons() -> Iterator[str]:
    yield from ["| reason | means |", "|---|---|"]
    for reason in Reason:
        yield f"| `{reason}` | {reason.meaning} |"


TABLES = {"exporting.md": lines_of_exports, "receipts.md": reasons}


def main() -> int:
    """Write or check the tables, each between two marks in its page."""
    differs = False
    for name, rows in TABLES.items():
        begin, end = f"<!-- {rows.__name__}: tools/tables_reference.py -->\n", f"<!-- /{rows.__name__} -->"
        page = (PAGES / name).read_text(encoding="utf-8")
        head, _, rest = page.partition(begin)
        new = f"{head}{begin}\n" + "\n".join(rows()) + f"\n\n{end}" + rest.partition(end)[2]
        differs |= new != page
        if "--check" not in sys.argv:
            (PAGES / name).write_text(new, encoding="utf-8")
    return int(differs and "--check" in sys.argv)


if __name__ == "__main__":
    sys.exit(main())
