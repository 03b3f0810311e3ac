"""The named statements of `sql/*.sql`: one file to a table family, `-- name --`, a line of purpose, the statement."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files
from typing import LiteralString, cast

NAME = re.compile(r"^-- (\w+) --$", re.M)


@cache
def statements(family: str) -> dict[str, LiteralString]:
    """Give the statements of one file by name.

    The cast says that they are the program's own text: no value is ever pasted into them.
    """
    text = files("memstore.store").joinpath("sql", f"{family}.sql").read_text(encoding="utf-8")
    _, *pieces = NAME.split(text)
    return {name: cast(LiteralString, body.strip()) for name, body in zip(pieces[::2], pieces[1::2], strict=True)}
