"""A plot of a table, as an SVG that diffs well: a line for each row, the columns of numbers along the bottom."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from itertools import cycle
from math import ceil, floor, log10

from report import Table

WIDE, HIGH, LEFT, TOP, KEY = 560, 320, 56, 36, 300
COLOURS = ("#0b6e4f", "#c8553d", "#3d5a80", "#8e7dbe", "#e0a458", "#6b705c", "#b56576", "#2a9d8f", "#999999")


@dataclass(frozen=True)
class Scale:
    """The upright axis: logarithmic where the largest value is fifty times the smallest."""

    low: float
    high: float
    is_log: bool

    def y(self, value: float) -> float:
        """Return the height of a value in the picture."""
        low, high, at = (log10(one) if self.is_log else one for one in (self.low, self.high, max(value, self.low)))
        return TOP + HIGH * (1 - (at - low) / (high - low))

    def ticks(self) -> list[float]:
        """Return the values that have a line."""
        if self.is_log:
            return [10.0**power for power in range(round(log10(self.low)), round(log10(self.high)) + 1)]
        return [self.high * part / 4 for part in range(5)]


def drawn(tables: Sequence[Table]) -> str:
    """Return the first table that has columns of numbers as a plot; shares in percent have an axis up to 100."""
    table = next(one for one in tables if _places(one))
    places = _places(table)
    scale = _scale([float(row[place] or 0) for row in table.rows for place in places if row[place] is not None])
    body = "\n".join([*_frame(table, places, scale), *_lines(table, places, scale)])
    size = f'width="{LEFT + WIDE + KEY}" height="{TOP + HIGH + 40}"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="12">\n{body}\n</svg>\n'


def _places(table: Table) -> list[int]:
    return [place for place, name in enumerate(table.columns) if name.replace(",", "").isdigit()]


def _scale(values: Sequence[float]) -> Scale:
    low, high = min(values), max(values)
    if 50 < high <= 100:
        return Scale(0, 100, False)
    if low > 0 and high > 50 * low:
        return Scale(10.0 ** floor(log10(low)), 10.0 ** ceil(log10(high)), True)
    return Scale(0, high * 1.1, False)


def _frame(table: Table, places: Sequence[int], scale: Scale) -> Iterator[str]:
    yield '<rect width="100%" height="100%" fill="white"/>'
    yield f'<text x="{LEFT}" y="20" font-size="14">{escape(table.title)}</text>'
    for value in scale.ticks():
        yield f'<path d="M{LEFT} {scale.y(value):.1f}h{WIDE}" stroke="#ddd"/>'
        yield f'<text x="{LEFT - 6}" y="{scale.y(value) + 4:.1f}" text-anchor="end">{value:,.5g}</text>'
    for n, place in enumerate(places):
        yield f'<text x="{_x(n, places):.1f}" y="{TOP + HIGH + 18}" text-anchor="middle">{table.columns[place]}</text>'


def _lines(table: Table, places: Sequence[int], scale: Scale) -> Iterator[str]:
    """Draw the rows, those that end highest first, as the key has them; those after the last colour are dashed."""
    last = places[-1]
    ordered = sorted(table.rows, key=lambda row: -float(row[last] or 0))
    for n, (row, colour) in enumerate(zip(ordered, cycle(COLOURS), strict=False)):
        points = " ".join(
            f"{_x(i, places):.1f},{scale.y(float(cell)):.1f}"
            for i, place in enumerate(places)
            if (cell := row[place]) is not None
        )
        dashed = ' stroke-dasharray="5 3"' if n >= len(COLOURS) else ""
        y = TOP + 10 + 18 * n
        yield f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"{dashed}/>'
        yield f'<path d="M{LEFT + WIDE + 10} {y - 3}h14" stroke="{colour}" stroke-width="4"{dashed}/>'
        yield f'<text x="{LEFT + WIDE + 30}" y="{y + 1}">{escape(str(row[0]))}</text>'


def _x(n: int, places: Sequence[int]) -> float:
    return LEFT + WIDE * (n + 0.5) / len(places)
