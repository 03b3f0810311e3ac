"""Abridging: the lines that say most of many, as a text of at most so many tokens. No model, no database, no clock."""

from __future__ import annotations

from collections.abc import Sequence

from memstore.derive.summaries import selection
from memstore.derive.summaries.lines import NOTHING, TOOL, Line, written
from memstore.derive.summaries.selection import keeps, mentions, prepare
from memstore.providers import TokenCounter

BESIDE = -0.5  # what the line of a call holds: it comes after all that was said, and where nobody spoke it stands alone


def abridged(lines: Sequence[Line], limit: int, counter: TokenCounter) -> str:
    """Return the lines that say most, in order, as a text of at most `limit` tokens."""
    lines = most_telling(lines)
    costs = [counter.count(f"{line}\n") for line in lines]
    # Who speaks is part of what a line says, and no news in another one: "I agree, Alice!" names nobody.
    speakers = {word for line in lines for word in line.speaker.lower().split()}
    names = [
        {name for name in mentions(line.text) if not any(one.startswith(name) for one in speakers)} for line in lines
    ]
    choice = prepare([str(line) for line in lines], costs, [_holds(line) for line in lines], names)
    best, room, fullest = NOTHING, limit, 0
    while room > 0:  # choose again with what the count shows of the costs
        places = choice.within(room)
        text = written([lines[place] for place in places])
        tokens = counter.count(text)
        if not places or fullest >= tokens:
            break
        if tokens <= limit:
            best, fullest = text, tokens
        if tokens == limit:
            break
        room += limit - tokens
    return best


def most_telling(lines: Sequence[Line]) -> list[Line]:
    """Return the lines that may be chosen from, in order: of many, those that a summary should want most."""
    return [lines[place] for place in selection.most_telling([line.text for line in lines])]


def _holds(line: Line) -> float:
    return BESIDE if line.speaker == TOOL else keeps(line.text)
