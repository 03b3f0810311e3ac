#!/usr/bin/env python3
"""Write what docs/reference/mcp.md says of the tools, from what the server tells models.

tools/mcp_reference.py            write it
tools/mcp_reference.py --check    exit 1 where the page says something else
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast, get_type_hints

from memstore.client.store import AsyncMemoryStore
from memstore.server.mcp import tools
from memstore.server.mcp.server import MemoryServer
from memstore.settings import Settings

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "mcp.md"
BEGIN, END = "<!-- tools: tools/mcp_reference.py -->\n", "<!-- /tools -->"
BOUNDS = {"minimum": "≥", "maximum": "≤", "maxLength": "characters ≤", "minItems": "items ≥", "maxItems": "items ≤"}


async def describe() -> str:
    """Return the part of the page that is generated."""
    store = SimpleNamespace(settings=Settings.model_construct())  # nothing is called
    server = MemoryServer(cast(AsyncMemoryStore, store))
    lines = [line for tool in await server.list_tools() for line in _tool(tool)]
    lines += ["", "### Resources", "", "| address | what |", "|---|---|"]
    lines += [f"| `{resource.uri}` | {resource.description} |" for resource in await server.list_resources()]
    return "\n".join(lines) + "\n"


def replace(page: str, generated: str) -> str:
    """Return the page with its generated part replaced."""
    head, _, rest = page.partition(BEGIN)
    _, _, tail = rest.partition(END)
    return f"{head}{BEGIN}{generated}{END}{tail}"


def _tool(tool: Any) -> Iterator[str]:
    hints = tool.annotations
    kinds = [
        "reads" if hints.read_only_hint else "writes",
        "destructive" if hints.destructive_hint else "",
        "harmless to repeat" if hints.idempotent_hint and not hints.read_only_hint else "",
    ]
    yield from ["", f"### `{tool.name}` ({', '.join(filter(None, kinds))})", "", str(tool.description), ""]
    yield from _arguments(tool.input_schema, tool.input_schema.get("$defs", {}))
    result = get_type_hints(getattr(tools, tool.name))["return"]
    yield from ["", f"Gives {', '.join(f'`{name}`' for name in result.model_fields)}."]


def _arguments(schema: dict[str, Any], definitions: dict[str, Any]) -> Iterator[str]:
    yield from ["| argument | takes | meaning |", "|---|---|---|"]
    for name, one in schema["properties"].items():
        needed = " (needed)" if name in schema.get("required", ()) else ""
        yield f"| `{name}`{needed} | {_type(one)} | {one['description']} |"
    for name, one in definitions.items():
        yield from ["", f"A `{name}`:", ""]
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


def main() -> int:
    """Write or check the page."""
    page = PAGE.read_text(encoding="utf-8")
    new = replace(page, asyncio.run(describe()))
    if "--check" in sys.argv:
        return int(new != page)
    PAGE.write_text(new, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
