"""Charts: where bars stand and how long they are. Pure; templates draw them as SVG."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import cycle

from memstore.models import Receipt

WIDTH = 1000.0  # units of every chart; a page stretches it
CUSTOM_COLOURS = 4  # for sections that are not built in
BUILT_IN = ("system", "facts", "summaries", "hits", "recent", "question", "tools", "overhead")
SIGNALS = (
    "semantic",
    "semantic_around",
    "lexical",
    "lexical_around",
    "speaker",
    "date",
    "role",
    "brevity",
    "question",
    "answers",
    "reranker",
)


@dataclass(frozen=True, slots=True)
class Bar:
    """A bar of a chart."""

    label: str
    colour: str
    x: float
    width: float
    value: float


def section_colours(sections: Iterable[str]) -> dict[str, str]:
    """Return the colour of each section: its own for those that are built in, in turn for others."""
    custom = cycle(range(CUSTOM_COLOURS))
    return {name: name if name in BUILT_IN else f"own{next(custom)}" for name in sections}


def budget_bars(receipt: Receipt) -> tuple[Bar, ...]:
    """Return the budget of a context as bars: sections in their order, what is kept free, what is left."""
    whole = max(receipt.budget, receipt.tokens, 1)
    colours = section_colours(receipt.sections)
    parts = [(name, colours[name], tokens) for name, tokens in receipt.sections.items() if tokens]
    kept = min(receipt.reserve, max(0, receipt.budget - receipt.tokens))
    parts += [("kept free", "reserve", kept)] if kept else []
    free = receipt.budget - receipt.tokens - kept
    parts += [("unused", "free", free)] if free > 0 else []
    bars, x = [], 0.0
    for label, colour, tokens in parts:
        width = WIDTH * tokens / whole
        bars.append(Bar(label, colour, x, max(1.0, width - 2), tokens))
        x += width
    return tuple(bars)


def score_bars(parts: Mapping[str, float], highest: float) -> tuple[Bar, ...]:
    """Return what each signal adds to a score, the highest as wide as the chart; negative parts have no width."""
    bars, x = [], 0.0
    order = {name: place for place, name in enumerate(SIGNALS)}
    for name in sorted(parts, key=lambda name: (order.get(name, len(order)), name)):
        value = parts[name]
        if value > 0 and highest > 0:
            width = WIDTH * value / highest
            bars.append(Bar(name, f"signal{order.get(name, len(order))}", x, max(1.0, width - 1), value))
            x += width
        elif value < 0:
            bars.append(Bar(name, "minus", x, 0.0, value))
    return tuple(bars)


def highest_score(every: Iterable[Mapping[str, float]]) -> float:
    """Return the largest sum of positive parts of a score."""
    return max((sum(value for value in parts.values() if value > 0) for parts in every), default=0.0)
