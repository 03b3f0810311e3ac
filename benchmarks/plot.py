"""A plot of a table, as an SVG that diffs well: a line for each row, the columns of numbers along the bottom."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from itertools import cycle

from report import Cell, Table

WIDE, HIGH, LEFT, TOP, KEY = 560, 320, 48, 36, 300
COLOURS = ("#0b6e4f", "#c8553d", "#3d5a80", "#8e7dbe", "#e0a458", "#6b705c", "#b56576", "#2a9d8f", "#999999")


def drawn(tables: Sequence[Table]) -> str:
    """Give the first table that has columns of numbers as a plot."""
    table = tables[0]
    places = [place for place, name in enumerate(table.columns) if name.replace(",", "").isdigit()]
    highest = max(float(row[place] or 0) for row in table.rows for place in places)
    top = 100.0 if highest > 20 and highest <= 100 else highest * 1.1
    body = "\n".join([*_frame(table, places, top), *_lines(table, places, top)])
    size = f'width="{LEFT + WIDE + KEY}" height="{TOP + HIGH + 40}"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="12">\n{body}\n</svg>\n'


def _frame(table: Table, places: Sequence[int], top: float) -> Iterator[str]:
    yield '<rect width="100%" height="100%" fill="white"/>'
    yield f'<text x="{LEFT}" y="20" font-size="14">{escape(table.title)}</text>'
    for part in range(5):
        value = top * part / 4
        yield f'<path d="M{LEFT} {_y(value, top):.1f}h{WIDE}" stroke="#ddd"/>'
        yield f'<text x="{LEFT - 6}" y="{_y(value, top) + 4:.1f}" text-anchor="end">{value:.4g}</text>'
    for n, place in enumerate(places):
        yield f'<text x="{_x(n, places):.1f}" y="{TOP + HIGH + 18}" text-anchor="middle">{table.columns[place]}</text>'


def _lines(table: Table, places: Sequence[int], top: float) -> Iterator[str]:
    ordered = sorted(table.rows, key=lambda row: -_number(row[places[-1]]))
    for n, (row, colour) in enumerate(zip(ordered, cycle(COLOURS), strict=False)):
        points = " ".join(
            f"{_x(i, places):.1f},{_y(_number(row[place]), top):.1f}"
            for i, place in enumerate(places)
            if row[place] is not None
        )
        name, y = escape(str(row[0])), TOP + 10 + 18 * n
        yield f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>'
        yield f'<rect x="{LEFT + WIDE + 12}" y="{y - 9}" width="12" height="12" fill="{colour}"/>'
        yield f'<text x="{LEFT + WIDE + 30}" y="{y + 1}">{name}</text>'


def _number(cell: Cell) -> float:
    return float(cell or 0)


def _x(n: int, places: Sequence[int]) -> float:
    return LEFT + WIDE * (n + 0.5) / len(places)


def _y(value: float, top: float) -> float:
    return TOP + HIGH * (1 - value / top)
