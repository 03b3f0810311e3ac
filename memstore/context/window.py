"""The window: where the recent turns of a context begin. Pure.

A window that begins one turn later at every turn has a new start each time, and a model that keeps the prompt's start
in a cache computes all of it anew. So the window begins at a place that stays for a while: of the turns with which it
may begin, at the roundest number of a message. That follows from the numbers alone. No sum over the conversation and
no memory of the last context is needed, and a room that is a little larger or smaller hardly ever moves it.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

# By how much a window may be shorter than its room: so many turns, or such a part of the room, whichever is more, and
# never more than `MOST`. The curve is in benchmarks/NOTES.md.
TURNS, SHARE, MOST = 12, 0.05, 0.25


def window(starts: Sequence[int], tokens: Sequence[int], room: int, *, steps: bool = True) -> int:
    """Give how many of the newest turns a window of at most `room` tokens has.

    `starts` are the numbers of the first messages of turns, the newest first, `tokens` what the turns take. Where all
    of them fit, all are in; without `steps`, as many as fit.
    """
    sums = list(accumulate(tokens))
    most = sum(1 for so_far in sums if so_far <= room)
    if most in (0, len(sums)) or not steps:
        return most
    slack = min(MOST * room, max(SHARE * room, sums[most - 1] - (sums[most - 1 - TURNS] if most > TURNS else 0)))
    first = next(count for count in range(1, most + 1) if sums[count - 1] >= sums[most - 1] - slack)
    return max(range(first, most + 1), key=lambda count: _roundness(starts[count], starts[count - 1]))


def _roundness(before: int, start: int) -> int:
    """Give how round the roundest number after `before` and up to `start` is: the exponent of two that divides it."""
    return (before ^ start).bit_length()
