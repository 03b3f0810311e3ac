"""The named statements of `sql/*.sql`: one file to a table family, `-- name --`, a line of purpose, the statement.

A `-- fragment name --` is a part that several share: it replaces `<name>` in them. Those in fragments.sql are of every
file. A `-- name of each user table --` is about one {table}, and becomes the union over all that are a user's, or have
an attribute of that name (tables.py). A `-- name of each exported list --` is about one {table} whose rows are a list
in the lines of an export (`of_each_list`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any, LiteralString, NamedTuple

from memstore.store.tables import of_each, of_each_list

STATEMENT_NAME = re.compile(r"^-- (fragment )?(\w+)(?: of each (\w+ table|exported list))? --$", re.M)
VALUES_ROW = re.compile(r"\bVALUES (\((?:[^()]|\((?:[^()]|\(\w*\))*\))*\))")
PLACE = re.compile(r"%\((\w+)\)s")


@cache
def statements(family: str) -> dict[str, LiteralString]:
    folder = files("memstore.store") / "sql"
    texts = [(folder / f"{name}.sql").read_text(encoding="utf-8") for name in ("fragments", family)]
    return parse_statements("\n".join(texts))


def parse_statements(text: str) -> dict[str, LiteralString]:
    """Return the statements of a text by name.

    They are the program's own text: no value is ever pasted into them.
    """
    _, *pieces = STATEMENT_NAME.split(text)
    parts = list(zip(pieces[::4], pieces[1::4], pieces[2::4], pieces[3::4], strict=True))
    bodies: dict[str, LiteralString] = {}
    fragments: list[str] = []
    for is_fragment, name, group, statement in parts:
        made = {name: statement.strip()}
        if group == "exported list":
            made = of_each_list(name, statement.strip(), is_fragment=bool(is_fragment))
        elif group:
            made = {name: of_each(statement.strip(), group.removesuffix(" table"))}
        bodies |= made
        fragments += made if is_fragment else ()
    for fragment in fragments:
        body = bodies.pop(fragment)
        bodies = {name: statement.replace(f"<{fragment}>", body) for name, statement in bodies.items()}
    return bodies


class Rows(NamedTuple):
    """An INSERT of several rows, its places numbered: $1 is the user's id.

    Then come the values that all rows have, by name, and then these values of each row.
    """

    text: LiteralString
    shared: Sequence[str]
    names: Sequence[str]


@lru_cache(maxsize=64)
def expand_values(statement: LiteralString, count: int, shared: frozenset[str]) -> Rows:
    """Return an INSERT of one row as one of so many, which have the `shared` values in common.

    INSERT … SELECT, from arrays too, is refused by row-level security on a distributed table; this is not.
    """
    row = VALUES_ROW.search(statement)
    if row is None:
        raise ValueError(f"No INSERT of one row: {statement}")
    placeholders = [name for name in PLACE.findall(row[1]) if name != "user_id"]
    names = [name for name in placeholders if name not in shared]
    common = list(dict.fromkeys(name for name in placeholders if name in shared))
    once = {"user_id": 1} | {name: place for place, name in enumerate(common, 2)}
    places = iter(range(2 + len(common), 2 + len(common) + count * len(names)))

    def numbered(place: re.Match[str]) -> str:
        return f"${once.get(place[1]) or next(places)}"

    rows = ",\n".join(PLACE.sub(numbered, row[1]) for _ in range(count))
    text = statement[: row.start(1)] + rows + statement[row.end() :]
    if PLACE.search(text):
        raise ValueError(f"A value that is of no row: {statement}")
    return Rows(text, common, names)


def expand_rows(statement: LiteralString, rows: Sequence[Mapping[str, Any]]) -> tuple[LiteralString, list[Any]]:
    """Return an INSERT of one row as one of these rows, and its values but for the user's id.

    Values that all rows share are sent once: the same objects, or empty lists. Not equal ones: 1 and True are, and as
    JSON they are not.
    """
    shared = frozenset(name for name in rows[0] if _is_shared(rows, name))
    text, common, names = expand_values(statement, len(rows), shared)
    return text, [*(rows[0][name] for name in common), *(row[name] for row in rows for name in names)]


def _is_shared(rows: Sequence[Mapping[str, Any]], name: str) -> bool:
    first = rows[0][name]
    if type(first) is list and not first:
        return all(type(row[name]) is list and not row[name] for row in rows)
    return all(row[name] is first for row in rows)
