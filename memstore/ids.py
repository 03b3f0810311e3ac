"""Ids, made by the client: nothing must be looked up, and a second import finds what the first one stored.

Every id but a new message's follows from names: `uuid5(MEMSTORE, "alice")` is the same UUID on every machine.
"""

from __future__ import annotations

import os
import threading
import time
import uuid
from collections.abc import Sequence
from uuid import UUID

MEMSTORE = uuid.uuid5(uuid.NAMESPACE_URL, "https://memstore.invalid/")
# The name of a space as an owner of memory, as users are. Ids of spaces are UUIDs of version 8 and sort behind others.
SPACE_PREFIX = "space:"
FIRST_SPACE_ID = UUID("ffffffff-ffff-8000-8000-000000000000")


def user_id(name: str) -> UUID:
    """Return the id of the user of this name, or of the space, whose name begins with "space:"."""
    id = uuid.uuid5(MEMSTORE, name)
    if not name.startswith(SPACE_PREFIX):
        return id
    return UUID(int=FIRST_SPACE_ID.int | id.int & (0xFFF << 64 | (1 << 62) - 1))


def is_space(owner: UUID) -> bool:
    """Return whether an owner's id is that of a space."""
    return owner >= FIRST_SPACE_ID


def conversation_id(user: UUID, name: str) -> UUID:
    """Return the id of a user's conversation of this name."""
    return uuid.uuid5(user, f"conversation/{name}")


def message_id(conversation: UUID, external_id: str | None) -> UUID:
    """Return the id of a message: by its external id if it has one, else a new one that sorts by time."""
    return uuid7() if external_id is None else uuid.uuid5(conversation, f"message/{external_id}")


def summary_id(conversation: UUID, level: int, from_seq: int, to_seq: int, recipe: str) -> UUID:
    """Return the id of the only summary of this range by this recipe."""
    return uuid.uuid5(conversation, f"summary/{level}/{from_seq}-{to_seq}/{recipe}")


def fact_id(user: UUID, subject: str, text: str) -> UUID:
    """Return the id of a fact: the same statement about the same subject is the same fact."""
    return uuid.uuid5(user, f"fact/{subject.casefold()}\0{' '.join(text.casefold().split())}")


def change_id(fact: UUID, number: int) -> UUID:
    """Return the id of the change of a fact with this number."""
    return uuid.uuid5(fact, f"change/{number}")


def invalid_response_id(conversation: UUID, deriver: str, from_seq: int, to_seq: int, recipe: str) -> UUID:
    """Return the id of an invalid response: the same messages by the same recipe are one, however often it fails."""
    return uuid.uuid5(conversation, f"invalid-response/{deriver}/{from_seq}-{to_seq}/{recipe}")


def document_id(user: UUID, namespace: Sequence[str], key: str) -> UUID:
    """Return the id of the document of this key; no label holds a NUL."""
    return uuid.uuid5(user, "document/" + "\0".join((*namespace, key)))


def model_id(name: str, dimensions: int) -> UUID:
    """Return the id under which an embedder's vectors are stored."""
    return uuid.uuid5(MEMSTORE, f"model/{name}/{dimensions}")


_LOCK = threading.Lock()
# 48 bits of milliseconds, 74 random ones.
_latest = 0


def uuid7() -> UUID:
    """Return a UUID that begins with the milliseconds since 1970 (RFC 9562, version 7), greater than the last one."""
    global _latest
    chance = int.from_bytes(os.urandom(10))
    with _LOCK:
        now = time.time_ns() // 1_000_000
        later = now << 74 | chance >> 6
        # A random step, so that a fork's ids differ from its parent's.
        _latest = later if now > _latest >> 74 else _latest + 1 + (chance & 0xFFFFFFFF)
        value = _latest
    milliseconds, chance = value >> 74, value & (1 << 74) - 1
    return UUID(int=milliseconds << 80 | 7 << 76 | (chance >> 62) << 64 | 0b10 << 62 | chance & (1 << 62) - 1)
