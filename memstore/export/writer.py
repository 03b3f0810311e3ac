"""Write an export: each user as of one moment, an object a line, in memory that does not grow with it.

Not in it are what this installation did (events, receipts, jobs, dead letters, what models cost) and how it is set.
"""

from __future__ import annotations

import gzip
import json
import os
import re
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import aclosing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import IO, Any, Protocol
from uuid import UUID

import numpy as np

from memstore import ids
from memstore._compat import to_thread
from memstore.errors import InvalidInput
from memstore.export.schema import (
    FOOTER,
    FORMAT,
    HEADER,
    VERSION,
    ConversationLine,
    FactLine,
    MessageLine,
    SummaryLine,
    default_unit,
    encode_vector,
)
from memstore.models import ExportReport, Json
from memstore.store import archive
from memstore.store.database import Database, Transaction
from memstore.store.rows import ChunkRow, ConversationRow, ItemRow, Owner, Row

COUNTED = {
    "user": "users",
    "conversation": "conversations",
    "message": "messages",
    "summary": "summaries",
    "fact": "facts",
    "document": "documents",
}
MESSAGES_PER_PROGRESS = 1000
BUFFER_BYTES = 1024 * 1024
GZIP_LEVEL = 6
LINE_SEPARATORS = re.compile("[\x85\u2028\u2029]")  # to some readers of lines; JSON escapes the others itself
# The keys of lines that are the columns of rows; what both call by another name is added beside them.
MESSAGE, SUMMARY, FACT, CONVERSATION = (
    tuple(schema.model_fields) for schema in (MessageLine, SummaryLine, FactLine, ConversationLine)
)
UNIT = ("conversation_id", "seq", "role", "speaker", "occurred_at")  # where they are not as the item has them
LEFT_OUT_IF_EMPTY = ("tags", "metadata", "settings", "setting_changes", "sources", "history", "units", "vectors")


class Writable(Protocol):
    """A stream that takes bytes."""

    def write(self, data: bytes, /) -> object:
        """Take them."""


Target = str | Path | Writable


async def write_export(
    database: Database,
    target: Target,
    users: AsyncIterator[str] | Sequence[str],
    *,
    conversation: str | None = None,
    derived: bool = True,
    vectors: bool = True,
    progress: Callable[[str, int, int], None] = lambda *_: None,
) -> ExportReport:
    """Write the memory of users to a file or stream; return how much was written.

    `conversation` is the only one that is written; without `derived` nothing is that was made of messages, without
    `vectors` none are. `progress(user, done, total)` is called with messages. Raises `InvalidInput` for a user or a
    conversation that nobody knows, and for a path that cannot be written: of a file nothing is left then.
    """
    with _open_target(target) as out:
        lines = _LineWriter(out)
        await lines.write(
            {
                "kind": HEADER,
                "format": FORMAT,
                "version": VERSION,
                "memstore": version("memstore"),
                "exported_at": datetime.now(UTC),
                "derived": derived,
                "vectors": derived and vectors,
            }
        )
        export = _UserExport(lines, conversation, derived, vectors, progress)
        if isinstance(users, Sequence):
            for name in users:
                await export.write(database, name)
        else:
            async for name in users:
                await export.write(database, name)
        await lines.end()
    return ExportReport(**{name: lines.counts[kind] for kind, name in COUNTED.items()})


@dataclass(slots=True)
class _UserExport:
    """Writes one user after the other."""

    lines: _LineWriter
    conversation: str | None
    derived: bool
    vectors: bool
    progress: Callable[[str, int, int], None]
    name: str = ""
    done: int = 0

    async def write(self, database: Database, name: str) -> None:
        self.name, self.done = name, 0
        user = ids.user_id(name)
        only = None if self.conversation is None else ids.conversation_id(user, self.conversation)
        async with database.user_transaction(user) as scope:
            await archive.freeze(scope)
            owner = await archive.owner(scope)
            if owner is None:
                raise InvalidInput(f"There is no user {self.name!r}: nothing was exported.")
            await self.lines.write(self._user(owner))
            wanted = {"with_units": self.derived, "model_id": owner.model_id if self.vectors else None}
            found = False
            async for told in archive.read_conversations(scope, only):
                found = True
                await self._conversation(scope, told, wanted, owner.messages)
            if only is not None and not found:
                raise InvalidInput(f"{self.name!r} has no conversation {self.conversation!r}: nothing was exported.")
            await self._facts(scope, wanted, only)
            if only is None:
                await self._documents(scope)

    async def _conversation(self, scope: Transaction, told: ConversationRow, wanted: Json, total: int) -> None:
        place: Json = {"user": self.name, "conversation": told.conversation.name}
        marks = {name: {"seq": seq, "recipe": recipe} for name, (seq, recipe) in told.watermarks.items()}
        row = _columns(told.conversation, CONVERSATION)
        line = {"kind": "conversation"} | place | row | {"setting_changes": told.setting_changes}
        await self.lines.write(line | {"watermarks": marks if self.derived else None})
        if self.derived:
            async with aclosing(archive.read_summaries(scope, told.conversation.id, wanted)) as summaries:
                async for one in summaries:
                    await self.lines.write({"kind": "summary"} | place | _item(one, SUMMARY))
        async with aclosing(archive.read_messages(scope, told.conversation.id, wanted)) as messages:
            async for one in messages:
                await self.lines.write({"kind": "message"} | place | _item(one, MESSAGE))
                self.done += 1
                if self.done % MESSAGES_PER_PROGRESS == 0:
                    self.progress(self.name, self.done, max(total, self.done))
        self.progress(self.name, self.done, max(total, self.done))

    async def _facts(self, scope: Transaction, wanted: Json, only: UUID | None) -> None:
        # What people entered is made of no message; its vector is.
        mine = {"with_units": True, "model_id": wanted["model_id"] if self.derived else None}
        by_hand = not self.derived
        async with aclosing(archive.read_facts(scope, mine, only=only, by_hand=by_hand)) as facts:
            async for one in facts:
                await self.lines.write({"kind": "fact", "user": self.name} | _item(one, FACT))

    async def _documents(self, scope: Transaction) -> None:
        async with aclosing(archive.read_documents(scope, vectors=self.vectors)) as documents:
            async for row in documents:
                ttl = None if row["ttl"] is None else row["ttl"].total_seconds()
                vectors = [_document_vector(*one) for one in row["vectors"] or ()]
                await self.lines.write({"kind": "document", "user": self.name} | row | {"ttl": ttl, "vectors": vectors})

    def _user(self, owner: Owner) -> Json:
        with_vectors = self.derived and self.vectors and owner.embedder is not None
        embedder = {"name": owner.embedder, "dimensions": owner.dimensions} if with_vectors else None
        return {
            "kind": "user",
            "user": self.name,
            "id": ids.user_id(self.name),
            "settings": owner.settings,
            "created_at": owner.created_at,
            "embedder": embedder,
        }


