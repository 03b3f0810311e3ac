"""What of an export may come in, and as what: checked, redacted, compared with what is stored. Asks no database."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar, cast
from uuid import UUID

import numpy as np

from memstore.context.request import STRATEGIES, VISIBILITY, check_settings, check_size
from memstore.derive.chunks import speaker_prefixed
from memstore.derive.dependencies import Dependencies
from memstore.errors import InvalidInput
from memstore.export.reader import LocatedLine
from memstore.export.schema import (
    ConversationLine,
    DocumentLine,
    ExportLine,
    FactLine,
    MessageLine,
    SummaryLine,
    UnitLine,
    UserLine,
    decode_vector,
    default_unit,
)
from memstore.ingest.add import count_tokens
from memstore.ingest.importers import Skipped
from memstore.ingest.redaction import Redactor
from memstore.ingest.validation import validate_message
from memstore.models import FactColumns, FactSpan, Json, Message, Summary
from memstore.providers import TokenCounter, Vectors
from memstore.store.fact_history import recorded
from memstore.store.messages import CLEARED
from memstore.store.rows import ChunkRow, FactOnRecord, FactWithHistory, NewChunk, Row
from memstore.store.tokenize import hash_terms

Item = TypeVar("Item", Message, Summary, FactWithHistory)

# --- redaction


NOT_MASKED = (
    "it holds what looks like a secret, which this store masks before it stores anything, and what was derived of it "
    "is in the file: memstore export --no-derived writes messages alone, which are masked as they come in"
)
TEXTS = ("text", "subject", "attribute", "value", "language", "type", "recipe", "counter")


def redact_lines(
    lines: Iterable[LocatedLine | Skipped], redactor: Redactor, counter: TokenCounter
) -> Iterator[LocatedLine | Skipped]:
    """Yield lines with their secrets marked, as those of new messages, conversations and documents are.

    Derived rows that hold a secret are skipped: their units, vectors and ids follow from it.
    """
    for one in lines:
        if isinstance(one, Skipped) or not redactor.detectors:
            yield one
            continue
        try:
            yield LocatedLine(one.where, one.size, _redact(one.line, redactor, counter))
        except InvalidInput as error:
            yield Skipped(one.where, str(error))


def _redact(line: ExportLine, redactor: Redactor, counter: TokenCounter) -> ExportLine:
    redactor.reject_secret_names(user=line.user, conversation=getattr(line, "conversation", None))
    if isinstance(line, ConversationLine):
        changes = [one.model_copy(update={"before": redactor.redact_json(one.before)}) for one in line.setting_changes]
        redacted = {name: redactor.redact(getattr(line, name)) for name in ("title", "channel")}
        return line.model_copy(
            update=redacted | {"settings": redactor.redact_json(line.settings), "setting_changes": changes}
        )
    if isinstance(line, DocumentLine):
        for label in (*line.namespace, line.key):
            redactor.reject_secret_names(name_of_a_document=label)
        value = redactor.redact_json(line.value)
        vectors = [
            vector
            for vector in line.vectors
            if (value == line.value or vector.text is not None)
            and not _has_secret([vector.path, vector.text], redactor)
        ]
        return line.model_copy(update={"value": value, "vectors": vectors})
    if isinstance(line, MessageLine):
        return _redact_message(line, redactor, counter)
    texts: list[Any] = [getattr(line, name, None) for name in TEXTS]
    texts += [(unit.speaker, unit.role) for unit in getattr(line, "units", ())]
    if isinstance(line, FactLine):
        texts.append({line.attribute or "": line.value})
        texts += [(change.actor, change.before, change.after) for change in line.history]
    if _has_secret(texts, redactor):
        raise InvalidInput(NOT_MASKED)
    return line


def _redact_message(line: MessageLine, redactor: Redactor, counter: TokenCounter) -> MessageLine:
    if _has_secret([line.counter, *((unit.speaker, unit.role) for unit in line.units)], redactor):
        raise InvalidInput(NOT_MASKED)
    row = line.row()
    if not redactor.redact_message(row):
        return line
    if line.units:  # they are of its words
        raise InvalidInput(NOT_MASKED)
    count_tokens([row], counter)
    same = ("name", "tool_calls", "tool_call_id", "tags", "tokens", "counter")
    redacted = {"content": row.text if row.parts is None else row.parts, "metadata": row.meta}
    return line.model_copy(update=redacted | {name: getattr(row, name) for name in same})


def _has_secret(texts: Sequence[Any], redactor: Redactor) -> bool:
    counts: Counter[str] = Counter()
    redactor.redact_json(texts, counts)
    return bool(counts)


# --- rows to be stored


@dataclass(frozen=True, slots=True)
class Prepared(Generic[Item]):
    """A message, summary or fact to be stored, the line that it comes from, and its units."""

    where: str
    line: MessageLine | SummaryLine | FactLine
    item: Item
    units: list[ChunkRow]

    @property
    def row(self) -> Row:
        """The item's own row."""
        return self.item.fact if isinstance(self.item, FactWithHistory) else self.item


