"""Tombstones: erased messages and facts do not come back with the same export, import or message.

A tombstone is a hash of 16 bytes with the store's own key: of the id of a message or a fact, or of a message without
external id, of its text, user, conversation and time. Without the key it reveals nothing; with it, texts can only be
guessed one by one.
"""

from __future__ import annotations

import hmac
import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import UTC
from typing import Any, cast
from uuid import UUID

from memstore.models import Message
from memstore.store.database import Transaction
from memstore.store.sql import statements

SQL = statements("tombstones")
BYTES = 16
BUCKET_BITS = 12


async def key(tx: Transaction) -> bytes:
    """Return the store's key."""
    [key] = await tx.column(SQL["key"])
    return cast(bytes, key)


def of_item(key: bytes, item: UUID) -> bytes:
    """Return the tombstone of a message or of a fact, by its id."""
    return _digest(key, item.bytes)


def of_content(key: bytes, message: Message) -> bytes:
    """Return the tombstone of a message without an external id: by conversation, role, words and time."""
    said = [
        str(message.conversation_id),
        message.role,
        message.name,
        as_stored(message.content),
        as_stored(message.tool_calls),
        message.tool_call_id,
        message.occurred_at.astimezone(UTC).isoformat(),
    ]
    return _digest(key, json.dumps(said, sort_keys=True).encode())


def _digest(key: bytes, data: bytes) -> bytes:
    return hmac.digest(key, data, "sha256")[:BYTES]


def as_stored(value: Any) -> Any:
    """Return JSON as jsonb gives it back: it knows no tuples, keys are texts, and 1e23 may come back an integer."""
    if isinstance(value, Mapping):
        return {str(key): as_stored(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [as_stored(one) for one in value]
    return float(value) if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**1023 else value


async def add(tx: Transaction, erasure: UUID, digests: Collection[bytes]) -> int:
    """Keep the tombstones of an erasure; return how many."""
    buckets: defaultdict[int, bytearray] = defaultdict(bytearray)
    for digest in sorted(digests):
        buckets[_bucket(digest)] += digest
    rows = [{"bucket": bucket, "erasure_id": erasure, "digests": bytes(some)} for bucket, some in buckets.items()]
    await tx.run_many(SQL["add_tombstones"], rows)
    return len(digests)


def _bucket(digest: bytes) -> int:
    return int.from_bytes(digest[:2]) >> 16 - BUCKET_BITS


async def among(tx: Transaction, digests: Iterable[bytes]) -> set[bytes]:
    """Return those of these that are tombstones of the user's."""
    wanted = set(digests)
    buckets = sorted({_bucket(digest) for digest in wanted})
    packed = b"".join(await tx.column(SQL["tombstones"], buckets=buckets)) if buckets else b""
    return wanted & {packed[place : place + BYTES] for place in range(0, len(packed), BYTES)}


async def erased_messages(tx: Transaction, messages: Sequence[Message]) -> frozenset[UUID]:
    """Return the ids of those messages that were erased: as they are known by id, or by what they say and when.

    The id of one without an external id tells only where it was not made just now, as in an export of memstore's.
    """
    own = await _key_if_needed(tx) if messages else None
    if own is None:
        return frozenset()
    digests = [(of_item(own, one.id), one.id) for one in messages]
    digests += [(of_content(own, one), one.id) for one in messages if one.external_id is None]
    found = await among(tx, [digest for digest, _ in digests])
    return frozenset(id for digest, id in digests if digest in found)


async def erased_items(tx: Transaction, items: Iterable[UUID]) -> set[UUID]:
    """Return those of these messages or facts that were erased, by id."""
    own = await _key_if_needed(tx)
    if own is None:
        return set()
    digests = {of_item(own, item): item for item in items}
    return {digests[digest] for digest in await among(tx, digests)}


async def exist(tx: Transaction) -> bool:
    """Return whether anything of this user was erased."""
    return await _key_if_needed(tx) is not None


async def _key_if_needed(tx: Transaction) -> bytes | None:
    return await tx.value(SQL["key_if_needed"], bytes)
