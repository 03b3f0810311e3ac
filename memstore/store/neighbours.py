"""Which units stand beside which: what was said just before and after in the same session, by the same role; and which
message of a person an assistant answers. Pure.

A session is a run of a conversation without a long silence. Roles stand apart: beside a short question the long answer
would be all of the neighbourhood.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.int64]
Flags = NDArray[np.bool_]

REACH = 2  # units on either side
KERNEL = np.array([0.2, 0.4, 1.0, 0.4, 0.2])  # what a unit and its neighbours count in the mean of their vectors
SILENCE_HOURS = 4
SILENCE = SILENCE_HOURS * 3600 * 10**6  # microseconds
MOST_ROLES = 8


def sessions(conversations: Numbers, times: Numbers) -> Numbers:
    """Give the number of the session of each unit; they are in the order of their conversations (n, 2), and said at
    `times` in microseconds.
    """
    begins = np.ones(len(times), dtype=np.bool_)
    begins[1:] = (np.diff(conversations, axis=0) != 0).any(axis=1) | (np.abs(np.diff(times)) > SILENCE)
    return np.cumsum(begins)


def neighbours(conversations: Numbers, places: tuple[Numbers, Numbers], roles: Numbers, times: Numbers) -> Numbers:
    """Give the neighbours of units in any order, (2 · REACH, n): numbers of units, n where there is none.

    `conversations` (n, 2) are halves of ids, `places` numbers of messages and of chunks in them, `times` microseconds.
    """
    count = len(times)
    first, second = conversations.T
    order = np.lexsort((places[1], places[0], second, first))
    session = sessions(conversations[order], times[order])
    groups = session * MOST_ROLES + roles[order]
    within = np.argsort(groups, kind="stable")
    order, groups = order[within], groups[within]
    beside = np.full((2 * REACH, count), count, dtype=np.int64)
    for steps in range(1, REACH + 1):
        together = groups[steps:] == groups[:-steps]
        earlier, later = order[:-steps][together], order[steps:][together]
        beside[REACH - steps, later] = earlier
        beside[REACH + steps - 1, earlier] = later
    return beside


def last_asked(conversations: Numbers, seqs: Numbers, by_person: Flags, answering: Flags) -> tuple[Numbers, Numbers]:
    """Give a number for the message of each unit, and that of the person's message last said before it, both (n,).

    The latter is -1 for units that are not `answering`, and where no person spoke before them in the conversation. Of
    messages that are not there nothing is known, so nothing answers across them.
    """
    first, second = conversations.T
    order = np.lexsort((seqs, second, first))
    steps = np.diff(seqs[order])
    fresh = np.ones(len(order), dtype=np.bool_)  # the first unit of a conversation, or after what is not there
    fresh[1:] = (np.diff(conversations[order], axis=0) != 0).any(axis=1) | (steps > 1)
    begins = fresh.copy()
    begins[1:] |= steps != 0
    numbers = np.cumsum(begins) - 1
    asked = np.maximum.accumulate(np.where(by_person[order], numbers, -1))
    start = np.maximum.accumulate(np.where(fresh, numbers, 0))
    found = np.where(answering[order] & (asked >= start), asked, -1)
    both = np.empty((2, len(order)), dtype=np.int64)
    both[:, order] = numbers, found
    return both[0], both[1]
