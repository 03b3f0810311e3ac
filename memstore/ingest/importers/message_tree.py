"""Exports whose conversations are trees, because every edit and every second try is a branch: ChatGPT and Claude.

Both are a `conversations.json`, zipped, in a folder or bare. What is imported is the active branch, from the first
message to the one that was seen last. A message without a time inherits that of its parent, or of the conversation.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, ClassVar, NamedTuple

from memstore.ingest.validation import check_name

from .base import EPOCH, Found, Ignored, Importer, Message, make_storable, time_or_none
from .files import Skipped, printable


class Node(NamedTuple):
    """A message in its tree: the parent's id, None for a first one."""

    parent: str | None
    time: datetime | None
    message: Any


class TreeImporter(Importer):
    """An export of conversations that are trees.

    `_nodes` returns a conversation's messages by id; `_convert_message` yields a message without its time, and what of
    it is ignored. Both raise for what they cannot read.
    """

    # One file, or from some size on several: `conversations-000.json`, …
    files = re.compile(r"(?:.*/)?conversations(?:[-_]?[0-9]{1,9})?\.json")
    unit = "conversation"
    keys: ClassVar[tuple[str, str, str, str]]  # of its id, its title, when it began, and its current message

    def _nodes(self, conversation: dict[str, Any]) -> dict[str, Node]:
        raise NotImplementedError

    def _convert_message(self, message: dict[str, Any], key: str) -> Iterator[Message | Ignored]:
        raise NotImplementedError

    def convert(self, value: dict[str, Any], where: str) -> Iterator[Found]:
        """Yield the messages of a conversation, from its beginning."""
        id_key, title_key, begun_key, current_key = self.keys
        key: Any = value.get(id_key) or value.get("id")
        check_name(key, "conversation")
        title = make_storable(value.get(title_key) or "")[0]
        where = f"{where.rpartition(', ')[0]}, conversation '{printable(title)}' ({printable(key)})"
        nodes, begun = self._nodes(value), time_or_none(value.get(begun_key))
        branch, missing = _active_branch(nodes, value.get(current_key))
        if missing is not None:
            reason = f"the message '{printable(missing)}' is missing, and all that was said before it; {self.again}"
            yield Skipped(where, reason)
        others = sum(nodes[name].message is not None for name in nodes.keys() - branch)
        if others:
            yield Ignored("messages of other branches", others)
        time = begun
        for name in branch:
            node = nodes[name]
            inherited, time = time, node.time or time
            if node.message is None:
                continue
            at = f"{where}, message {printable(name)}"
            found = self._convert_message(node.message, name)
            about = {"title": title.strip() or None, "channel": self.name}
            yield from self.records(found, at, key, node.time, inherited, **about)


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
