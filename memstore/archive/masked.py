"""Lines of an export as a store takes them in that masks secrets before it stores them. Pure.

What was said, and is to be derived here, is masked as a new message is. A line that others in the file rest on by its
words, or that rests on others, is refused whole: its units, its vectors and its id are of the secret.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from memstore.archive.shapes import ConversationLine, DocumentLine, DocumentVector, FactLine, Line, MessageLine
from memstore.archive.source import Located
from memstore.errors import InvalidInput
from memstore.ingest.add import counted
from memstore.ingest.importers import Skipped
from memstore.ingest.masking import Masking
from memstore.providers import TokenCounter

DERIVED = (
    "it holds what looks like a secret, which this store masks before it stores anything, and what was derived of it "
    "is in the file: memstore export --no-derived writes messages alone, which are masked as they come in"
)
TEXTS = ("text", "subject", "attribute", "value", "language", "type", "recipe", "counter")


def masked(found: Iterable[Located | Skipped], masking: Masking, counter: TokenCounter) -> Iterator[Located | Skipped]:
    """Give lines with their secrets marked; in place of one that cannot be, why."""
    for one in found:
        if isinstance(one, Skipped) or not masking.kinds:
            yield one
            continue
        try:
            yield Located(one.where, one.size, _masked(one.line, masking, counter))
        except InvalidInput as error:
            yield Skipped(one.where, str(error))


def _masked(line: Line, masking: Masking, counter: TokenCounter) -> Line:
    masking.refuse(user=line.user, conversation=getattr(line, "conversation", None))
    if isinstance(line, ConversationLine):
        changes = [one.model_copy(update={"before": masking.json(one.before)}) for one in line.setting_changes]
        told = {name: masking.text(getattr(line, name)) for name in ("title", "channel")}
        return line.model_copy(update=told | {"settings": masking.json(line.settings), "setting_changes": changes})
    if isinstance(line, DocumentLine):
        for label in (*line.namespace, line.key):
            masking.refuse(name_of_a_document=label)
        value = masking.json(line.value)
        whole = value == line.value
        kept = [one for one in line.vectors if (whole or one.text is not None) and not _holds(one, masking)]
        return line.model_copy(update={"value": value, "vectors": kept})
    if isinstance(line, MessageLine):
        return _message(line, masking, counter)
    _refuse(_texts(line), masking)
    return line


def _holds(vector: DocumentVector, masking: Masking) -> bool:
    """Whether what a vector is of, or the path that it stands under, holds a secret."""
    found: Counter[str] = Counter()
    masking.json([vector.path, vector.text], found)
    return bool(found)


def _texts(line: Line) -> list[Any]:
    """Give what a line of derived rows has of texts, JSON among them, but for ids and times."""
    found: list[Any] = [getattr(line, name, None) for name in TEXTS]
    found += [(one.speaker, one.role) for one in getattr(line, "units", ())]
    if isinstance(line, FactLine):
        found.append({line.attribute or "": line.value})
        found += [(one.actor, one.before, one.after) for one in line.history]
    return found


def _refuse(texts: Sequence[Any], masking: Masking) -> None:
    found: Counter[str] = Counter()
    masking.json(texts, found)
    if found:
        raise InvalidInput(DERIVED)


def _message(line: MessageLine, masking: Masking, counter: TokenCounter) -> MessageLine:
    _refuse([line.counter, *((one.speaker, one.role) for one in line.units)], masking)
    row = line.row()
    if not masking.store(row):
        return line
    if line.units:
        raise InvalidInput(DERIVED)  # they are of its words
    counted([row], counter)
    same = ("name", "tool_calls", "tool_call_id", "tags", "tokens", "counter")
    said = {"content": row.text if row.parts is None else row.parts, "metadata": row.meta}
    return line.model_copy(update=said | {name: getattr(row, name) for name in same})
