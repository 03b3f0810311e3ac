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

from memstore.ingest.validation import check_name

from .base import (
    EPOCH,
    Found,
    Ignored,
    ImportOptions,
    Record,
    Skipped,
    make_storable,
    printable,
    report_damage,
    time_or_none,
    with_time,
)
from .files import Part, read_parts
from .json_stream import convert_values

# One file, or from some size on several: `conversations-000.json`, …
CONVERSATIONS = re.compile(r"(?:.*/)?conversations(?:[-_]?[0-9]{1,9})?\.json")


class Node(NamedTuple):
    """A message in its tree: the parent's id, None for a first one."""

    parent: str | None
    time: datetime | None
    message: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeFormat:
    """What is particular to an export.

    `nodes` is called with a conversation and returns its messages by id; `convert` with a message and its id, and
    yields the message without its time, and what of it is ignored. Both raise for what they cannot read.
    """

    channel: str
    id_key: str
    title_key: str
    begun_key: str
    current_key: str
    nodes: Callable[[dict[str, Any]], dict[str, Node]]
    convert: Callable[[dict[str, Any], str], Iterator[dict[str, Any] | Ignored]]
    again: str  # what to do about a damaged file


def read_conversations(path: Path, options: ImportOptions, format: TreeFormat) -> Iterator[Found]:
    """Yield the messages of each conversation of an export, and what could not be read of it."""

    def read(part: Part) -> Iterator[Found]:
        def convert(given: Any, where: str) -> Iterator[Found]:
            return _conversation(given, part.where, options.all_branches, format)

        return convert_values(part, "conversation", format.again, convert)

    return read_parts(path, CONVERSATIONS, options, read, format.again)


def _conversation(given: dict[str, Any], file: str, all_branches: bool, format: TreeFormat) -> Iterator[Found]:
    key: Any = given.get(format.id_key) or given.get("id")
    check_name(key, "conversation")
    title = make_storable(given.get(format.title_key) or "")[0]
    where = f"{file}, conversation '{printable(title)}' ({printable(key)})"
    nodes, begun = format.nodes(given), time_or_none(given.get(format.begun_key))
    branch, missing = _active_branch(nodes, given.get(format.current_key))
    if missing is not None:
        reason = f"the message '{printable(missing)}' is missing, and all that was said before it; {format.again}"
        yield Skipped(where, reason)
    others = {name for name in nodes.keys() - branch if nodes[name].message is not None}
    if others and not all_branches:
        yield Ignored("messages of other branches", len(others))
    times: dict[str | None, datetime | None] = {}
    for name in _by_time(nodes) if all_branches else branch:
        node = nodes[name]
        inherited = times.get(node.parent) or begun
        times[name] = node.time or inherited
        if node.message is None:
            continue
        at = f"{where}, message {printable(name)}"
        for one in report_damage(format.convert(node.message, name), at, format.again):
            if not isinstance(one, dict):
                yield one
                continue
            one["metadata"] |= {"branch": "other"} if name in others else {}
            message = with_time(one, node.time, inherited)
            yield Record(
                conversation=key, message=message, title=title.strip() or None, channel=format.channel, where=at
            )


def _active_branch(nodes: Mapping[str, Node], current: str | None) -> tuple[list[str], str | None]:
    """Return the messages up to the current one, or to the newest that none follows; and a parent that is missing."""
    if current not in nodes:
        followed = {node.parent for node in nodes.values()}
        leaves = (key for key in reversed([*nodes]) if key not in followed)
        current = max(leaves, key=lambda key: nodes[key].time or EPOCH, default=None)
    path: dict[str, None] = {}
    while current is not None and current in nodes and current not in path:
        path[current] = None
        current = nodes[current].parent
    return [*reversed(path)], None if current in nodes else current


def _by_time(nodes: Mapping[str, Node]) -> list[str]:
    """Return all messages by time, but each after its parent."""
    children: dict[str | None, list[str]] = {}
    for key, node in nodes.items():
        children.setdefault(node.parent if node.parent in nodes else None, []).append(key)
    place = {key: number for number, key in enumerate(nodes)}
    ready: list[tuple[datetime, int, str | None]] = [(EPOCH, 0, None)]
    order: list[str] = []
    while ready:
        when, _, here = heapq.heappop(ready)
        order += [] if here is None else [here]
        for child in children.get(here, ()):
            heapq.heappush(ready, (nodes[child].time or when, place[child], child))
    return order
