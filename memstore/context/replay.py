"""Packing of sent messages into a receipt when a context is made, and reading them again with their hash checked."""

from __future__ import annotations

import json
import zlib
from collections.abc import Sequence
from hashlib import sha256
from typing import Any

from memstore.errors import DatabaseError, NotFound
from memstore.formats.parts import RenderedPrompt
from memstore.models import Context, Json, Receipt, Replay


def content_hash(messages: Sequence[Json]) -> str:
    """Return the SHA-256 of the canonical JSON of what is sent: keys sorted, no blanks, UTF-8."""
    return sha256(_as_json([*messages], sort_keys=True)).hexdigest()


def pack(context: Context) -> bytes:
    """Return what a context sends as compressed JSON, its keys in their order."""
    return zlib.compress(_as_json([context.messages, context.system, context.text]))


def unpack(receipt: Receipt, packed: bytes | None) -> Replay:
    """Return what was sent with a receipt.

    Raises `NotFound` where an older memstore kept nothing of it, and `DatabaseError` where it is no longer the same.
    """
    if packed is None:
        raise NotFound(
            f"The receipt {receipt.id} has no replay: the memstore that made it did not keep what was sent. Receipts "
            "made since the upgrade to schema 0021 have one."
        )
    try:
        messages, system, text = json.loads(zlib.decompress(packed).decode("utf-8", "surrogatepass"))
        is_same = content_hash(RenderedPrompt(messages, system, text).sent) == receipt.content_hash
    except (zlib.error, ValueError, TypeError, RecursionError):
        is_same = False
    if not is_same:
        raise DatabaseError(
            f"The receipt {receipt.id} keeps other bytes than were sent, by their SHA-256. The row was changed or "
            "damaged; restore it from a backup."
        )
    return Replay(receipt, messages, system, text)


def _as_json(sent: list[Any], *, sort_keys: bool = False) -> bytes:
    text = json.dumps(sent, ensure_ascii=False, sort_keys=sort_keys, separators=(",", ":"))
    return text.encode("utf-8", "surrogatepass")
