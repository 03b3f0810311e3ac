"""Write an export: each user as of one moment, an object a line, in memory that does not grow with it.

Not in it are what this installation did (events, receipts, jobs, invalid responses, costs of models) and how it is set.
"""

from __future__ import annotations

import gzip
import json
import os
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import aclosing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import IO, Any
from uuid import UUID

import numpy as np

from memstore import ids
from memstore._compat import to_thread
from memstore._version import __version__
from memstore.errors import InvalidInput
from memstore.export import schema
from memstore.export.schema import ConversationLine, FactLine, MessageLine, SummaryLine, encode_vector
from memstore.models import ExportReport, Json
from memstore.store import archive
from memstore.store.database import Database, Transaction
from memstore.store.rows import ConversationRow, ItemRow
from memstore.text import escape_controls

BUFFER_BYTES = 1024 * 1024

Target = str | Path | IO[bytes]


async def write_export(
    database: Database,
    target: Target,
    users: AsyncIterator[str] | Sequence[str],
    *,
    derived: bool = True,
    progress: Callable[[str, int, int], None] = lambda *_: None,
) -> ExportReport:
    """Write the memory of users to a file or stream; return how much was written.

    Without `derived` nothing is written that was made of messages. `progress(user, done, total)` is called with
    messages. Raises `InvalidInput` for a user whom nobody knows, and for a path that cannot be written: of a file
    nothing is left then.
    """
    with _open_target(target) as out:
        lines = _LineWriter(out)
        header = {"format": schema.FORMAT, "version": schema.FORMAT_VERSION, "memstore": __version__}
        header |= {"exported_at": datetime.now(UTC), "derived": derived, "vectors": derived}
        await lines.write("export", header)
        export = _UserExport(lines, derived, progress)
        if isinstance(users, Sequence):
            for name in users:
                await export.write(database, name)
        else:
            async for name in users:
                await export.write(database, name)
        counts = dict(lines.counts)
        await lines.write("end", {"lines": counts, "sha256": lines.digest.hexdigest()})
        await lines.flush()
    kinds = ("user", "conversation", "message", "summary", "fact", "document")
    return ExportReport(*(counts.get(kind, 0) for kind in kinds))


@dataclass(slots=True)
class _UserExport:
    lines: _LineWriter
    derived: bool
    progress: Callable[[str, int, int], None]
    name: str = ""
    done: int = 0

    async def write(self, database: Database, name: str) -> None:
        self.name, self.done = name, 0
        user = ids.user_id(name)
        async with database.user_transaction(user, frozen=True) as tx:
            owner = await archive.owner(tx)
            if owner is None:
                raise InvalidInput(f"There is no user {name!r}: nothing was exported.")
            has_vectors = self.derived and owner.embedder is not None
            embedder = {"name": owner.embedder, "dimensions": owner.dimensions} if has_vectors else None
            line = {"user": name, "id": user, "settings": owner.settings}
            await self.lines.write("user", line | {"created_at": owner.created_at, "embedder": embedder})
            wanted = {"with_chunks": self.derived, "model_id": owner.model_id}
            async for row in archive.read_conversations(tx):
                await self._conversation(tx, row, wanted, owner.messages)
            await self._facts(tx, wanted)
            await self._documents(tx)

    async def _conversation(self, tx: Transaction, row: ConversationRow, wanted: Json, total: int) -> None:
        place: Json = {"user": self.name, "conversation": row.conversation.name}
        wanted = wanted | {"conversation_id": row.conversation.id}
        marks = {name: {"seq": seq, "recipe": recipe} for name, (seq, recipe) in row.watermarks.items()}
        line = place | _columns(row.conversation, ConversationLine) | row.lists
        await self.lines.write("conversation", line | {"watermarks": marks if self.derived else None})
        if self.derived:
            async with aclosing(archive.read_items(tx, "summaries", **wanted)) as summaries:
                async for item in summaries:
                    await self.lines.write("summary", place | _columns(item.row, SummaryLine) | _lists(item))
        async with aclosing(archive.read_items(tx, "messages", **wanted)) as messages:
            async for item in messages:
                message: Any = item.row
                line = place | _columns(message, MessageLine) | {"content": message.content, "metadata": message.meta}
                await self.lines.write("message", line | _lists(item))
                self.done += 1
                if self.done % 1000 == 0:
                    self.progress(self.name, self.done, max(total, self.done))
        self.progress(self.name, self.done, max(total, self.done))

    async def _facts(self, tx: Transaction, wanted: Json) -> None:
        # Facts entered by people are made of no message; their vectors are.
        mine = {"with_chunks": True, "model_id": wanted["model_id"] if self.derived else None}
        async with aclosing(archive.read_items(tx, "facts", **mine, by_hand=not self.derived)) as facts:
            async for item in facts:
                fact: Any = item.row
                # A column of 32 bits: the shortest number that is the same there.
                values = {"fact_kind": fact.kind, "confidence": float(str(np.float32(fact.confidence)))}
                await self.lines.write("fact", {"user": self.name} | _columns(fact, FactLine) | values | _lists(item))

    async def _documents(self, tx: Transaction) -> None:
        async with aclosing(archive.read_documents(tx)) as documents:
            async for row in documents:
                ttl = None if row["ttl"] is None else row["ttl"].total_seconds()
                vectors = []
                for path, model_id, components, text in row["vectors"] or ():
                    vector = encode_vector(np.array(components.strip("[]").split(","), np.float32))
                    vectors.append({"path": path, "model_id": model_id, "vector": vector, "text": text})
                await self.lines.write("document", {"user": self.name} | row | {"ttl": ttl, "vectors": vectors})


def _columns(row: Any, line: type[Any]) -> Json:
    held = vars(row)
    return {key: held[key] for key in line.model_fields if key in held and key != "kind"}


def _lists(item: ItemRow) -> Json:
    lines = [
        chunk | {"vector": None if chunk["vector"] is None else encode_vector(chunk["vector"])} for chunk in item.chunks
    ]
    return item.lists | {
        "chunks": [{name: value for name, value in line.items() if value is not None} for line in lines]
    }


@contextmanager
def _open_target(target: Target) -> Iterator[Any]:
    """Open a path or take a stream; a file appears, for its owner alone, when all of it is written."""
    if not isinstance(target, str | Path):
        yield target
        return
    path = Path(target)
    try:
        with _open_file(path) as raw:
            if path.suffix == ".gz":
                with gzip.GzipFile(filename="", fileobj=raw, mode="wb", compresslevel=6) as packed:
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
    def __init__(self, out: IO[bytes]) -> None:
        self.counts: Counter[str] = Counter()
        self.digest = sha256()
        self._out = out
        self._buffer = bytearray()

    async def write(self, kind: str, line: Json) -> None:
        """Write a line without what is None, and without empty lists and objects that say nothing."""
        content = {
            key: value
            for key, value in line.items()
            if value is not None and (value not in ([], {}) or key in ("content", "value", "lines"))
        }
        text = json.dumps({"kind": kind} | content, ensure_ascii=False, separators=(",", ":"), default=_to_text)
        data = escape_controls(text).encode() + b"\n"
        self.digest.update(data)
        self.counts[kind] += 1
        self._buffer += data
        if len(self._buffer) >= BUFFER_BYTES:
            await self.flush()

    async def flush(self) -> None:
        data, self._buffer = bytes(self._buffer), bytearray()
        await to_thread(self._out.write, data)


def _to_text(value: datetime | UUID) -> str:
    return value.isoformat() if isinstance(value, datetime) else str(value)
