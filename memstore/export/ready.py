"""Lines as they are to be stored: checked, with their units, hashed and embedded. Costs time, and asks no database."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import cast
from uuid import UUID

from memstore.derive.dependencies import Dependencies
from memstore.errors import InvalidInput
from memstore.export import units
from memstore.export.shapes import FactLine, Line, MessageLine, SummaryLine, UserLine
from memstore.export.source import Located
from memstore.ingest.check import checked
from memstore.ingest.importers.records import Skipped
from memstore.models import FactSpan, Message, Summary
from memstore.store.archived import Hashed, Row, UnitKept, Whole
from memstore.store.terms import TermHashes

Item = Message | Summary | Whole


@dataclass(frozen=True, slots=True)
class Ready:
    """A line of a message, summary or fact, what is to be stored for it, and its units."""

    where: str
    line: Line
    item: Item
    units: list[UnitKept]

    @property
    def id(self) -> UUID:
        """The item's id."""
        return self.row.id

    @property
    def row(self) -> Row:
        """The item's own row."""
        return self.item.fact if isinstance(self.item, Whole) else self.item

    @property
    def message(self) -> Message:
        """The message that the line is of."""
        return cast(Message, self.item)

    @property
    def summary(self) -> Summary:
        """The summary that the line is of."""
        return cast(Summary, self.item)

    @property
    def fact(self) -> Whole:
        """The fact that the line is of."""
        return cast(Whole, self.item)


def ready(lines: Sequence[Located], user: UserLine | None, max_message_bytes: int) -> tuple[list[Ready], list[Skipped]]:
    """Give the lines of items as they are to be stored, and those that cannot be with the reason."""
    dimensions = user.embedder.dimensions if user is not None and user.embedder is not None else None
    found: list[Ready] = []
    skipped: list[Skipped] = []
    for one in lines:
        try:
            found.append(_ready(one, dimensions, max_message_bytes))
        except InvalidInput as error:
            skipped.append(Skipped(one.where, str(error)))
    return found, skipped


def _ready(one: Located, dimensions: int | None, max_message_bytes: int) -> Ready:
    line = one.line
    item: Item
    if isinstance(line, MessageLine):
        checked(line, where="the message", max_bytes=max_message_bytes)
        item = line.row()
    elif isinstance(line, SummaryLine):
        item = line.row()
    else:
        assert isinstance(line, FactLine)
        item = _whole(line)
    row = item.fact if isinstance(item, Whole) else item
    return Ready(one.where, line, item, units.kept(row, line.units, dimensions))


def _whole(line: FactLine) -> Whole:
    sources = [(FactSpan(one.message_id, one.start, one.stop, one.trust), one.recorded_at) for one in line.sources]
    return Whole(line.row(), sources, [change.model_dump() for change in line.history])


def new_units(given: Sequence[Ready], resources: Dependencies | None) -> dict[UUID, list[Hashed]]:
    """Give the units of items to be stored, with their own vectors, or with those that `resources` make."""
    pairs = [(one, kept, units.text_of(one.row, kept.unit)) for one in given for kept in one.units]
    vectors = [kept.vector for _, kept, _ in pairs]
    if resources is not None:
        vectors = resources.embed([text for _, _, text in pairs])
    made: dict[UUID, list[Hashed]] = {}
    hashes = TermHashes()
    for (one, kept, text), vector in zip(pairs, vectors, strict=True):
        tags = one.row.tags if isinstance(one.row, Message) else ()
        hashed = Hashed(replace(kept, vector=vector), *hashes.of(text, one.row.user_id), tags)
        made.setdefault(one.id, []).append(hashed)
    return made