def prepare(
    lines: Sequence[LocatedLine], user: UserLine | None, max_message_bytes: int
) -> tuple[list[Prepared[Any]], list[Skipped]]:
    """Return the lines of items as they are to be stored, and those that cannot be."""
    dimensions = user.embedder.dimensions if user is not None and user.embedder is not None else None
    prepared: list[Prepared[Any]] = []
    skipped: list[Skipped] = []
    for located in lines:
        try:
            line = cast(MessageLine | SummaryLine | FactLine, located.line)
            item: Message | Summary | FactWithHistory
            if isinstance(line, MessageLine):
                validate_message(line, max_bytes=max_message_bytes)
                row: Row = (item := line.row())
            elif isinstance(line, SummaryLine):
                row = (item := line.row())
            else:
                row = line.row()
                sources = [
                    (FactSpan(src.message_id, src.start, src.stop, src.trust), src.recorded_at) for src in line.sources
                ]
                item = FactWithHistory(row, sources, [change.model_dump() for change in line.history])
            prepared.append(Prepared(located.where, line, item, _units(row, line.units, dimensions)))
        except InvalidInput as error:
            skipped.append(Skipped(located.where, str(error)))
    return prepared, skipped


UNIT_LENGTH = 1e-3  # how far from it the length of a vector may be


def _units(row: Row, lines: Sequence[UnitLine], dimensions: int | None) -> list[ChunkRow]:
    """Return an item's units; raise `InvalidInput` for one that lies outside of its text, or has a wrong vector."""
    length = len(row.text or "")
    units = []
    for chunk, line in enumerate(lines):
        if not line.start <= line.stop <= length:
            raise InvalidInput(f"its unit {chunk} is {line.start} to {line.stop}, and its text has {length} characters")
        own = {name: getattr(line, name) for name in line.model_fields_set - {"start", "stop", "recorded_at", "vector"}}
        unit = replace(default_unit(row, chunk, line.start, line.stop), **own)
        vector = None
        if line.vector is not None and dimensions is not None:
            vector = decode_vector(line.vector, f"its unit {chunk}")
            # A longer one would be found for whatever is asked; of what is not finite nothing would come out right.
            if len(vector) != dimensions or not abs(np.linalg.norm(vector) - 1) < UNIT_LENGTH:
                raise InvalidInput(f"the vector of its unit {chunk} is not {dimensions} components of length 1")
        units.append(ChunkRow(unit, line.recorded_at, vector))
    return units


def hash_units(items: Sequence[Prepared[Any]], resources: Dependencies | None) -> dict[UUID, list[NewChunk]]:
    """Return the units of items to be stored, with their own vectors, or with new ones that `resources` make."""
    units = [(one.row, kept) for one in items for kept in one.units]
    texts = []
    for row, kept in units:
        text = (row.text or "")[kept.unit.start : kept.unit.stop]
        texts.append(speaker_prefixed(kept.unit.speaker or "", text) if isinstance(row, Message) else text)
    vectors: Sequence[Vectors | None] = [kept.vector for _, kept in units]
    if resources is not None:
        vectors = resources.embed(texts)
    hashed: dict[UUID, list[NewChunk]] = {}
    for (row, kept), text, vector in zip(units, texts, vectors, strict=True):
        tags = row.tags if isinstance(row, Message) else ()
        unit = NewChunk(kept.unit, *hash_terms(text, row.user_id), vector, tags, kept.recorded_at)
        hashed.setdefault(row.id, []).append(unit)
    return hashed


# --- comparison with what is stored (None where they are the same)

COMPARED = {
    "message": (
        "conversation_id",
        "seq",
        "role",
        "name",
        "content",
        "tool_calls",
        "tool_call_id",
        "tags",
        "meta",
        "external_id",
        "occurred_at",
    ),
    "summary": ("text", "tokens", "counter", "occurred_at", "occurred_until"),
    "conversation": ("title", "channel", "settings"),
}


def describe_difference(kind: str, stored: Any, given: Any) -> str | None:
    """Say where a stored message, summary or conversation differs from one of the same id."""
    return _known_with_another(kind, [name for name in COMPARED[kind] if getattr(stored, name) != getattr(given, name)])


def describe_fact_difference(stored: FactOnRecord, given: FactWithHistory) -> str | None:
    """Say where a stored fact differs from one of the same id; one that went on from there does not."""
    changes = {change["id"] for change in given.history}
    if not changes <= stored.changes:
        return _known_with_another("fact", ["history"])
    if changes < stored.changes:
        return None
    before, after = _columns(stored.fact), _columns(given.fact)
    return _known_with_another("fact", [name for name in before if before[name] != after[name]])


def _columns(fact: FactColumns) -> Json:
    return recorded(fact) | {"confidence": np.float32(fact.confidence)}


def _known_with_another(kind: str, names: Sequence[str]) -> str | None:
    if not names:
        return None
    return f"the {kind} is known with another {', another '.join(names)}; what is stored stays as it is"


def usable_settings(settings: Json) -> tuple[Json, str | None]:
    """Return a conversation's settings where they can be used; else none, and what is wrong with them.

    Strategies and rules that are not known here stay: contexts leave the ones out, and are refused for the others.
    """
    known = {name: value for name, value in settings.items() if name not in (CLEARED, STRATEGIES)}
    if isinstance(known.get(VISIBILITY), str):
        del known[VISIBILITY]
    cleared = settings.get(CLEARED, 0)
    try:
        if type(cleared) is not int or cleared < 0:
            raise InvalidInput(f"{CLEARED!r} is the number of a message.")
        check_settings(known)
        check_size(settings)
    except InvalidInput as error:
        return {}, f"its settings are left out: {error}"
    return settings, None
