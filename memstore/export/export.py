"""A user's memory out: each user as of one moment, a line after the other, in memory that does not grow with it.

Not in it are what this installation did (events, receipts, jobs, dead letters, what models cost) and how it is set.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any
from uuid import UUID

import numpy as np

from memstore import ids
from memstore.errors import InvalidInput
from memstore.export import units
from memstore.export.output import Lines, Target, opened
from memstore.export.shapes import (
    FORMAT,
    HEADER,
    VERSION,
    ConversationLine,
    FactLine,
    MessageLine,
    SummaryLine,
)
from memstore.models import ExportReport, Json
from memstore.store import exports
from memstore.store.archived import Item, Owner, Told, Wanted
from memstore.store.database import Database, Transaction

Progress = Callable[[str, int, int], None]
COUNTED = {
    "user": "users",
    "conversation": "conversations",
    "message": "messages",
    "summary": "summaries",
    "fact": "facts",
    "document": "documents",
}
TELLING = 1000  # messages, after which it is told how far it is
# The keys of lines that are the columns of rows; what both call by another name is given beside them.
MESSAGE, SUMMARY, FACT, CONVERSATION = (
    tuple(shape.model_fields) for shape in (MessageLine, SummaryLine, FactLine, ConversationLine)
)


@dataclass(frozen=True, slots=True)
class Selection:
    """What is exported: one conversation or all, what was made of messages or not, vectors or not."""

    conversation: str | None = None
    derived: bool = True
    vectors: bool = True


async def export(
    database: Database,
    target: Target,
    users: AsyncIterator[str] | Sequence[str],
    selection: Selection,
    progress: Progress = lambda *_: None,
) -> ExportReport:
    """Write the memory of users to a file or stream; give what was written.

    `progress(user, done, total)` is called with messages. Raises `InvalidInput` for a user or a conversation that
    nobody knows, and for a path that cannot be written: of a file nothing is left then.
    """
    with opened(target) as out:
        lines = Lines(out)
        await lines.put(_header(selection))
        if isinstance(users, Sequence):
            for name in users:
                await _Export(name, selection, lines, progress).run(database)
        else:
            async for name in users:
                await _Export(name, selection, lines, progress).run(database)
        await lines.end()
    return ExportReport(**{counted: lines.counts[kind] for kind, counted in COUNTED.items()})


def _header(selection: Selection) -> Json:
    return {
        "kind": HEADER,
        "format": FORMAT,
        "version": VERSION,
        "memstore": version("memstore"),
        "exported_at": datetime.now(UTC),
        "derived": selection.derived,
        "vectors": selection.derived and selection.vectors,
    }


class _Export:
    """The export of one user."""

    def __init__(self, name: str, selection: Selection, lines: Lines, progress: Progress) -> None:
        self.name = name
        self.selection = selection
        self.lines = lines
        self.progress = progress
        self.done = 0

    async def run(self, database: Database) -> None:
        user = ids.user_id(self.name)
        named = self.selection.conversation
        only = None if named is None else ids.conversation_id(user, named)
        async with database.scope(user) as scope:
            await exports.freeze(scope)
            owner = await exports.owner(scope)
            if owner is None:
                raise InvalidInput(f"There is no user {self.name!r}: nothing was exported.")
            await self.lines.put(self._user(owner))
            wanted = Wanted(self.selection.derived, owner.model_id if self.selection.vectors else None)
            found = False
            async for told in exports.conversations(scope, only):
                found = True
                await self._conversation(scope, told, wanted, owner.messages)
            if only is not None and not found:
                raise InvalidInput(f"{self.name!r} has no conversation {named!r}: nothing was exported.")
            await self._facts(scope, wanted, only)
            if only is None:
                await self._documents(scope)

    async def _conversation(self, scope: Transaction, told: Told, wanted: Wanted, total: int) -> None:
        place: Json = {"user": self.name, "conversation": told.conversation.name}
        marks = {name: {"seq": seq, "recipe": recipe} for name, (seq, recipe) in told.watermarks.items()}
        row = _columns(told.conversation, CONVERSATION)
        line = {"kind": "conversation"} | place | row | {"setting_changes": told.setting_changes}
        await self.lines.put(line | {"watermarks": marks if self.selection.derived else None})
        if self.selection.derived:
            async with aclosing(exports.summaries(scope, told.conversation.id, wanted)) as summaries:
                async for one in summaries:
                    await self.lines.put({"kind": "summary"} | place | _item(one, SUMMARY))
        async with aclosing(exports.messages(scope, told.conversation.id, wanted)) as messages:
            async for one in messages:
                await self.lines.put({"kind": "message"} | place | _item(one, MESSAGE))
                self.done += 1
                if self.done % TELLING == 0:
                    self.progress(self.name, self.done, max(total, self.done))
        self.progress(self.name, self.done, max(total, self.done))

    async def _facts(self, scope: Transaction, wanted: Wanted, only: UUID | None) -> None:
        # What people entered is made of no message; its vector is.
        mine = Wanted(True, wanted.model if wanted.units else None)
        by_hand = not self.selection.derived
        async with aclosing(exports.facts(scope, mine, only=only, by_hand=by_hand)) as facts:
            async for one in facts:
                await self.lines.put({"kind": "fact", "user": self.name} | _item(one, FACT))

    async def _documents(self, scope: Transaction) -> None:
        async with aclosing(exports.documents(scope, vectors=self.selection.vectors)) as documents:
            async for row in documents:
                ttl = None if row["ttl"] is None else row["ttl"].total_seconds()
                vectors = [units.named_vector(*one) for one in row["vectors"] or ()]
                await self.lines.put({"kind": "document", "user": self.name} | row | {"ttl": ttl, "vectors": vectors})

    def _user(self, owner: Owner) -> Json:
        with_vectors = self.selection.derived and self.selection.vectors and owner.embedder is not None
        embedder = {"name": owner.embedder, "dimensions": owner.dimensions} if with_vectors else None
        told: Json = {"id": ids.user_id(self.name), "settings": owner.settings, "created_at": owner.created_at}
        return {"kind": "user", "user": self.name} | told | {"embedder": embedder}


def _item(one: Item, keys: Sequence[str]) -> Json:
    row: Any = one.row
    line = _columns(row, keys)
    if "content" in keys:
        line |= {"content": row.content, "metadata": row.meta}
    if "fact_kind" in keys:
        # A column of 32 bits: the shortest number that is the same there.
        line |= {"fact_kind": row.kind, "confidence": float(str(np.float32(row.confidence)))}
        line |= {"sources": one.sources, "history": one.history}
    return line | {"units": units.as_json(row, one.units)}


def _columns(row: Any, keys: Sequence[str]) -> Json:
    held = vars(row)
    return {key: held[key] for key in keys if key in held and key not in ("user", "conversation", "kind")}
