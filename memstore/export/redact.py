"""Redacts the lines of an export for a store that masks secrets. Pure.

Messages, conversations and documents are redacted as new ones are. Lines of derived rows that hold a secret are
skipped: their units, vectors and ids follow from it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from memstore.errors import InvalidInput
from memstore.export.shapes import ConversationLine, DocumentLine, DocumentVector, FactLine, Line, MessageLine
from memstore.export.source import Located
from memstore.ingest.add import counted
from memstore.ingest.importers import Skipped
from memstore.ingest.redaction import Redactor
from memstore.providers import TokenCounter

DERIVED = (
    "it holds what looks like a secret, which this store masks before it stores anything, and what was derived of it "
    "is in the file: memstore export --no-derived writes messages alone, which are masked as they come in"
)
TEXTS = ("text", "subject", "attribute", "value", "language", "type", "recipe", "counter")


def redact_lines(
    found: Iterable[Located | Skipped], redactor: Redactor, counter: TokenCounter
) -> Iterator[Located | Skipped]:
    """Yield lines with their secrets marked; for one that cannot be redacted, the reason."""
    for one in found:
        if isinstance(one, Skipped) or not redactor.detectors:
            yield one
            continue
        try:
            yield Located(one.where, one.size, _redact(one.line, redactor, counter))
        except InvalidInput as error:
            yield Skipped(one.where, str(error))


def _redact(line: Line, redactor: Redactor, counter: TokenCounter) -> Line:
    redactor.reject_secret_names(user=line.user, conversation=getattr(line, "conversation", None))
    if isinstance(line, ConversationLine):
        changes = [one.model_copy(update={"before": redactor.redact_json(one.before)}) for one in line.setting_changes]
        told = {name: redactor.redact(getattr(line, name)) for name in ("title", "channel")}
        return line.model_copy(
            update=told | {"settings": redactor.redact_json(line.settings), "setting_changes": changes}
        )
    if isinstance(line, DocumentLine):
        for label in (*line.namespace, line.key):
            redactor.reject_secret_names(name_of_a_document=label)
        value = redactor.redact_json(line.value)
        whole = value == line.value
        kept = [one for one in line.vectors if (whole or one.text is not None) and not _holds(one, redactor)]
        return line.model_copy(update={"value": value, "vectors": kept})
    if isinstance(line, MessageLine):
        return _message(line, redactor, counter)
    _refuse(_texts(line), redactor)
    return line


def _holds(vector: DocumentVector, redactor: Redactor) -> bool:
    """Whether what a vector is of, or the path that it stands under, holds a secret."""
    found: Counter[str] = Counter()
    redactor.redact_json([vector.path, vector.text], found)
    return bool(found)


def _texts(line: Line) -> list[Any]:
    """Give what a line of derived rows has of texts, JSON among them, but for ids and times."""
    found: list[Any] = [getattr(line, name, None) for name in TEXTS]
    found += [(one.speaker, one.role) for one in getattr(line, "units", ())]
    if isinstance(line, FactLine):
        found.append({line.attribute or "": line.value})
        found += [(one.actor, one.before, one.after) for one in line.history]
    return found


def _refuse(texts: Sequence[Any], redactor: Redactor) -> None:
    found: Counter[str] = Counter()
    redactor.redact_json(texts, found)
    if found:
        raise InvalidInput(DERIVED)


def _message(line: MessageLine, redactor: Redactor, counter: TokenCounter) -> MessageLine:
    _refuse([line.counter, *((one.speaker, one.role) for one in line.units)], redactor)
    row = line.row()
    if not redactor.redact_message(row):
        return line
    if line.units:
        raise InvalidInput(DERIVED)  # they are of its words
    counted([row], counter)
    same = ("name", "tool_calls", "tool_call_id", "tags", "tokens", "counter")
    said = {"content": row.text if row.parts is None else row.parts, "metadata": row.meta}
    return line.model_copy(update=said | {name: getattr(row, name) for name in same})
