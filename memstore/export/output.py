"""Where an export goes: a file that is there once it is whole, gzipped where its name says so, or a stream."""

from __future__ import annotations

import gzip
import json
import os
import re
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from typing import IO, Any, Protocol
from uuid import UUID

from memstore._compat import to_thread
from memstore.errors import InvalidInput
from memstore.export.shapes import FOOTER
from memstore.models import Json

AT_ONCE = 1024 * 1024  # bytes that are written at once
GZIP_LEVEL = 6
ENDS_OF_LINES = re.compile("[\x85\u2028\u2029]")  # to some readers of lines; JSON escapes the others itself
USUAL: Json = {
    "tags": [],
    "metadata": {},
    "settings": {},
    "setting_changes": [],
    "sources": [],
    "history": [],
    "units": [],
    "vectors": [],
}


class Writable(Protocol):
    """A stream that takes bytes."""

    def write(self, data: bytes, /) -> object:
        """Take them."""


Target = str | Path | Writable


@contextmanager
def opened(target: Target) -> Iterator[Writable]:
    """Open a path or take a stream; a file appears under its name, for its owner alone, when all of it is written."""
    if not isinstance(target, str | Path):
        yield target
        return
    path = Path(target)
    try:
        with _file(path) as raw:
            if path.suffix == ".gz":
                with gzip.GzipFile(filename="", fileobj=raw, mode="wb", compresslevel=GZIP_LEVEL) as packed:
                    yield packed
            else:
                yield raw
    except OSError as error:
        raise InvalidInput(f"{path} cannot be written: {error.strerror or error}") from error


@contextmanager
def _file(path: Path) -> Iterator[IO[bytes]]:
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


class Lines:
    """Writes objects as lines, counts them by kind, and knows the digest of all of them."""

    def __init__(self, out: Writable) -> None:
        self.counts: Counter[str] = Counter()
        self._out = out
        self._digest = sha256()
        self._held: list[bytes] = []
        self._size = 0

    async def put(self, line: Json) -> None:
        """Write a line; those before it may wait for others in memory, a megabyte of them."""
        data = encoded(line)
        self._digest.update(data)
        self.counts[line["kind"]] += 1
        self._held.append(data)
        self._size += len(data)
        if self._size >= AT_ONCE:
            await self.flush()

    async def flush(self) -> None:
        """Write what waits."""
        held, self._held, self._size = self._held, [], 0
        await to_thread(self._out.write, b"".join(held))

    async def end(self) -> None:
        """Write the last line, and what waits."""
        sums = {"lines": dict(self.counts), "sha256": self._digest.hexdigest()}
        self._held.append(encoded({"kind": FOOTER} | sums))
        await self.flush()


def encoded(line: Json) -> bytes:
    """Give an object as a line; what is None is left out, and so is what is empty as a rule."""
    some = {key: value for key, value in line.items() if value is not None and value != USUAL.get(key)}
    text = json.dumps(some, ensure_ascii=False, separators=(",", ":"), default=_plain)
    return ENDS_OF_LINES.sub(lambda found: f"\\u{ord(found[0]):04x}", text).encode() + b"\n"


def _plain(value: Any) -> str:
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, UUID):
        return str(value)
    raise TypeError(f"{type(value).__name__} has no place in an export")
