"""The named statements of `sql/*.sql`: one file to a table family, `-- name --`, a line of purpose, the statement.

What several of them have in common is a `-- part name --`, which stands where they say `<name>`.
"""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files
from typing import LiteralString, cast

NAME = re.compile(r"^-- (part )?(\w+) --$", re.M)


@cache
def statements(family: str) -> dict[str, LiteralString]:
    """Give the statements of one file by name."""
    return named(files("memstore.store").joinpath("sql", f"{family}.sql").read_text(encoding="utf-8"))


def named(text: str) -> dict[str, LiteralString]:
    """Give the statements of a text by name.

    The cast says that they are the program's own text: no value is ever pasted into them.
    """
    _, *pieces = NAME.split(text)
    found = {name: body.strip() for name, body in zip(pieces[1::3], pieces[2::3], strict=True)}
    parts = [name for name, is_part in zip(pieces[1::3], pieces[::3], strict=True) if is_part]
    for part in parts:
        body = found.pop(part)
        found = {name: statement.replace(f"<{part}>", body) for name, statement in found.items()}
    return {name: cast(LiteralString, statement) for name, statement in found.items()}
