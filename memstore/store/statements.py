"""The named statements of `sql/*.sql`: one file to a table family, `-- name --`, a line of purpose, the statement.

What several of them have in common is a `-- part name --`, which stands where they say `<name>`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache, lru_cache
from importlib.resources import files
from typing import LiteralString, NamedTuple, cast

NAME = re.compile(r"^-- (part )?(\w+) --$", re.M)
ROW = re.compile(r"\bVALUES (\((?:[^()]|\((?:[^()]|\(\w*\))*\))*\))")
PLACE = re.compile(r"%\((\w+)\)s")


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


class Rows(NamedTuple):
    """An INSERT of several rows, its places numbered: $1 is the user's id, then come these values of each row."""

    text: LiteralString
    names: Sequence[str]


@lru_cache(maxsize=64)
def of_rows(statement: LiteralString, count: int) -> Rows:
    """Give an INSERT of one row as one of so many.

    INSERT … SELECT, from arrays too, is refused by row-level security on a distributed table; this is not.
    """
    row = ROW.search(statement)
    if row is None:
        raise ValueError(f"No INSERT of one row: {statement}")
    names = [name for name in PLACE.findall(row[1]) if name != "user_id"]
    places = iter(range(2, 2 + count * len(names)))

    def numbered(place: re.Match[str]) -> str:
        return "$1" if place[1] == "user_id" else f"${next(places)}"

    rows = ",\n".join(PLACE.sub(numbered, row[1]) for _ in range(count))
    text = statement[: row.start(1)] + rows + statement[row.end() :]
    if PLACE.search(text):
        raise ValueError(f"A value that is of no row: {statement}")
    return Rows(text, names)
