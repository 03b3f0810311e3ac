"""How numbers look: where bars stand and how long they are. Pure; templates draw them as SVG."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import cycle
from math import sqrt

from memstore.models import Receipt, Tier, Timeline

PARTS = 72  # of a timeline
WIDTH = 1000.0  # units of every picture; a page stretches it
OWN = 4  # colours for sections of one's own
BUILT_IN = ("system", "facts", "summaries", "hits", "recent", "question", "tools", "overhead")
LANE = 30.0
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
    """A bar: what it is of, in which colour, where it stands, and what it says."""

    label: str
    colour: str
    x: float
    width: float
    value: float
    y: float = 0.0
    height: float = 0.0


@dataclass(frozen=True, slots=True)
class Lane:
    """A tier over time."""

    tier: str
    total: int
    most: int
    bars: tuple[Bar, ...]


@dataclass(frozen=True, slots=True)
class Lanes:
    """The three tiers over the same time; `ticks` are days on the way, with where they stand."""

    since: datetime
    until: datetime
    lanes: tuple[Lane, ...]
    ticks: tuple[tuple[float, datetime], ...]


def lanes(timeline: Timeline) -> Lanes:
    """Give a timeline as three rows of bars. Heights are roots, so that one busy day does not flatten all others."""
    step = WIDTH / PARTS
    length = timeline.until - timeline.since
    part = length / PARTS
    rows = []
    for tier in (Tier.FACTS, Tier.SUMMARIES, Tier.MESSAGES):
        counts = timeline.items[tier]
        most = max(counts)
        bars = []
        for number, count in enumerate(counts):
            if count:
                height = max(3.0, LANE * sqrt(count / most))
                days = _days(timeline.since + number * part, part)
                bars.append(Bar(days, tier, number * step, step - 3, count, LANE - height, height))
        rows.append(Lane(tier, sum(counts), most, tuple(bars)))
    ticks = tuple((share, timeline.since + length * share) for share in (0.0, 0.25, 0.5, 0.75, 1.0))
    return Lanes(timeline.since, timeline.until, tuple(rows), ticks)


def _days(since: datetime, length: timedelta) -> str:
    """Give the day from which on so much time is, and where it reaches into another the last one too."""
    first, last = since.date(), (since + length - timedelta(microseconds=1)).date()
    if first >= last:
        return f"{first:%d %b %Y}"
    return f"{first:{'%d %b' if first.year == last.year else '%d %b %Y'}} – {last:%d %b %Y}"


def colours(sections: Iterable[str]) -> dict[str, str]:
    """Give the colour of each section: its own for those that are built in, in turn for others."""
    own = cycle(range(OWN))
    return {one: one if one in BUILT_IN else f"own{next(own)}" for one in sections}


def budget(receipt: Receipt) -> tuple[Bar, ...]:
    """Give the budget of a context as bars: sections in their order, what is kept free, what is left."""
    whole = max(receipt.budget, receipt.tokens, 1)
    named = colours(receipt.sections)
    parts = [(name, named[name], tokens) for name, tokens in receipt.sections.items() if tokens]
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


def score(parts: Mapping[str, float], highest: float) -> tuple[Bar, ...]:
    """Give what each signal adds to a score, the highest score as long as the picture; what takes away is apart."""
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


def highest(every: Iterable[Mapping[str, float]]) -> float:
    """Give the largest sum of what adds to a score."""
    return max((sum(value for value in parts.values() if value > 0) for parts in every), default=0.0)
