"""Exports whose conversations are trees, because every edit and every second try is a branch: ChatGPT and Claude.

Both are a `conversations.json`, zipped, in a folder or bare. What is imported is the active branch, from the first
message to the one that was seen last; with `all_branches` the others come too, in the order of time, with
`{"branch": "other"}` in the metadata. A message without a time inherits that of its parent, or of the conversation.
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from memstore.errors import InvalidInput

from .base import (
    EPOCH,
    Found,
    Ignored,
    ImportOptions,
    Record,
    Skipped,
    describe,
    is_id,
    make_storable,
    printable,
    with_time,
)
from .files import Part, read_parts
from .json_stream import numbered_elements

# One file, or from some size on several: `conversations-000.json`, …
CONVERSATIONS = re.compile(r"(?!__MACOSX/)(?:.*/)?conversations(?:[-_]?[0-9]{1,9})?\.json")


class Node(NamedTuple):
    """A message in its tree: the parent's id, None for a first one, and anything at all in a hostile file."""

    parent: object
    time: datetime | None
    message: Any


class Tree(NamedTuple):
    """A conversation: its nodes by id, the id of the message that was seen last, when it began, what is wrong."""

    nodes: dict[str, Node]
    current: object
    begun: datetime | None
    skipped: list[Skipped]


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeFormat:
    """What is particular to an export.

    `parse` is called with a conversation and its place; `convert` with a message and its id, and yields the message
    without its time, and what of it is ignored. Both raise `InvalidInput` for what they cannot read.
    """

    channel: str
    id_keys: tuple[str, ...]
    title_key: str
    parse: Callable[[dict[str, Any], str], Tree]
    convert: Callable[[dict[str, Any], str], Iterator[dict[str, Any] | Ignored]]
    again: str  # what to do about a damaged file


def read_conversations(path: Path, options: ImportOptions, format: TreeFormat) -> Iterator[Found]:
    """Yield the messages of each conversation of an export, and what could not be read of it."""

    def read(part: Part) -> Iterator[Found]:
        for one in numbered_elements(part, "conversation", format.again):
            if isinstance(one, Skipped):
                yield one
            else:
                yield from _conversation(one[1], one[0], part.where, options.all_branches, format)

    return read_parts(path, CONVERSATIONS, options, read, format.again)


def _conversation(given: Any, where: str, file: str, all_branches: bool, format: TreeFormat) -> Iterator[Found]:
    if not isinstance(given, dict):
        yield Skipped(where, f"it is not an object; {format.again}")
        return
    key = next(filter(None, map(given.get, format.id_keys)), None)
    if not is_id(key):
        yield Skipped(where, f"it has no id that can be kept; {format.again}")
        return
    title = given.get(format.title_key)
    title = make_storable(title)[0] if isinstance(title, str) and title.strip() else None
    where = f"{file}, conversation '{printable(title or '')}' ({printable(key)})"
    try:
        tree = format.parse(given, where)
    except InvalidInput as error:
        yield Skipped(where, str(error))
        return
    yield from tree.skipped
    order, others, problems = active_branch(tree.nodes, tree.current, all_branches=all_branches)
    yield from (Skipped(where, f"{problem}; {format.again}") for problem in problems)
    if others and not all_branches:
        yield Ignored("messages of other branches", len(others))
    times: dict[object, datetime | None] = {}
    for name in order:
        node, at = tree.nodes[name], f"{where}, message {printable(name)}"
        inherited = (times.get(node.parent) if isinstance(node.parent, str) else None) or tree.begun
        times[name] = node.time or inherited
        if node.message is None:
            continue
        try:
            if not isinstance(node.message, dict):
                raise InvalidInput(f"it is not an object; {format.again}")
            for one in format.convert(node.message, name):
                if isinstance(one, Ignored):
                    yield one
                    continue
                one["metadata"] |= {"branch": "other"} if name in others else {}
                message = with_time(one, node.time, inherited)
                yield Record(conversation=key, message=message, title=title, channel=format.channel, where=at)
        except InvalidInput as error:
            yield Skipped(at, str(error))


def active_branch(
    nodes: Mapping[str, Node], current: object, *, all_branches: bool
) -> tuple[list[str], set[str], list[str]]:
    """Return the messages to import in their order, those that are on other branches, and what is wrong with the tree.

    `current` is the message that was seen last; where it is none of them, the newest that none follows.
    """
    problems = []
    if not (isinstance(current, str) and current in nodes):
        if current is not None and nodes:
            problems.append("its current message is not in the file; the branch with the newest one was taken")
        followed = {node.parent for node in nodes.values() if isinstance(node.parent, str)}
        leaves = (key for key in reversed([*nodes]) if key not in followed)
        current = max(leaves, key=lambda key: nodes[key].time or EPOCH, default=None)
    branch, wrong = _path_to(current, nodes) if isinstance(current, str) else ([], [])
    others = {key for key in nodes.keys() - branch if isinstance(nodes[key].message, dict)}
    if all_branches:
        branch, wrong = _by_time(nodes)
    if nodes and not branch:
        problems.append("none of its messages is the last one")
    return branch, others, problems + wrong


def _path_to(leaf: str, nodes: Mapping[str, Node]) -> tuple[list[str], list[str]]:
    path: dict[str, None] = {}
    here: object = leaf
    while here is not None:
        if not isinstance(here, str) or here not in nodes:
            return [*reversed(path)], [_missing(here)]
        if here in path:
            return [*reversed(path)], [_circle(here)]
        path[here] = None
        here = nodes[here].parent
    return [*reversed(path)], []


def _by_time(nodes: Mapping[str, Node]) -> tuple[list[str], list[str]]:
    """Return all messages, each after its parent and else by time, and what is wrong with the tree."""
    problems = []
    place = {key: number for number, key in enumerate(nodes)}
    children: dict[str, list[str]] = {}
    ready: list[tuple[datetime, int, str]] = []
    for key, node in nodes.items():
        if isinstance(node.parent, str) and node.parent in nodes:
            children.setdefault(node.parent, []).append(key)
            continue
        heapq.heappush(ready, (node.time or EPOCH, place[key], key))
        if node.parent is not None:
            problems.append(_missing(node.parent))
    order: list[str] = []
    while ready:
        when, _, key = heapq.heappop(ready)
        order.append(key)
        for child in children.get(key, ()):
            heapq.heappush(ready, (nodes[child].time or when, place[child], child))
    reached = set(order)
    circle = [key for key in nodes if key not in reached]
    return order + circle, problems + [_circle(key) for key in circle[:1]]


def _missing(key: object) -> str:
    return f"the message '{describe(key)}' is missing, and all that was said before it"


def _circle(key: str) -> str:
    return f"its messages go in a circle at '{describe(key)}'; each was taken once"
