"""Where the compressed part of a conversation ends: from its tokens alone, and the same until the next trigger.

A boundary that moved with every turn would spoil a model's cached prefix every time; one that is kept in a row would
make a context depend on when it was asked for. So the growth of the conversation is played again, turn by turn: when
the tokens pass the trigger, the boundary moves until they are down to the target, and there it stays.
"""

from __future__ import annotations

from dataclasses import dataclass

from memstore.context.strategies.view import FLOOR, Block, View


@dataclass(frozen=True, slots=True)
class Cut:
    """The entries before index `end` were compressed when the message `since` had come."""

    end: int
    since: int


def cuts(view: View, trigger: float, target: float, allotted: float) -> list[Cut]:
    """Give the compactions of the conversation's past in order; the last one's `end` is the boundary of today.

    Tokens are shares of the view's room; `allotted` is what the compressed part may take, and counts in full. Entries
    that became blocks counted whole before they did. Linear in the entries.
    """
    found: list[Cut] = []
    blocks = sorted((entry.since, place) for place, entry in enumerate(view.entries) if isinstance(entry, Block))
    current = [view.whole(entry) for entry in view.entries]
    begin = live = due = 0
    for place, entry in enumerate(view.entries):
        seq = entry.turns[-1].messages[-1].seq if isinstance(entry, Block) else entry.messages[-1].seq
        live += current[place]
        while due < len(blocks) and blocks[due][0] <= seq:
            shrunk = blocks[due][1]
            if shrunk >= begin and shrunk <= place:
                live -= current[shrunk] - view.size(view.entries[shrunk])
            current[shrunk] = view.size(view.entries[shrunk])
            due += 1
        compressed = allotted * view.room if found else 0
        if live + compressed <= trigger * view.room:
            continue
        moved = begin
        while moved <= place - FLOOR and live + allotted * view.room > target * view.room:
            live -= 0 if view.fixed(view.entries[moved]) else current[moved]
            moved += 1
        if moved > begin:
            found.append(Cut(moved, seq))
            begin = moved
    return found
