"""The exact fill: which of the last small pieces leave the least of the budget unused. Pure."""

from __future__ import annotations

from collections.abc import Sequence


def fullest(sizes: Sequence[int], room: int) -> list[int]:
    """Give the places of pieces, in order, whose sizes have the greatest sum of at most `room`.

    Of several such choices the one that does without the last pieces: they come in the order of preference. A sum that
    can be reached is a bit of a whole number, so that forty pieces and two thousand tokens take microseconds.

    >>> fullest([40, 33, 30], 70)
    [0, 2]
    """
    if room <= 0:
        return []
    within = (1 << (room + 1)) - 1
    reached = [1]
    for size in sizes:
        reached.append((reached[-1] | reached[-1] << size) & within)
    total, chosen = reached[-1].bit_length() - 1, []
    for place in range(len(sizes) - 1, -1, -1):
        if not reached[place] >> total & 1:
            chosen.append(place)
            total -= sizes[place]
    return chosen[::-1]
