#!/usr/bin/env python3
"""Write what docs/reference/mcp.md says of the tools, as models are told of them.

tools/mcp_reference.py            write it
tools/mcp_reference.py --check    exit 1 where the page says something else
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from memstore.server.mcp.catalogue import TOOLS
from memstore.server.mcp.resources import LISTED, TEMPLATES

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "mcp.md"
BEGIN, END = "<!-- tools: tools/mcp_reference.py -->\n", "<!-- /tools -->"
BOUNDS = {"minimum": "≥", "maximum": "≤", "maxLength": "characters ≤", "minItems": "items ≥", "maxItems": "items ≤"}


def told() -> str:
    """Give what is said of the tools and resources."""
    return "\n".join([*_tools(), *_resources()]) + "\n"


def written(page: str) -> str:
    """Give the page with what is said of the tools in its place."""
    head, _, rest = page.partition(BEGIN)
    _, _, tail = rest.partition(END)
    return f"{head}{BEGIN}{told()}{END}{tail}"


def _tools() -> Iterator[str]:
    for one in TOOLS.values():
        tool = one.listed
        notes = tool.annotations
        assert notes is not None
        kinds = [
            "reads" if notes.read_only_hint else "writes",
            "destructive" if notes.destructive_hint else "",
            "harmless to repeat" if notes.idempotent_hint and not notes.read_only_hint else "",
        ]
        yield from ["", f"### `{tool.name}` ({', '.join(filter(None, kinds))})", "", str(tool.description), ""]
        yield from _arguments(tool.input_schema, tool.input_schema.get("$defs", {}))
        gives = ", ".join(f"`{name}`" for name in (tool.output_schema or {})["properties"])
        yield from ["", f"Gives {gives}."]


def _arguments(schema: dict[str, Any], inside: dict[str, Any]) -> Iterator[str]:
    yield from ["| argument | takes | meaning |", "|---|---|---|"]
    for name, one in schema["properties"].items():
        needed = " (needed)" if name in schema.get("required", ()) else ""
        yield f"| `{name}`{needed} | {_type(one)} | {one['description']} |"
    for kind, one in inside.items():
        yield from ["", f"A `{kind}`:", ""]
        yield from _arguments(one, {})


def _type(one: dict[str, Any]) -> str:
    if "$ref" in one:
        return f"`{one['$ref'].rpartition('/')[2]}`"
    if "enum" in one:
        kind = " · ".join(one["enum"])
    elif one["type"] == "array":
        kind = f"a list of: {_type(one['items'])}"
    else:
        kind = {"date-time": "time"}.get(one.get("format", ""), one["type"])
    bounds = [f"{sign} {one[name]:,}" for name, sign in BOUNDS.items() if name in one]
    default = [f"else {one['default']}"] if one.get("default") not in (None, []) else []
    return ", ".join([kind, *bounds, *default])


def _resources() -> Iterator[str]:
    yield from ["", "### Resources", "", "| address | what |", "|---|---|"]
    for listed in LISTED:
        yield f"| `{listed.uri}` | {listed.description} |"
    for template in TEMPLATES:
        yield f"| `{template.uri_template}` | {template.description} |"


def main() -> int:
    """Write or check the page."""
    page = PAGE.read_text(encoding="utf-8")
    new = written(page)
    if "--check" in sys.argv:
        return int(new != page)
    PAGE.write_text(new, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