def _item(one: ItemRow, keys: Sequence[str]) -> Json:
    row: Any = one.row
    line = _columns(row, keys)
    if "content" in keys:
        line |= {"content": row.content, "metadata": row.meta}
    if "fact_kind" in keys:
        # A column of 32 bits: the shortest number that is the same there.
        line |= {"fact_kind": row.kind, "confidence": float(str(np.float32(row.confidence)))}
        line |= {"sources": one.sources, "history": one.history}
    return line | {"units": [_unit(row, kept) for kept in one.units]}


def _unit(row: Row, kept: ChunkRow) -> Json:
    unit = kept.unit
    default = default_unit(row, unit.chunk, unit.start, unit.stop)
    line: Json = {"start": unit.start, "stop": unit.stop, "recorded_at": kept.recorded_at}
    line |= {name: getattr(unit, name) for name in UNIT if getattr(unit, name) != getattr(default, name)}
    return line if kept.vector is None else line | {"vector": encode_vector(kept.vector)}


def _document_vector(path: str, model_id: str, components: str, text: str | None) -> Json:
    vector = np.array(components.strip("[]").split(","), np.float32)
    return {"path": path, "model_id": model_id, "vector": encode_vector(vector), "text": text}


def _columns(row: Any, keys: Sequence[str]) -> Json:
    held = vars(row)
    return {key: held[key] for key in keys if key in held and key not in ("user", "conversation", "kind")}


@contextmanager
def _open_target(target: Target) -> Iterator[Writable]:
    """Open a path or take a stream; a file appears, for its owner alone, when all of it is written."""
    if not isinstance(target, str | Path):
        yield target
        return
    path = Path(target)
    try:
        with _open_file(path) as raw:
            if path.suffix == ".gz":
                with gzip.GzipFile(filename="", fileobj=raw, mode="wb", compresslevel=GZIP_LEVEL) as packed:
                    yield packed
            else:
                yield raw
    except OSError as error:
        raise InvalidInput(f"{path} cannot be written: {error.strerror or error}") from error


@contextmanager
def _open_file(path: Path) -> Iterator[IO[bytes]]:
    if path.exists() and not path.is_file():  # a pipe, a device; a folder refuses
        with path.open("wb") as raw:
            yield raw
        return
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as raw:
            yield raw
            raw.flush()
            os.fsync(raw.fileno())
        Path(name).replace(path)
    finally:
        Path(name).unlink(missing_ok=True)


class _LineWriter:
    """Writes objects as lines, counts them by kind, and computes the digest of all of them."""

    def __init__(self, out: Writable) -> None:
        self.counts: Counter[str] = Counter()
        self._out = out
        self._digest = sha256()
        self._buffer = bytearray()

    async def write(self, line: Json) -> None:
        data = encode_line(line)
        self._digest.update(data)
        self.counts[line["kind"]] += 1
        self._buffer += data
        if len(self._buffer) >= BUFFER_BYTES:
            await self.flush()

    async def flush(self) -> None:
        data, self._buffer = bytes(self._buffer), bytearray()
        await to_thread(self._out.write, data)

    async def end(self) -> None:
        """Write the last line, which has the sums of all, and what waits."""
        sums = {"lines": dict(self.counts), "sha256": self._digest.hexdigest()}
        self._buffer += encode_line({"kind": FOOTER} | sums)
        await self.flush()


def encode_line(line: Json) -> bytes:
    """Return an object as a line, without what is None, and without what is empty as a rule."""
    some = {
        key: value
        for key, value in line.items()
        if value is not None and (key not in LEFT_OUT_IF_EMPTY or value not in ([], {}))
    }
    text = json.dumps(some, ensure_ascii=False, separators=(",", ":"), default=_to_text)
    return LINE_SEPARATORS.sub(lambda found: f"\\u{ord(found[0]):04x}", text).encode() + b"\n"


def _to_text(value: Any) -> str:
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, UUID):
        return str(value)
    raise TypeError(f"{type(value).__name__} has no place in an export")
