"""Conversations that are trees, because every edit and every second try is a branch. Pure.

A tree is given as the parent of each message: None for the first ones, and anything at all in a hostile file.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping
from datetime import datetime

from .records import EPOCH, word

Age = Callable[[str], datetime | None]


def taken(
    parents: dict[str, object], current: object, age: Age, *, all_branches: bool
) -> tuple[list[str], set[str], list[str]]:
    """Give the messages to take in their order, those that are on other branches, and what is wrong with the tree.

    `current` is the last message that was seen; where it is none of them, the newest that none follows.
    """
    problems = []
    if not (isinstance(current, str) and current in parents):
        if current is not None and parents:
            problems.append("its current message is not in the file; the branch with the newest one was taken")
        current = _newest_leaf(parents, age)
    way, wrong = _way_to(current, parents) if isinstance(current, str) else ([], [])
    others = parents.keys() - way
    if all_branches:
        way, wrong = _whole(parents, age)
    return way, others, problems + wrong


def _newest_leaf(parents: dict[str, object], age: Age) -> str | None:
    """Give the newest message that none follows; of equally new ones, the one that stands last."""
    followed = {parent for parent in parents.values() if isinstance(parent, str)}
    leaves = (key for key in reversed(parents) if key not in followed)
    return max(leaves, key=lambda key: age(key) or EPOCH, default=None)


def _way_to(leaf: str, parents: Mapping[str, object]) -> tuple[list[str], list[str]]:
    """Give the messages from the first one to this, and what is wrong on that way."""
    way: dict[str, None] = {}
    here: object = leaf
    while here is not None:
        if not isinstance(here, str) or here not in parents:
            return [*reversed(way)], [f"the message '{word(here)}' is missing, and all that was said before it"]
        if here in way:
            return [*reversed(way)], [f"its messages go in a circle at '{word(here)}'; each was taken once"]
        way[here] = None
        here = parents[here]
    return [*reversed(way)], []


def _whole(parents: Mapping[str, object], age: Age) -> tuple[list[str], list[str]]:
    """Give all messages, each after its parent and else by time, and what is wrong with the tree."""
    problems = []
    place = {key: number for number, key in enumerate(parents)}
    children: dict[str, list[str]] = {}
    ready: list[tuple[datetime, int, str]] = []
    for key, parent in parents.items():
        if isinstance(parent, str) and parent in parents:
            children.setdefault(parent, []).append(key)
            continue
        heapq.heappush(ready, (age(key) or EPOCH, place[key], key))
        if parent is not None:
            problems.append(f"the message '{word(parent)}' is missing, and all that was said before it")
    order: list[str] = []
    while ready:
        when, _, key = heapq.heappop(ready)
        order.append(key)
        for child in children.get(key, ()):
            heapq.heappush(ready, (age(child) or when, place[child], child))
    reached = set(order)
    if circle := [key for key in parents if key not in reached]:
        problems.append(f"its messages go in a circle at '{word(circle[0])}'; each was taken once")
    return order + circle, problems
