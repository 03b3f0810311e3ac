"""Ids are made by the client, so that nothing must be looked up and a second import meets itself.

Every id but a fresh message's follows from names: `uuid5(MEMSTORE, "alice")` is the same uuid on every machine.
"""

from __future__ import annotations

import hashlib
import os
import re
import threading
import time
import uuid
from collections.abc import Sequence
from uuid import UUID

SHORTEST = 4  # digits of the beginning of an id
_BEGINNING = re.compile(rf"(?:-*[0-9a-fA-F]){{{SHORTEST},32}}-*")
_VERSION_AND_VARIANT = 0xF << 76 | 0b11 << 62
MEMSTORE = uuid.uuid5(uuid.NAMESPACE_URL, "https://memstore.invalid/")


def user_id(name: str) -> UUID:
    """Give the id of the user of this name."""
    return uuid.uuid5(MEMSTORE, name)


def conversation_id(user: UUID, name: str) -> UUID:
    """Give the id of a user's conversation of this name."""
    return uuid.uuid5(user, f"conversation/{name}")


def message_id(conversation: UUID, external_id: str | None) -> UUID:
    """Give the id of a message: by its external id where it has one, else a fresh one that sorts by time."""
    return uuid7() if external_id is None else _uuid5(conversation, f"message/{external_id}")


def _uuid5(namespace: UUID, name: str) -> UUID:
    """Give what `uuid.uuid5` gives, in half of its time: a history that comes in has an id for each message."""
    digest = hashlib.sha1(namespace.bytes + name.encode(), usedforsecurity=False).digest()
    value = int.from_bytes(digest[:16], "big")
    return UUID(int=value & ~_VERSION_AND_VARIANT | 5 << 76 | 0b10 << 62)


def summary_id(conversation: UUID, level: int, from_seq: int, to_seq: int, recipe: str) -> UUID:
    """Give the id of the summary of this range by this recipe: there is only ever one."""
    return uuid.uuid5(conversation, f"summary/{level}/{from_seq}-{to_seq}/{recipe}")


def fact_id(user: UUID, subject: str, text: str) -> UUID:
    """Give the id of a fact: the same statement about the same subject is the same fact."""
    return uuid.uuid5(user, f"fact/{subject.casefold()}\0{' '.join(text.casefold().split())}")


def change_id(fact: UUID, number: int) -> UUID:
    """Give the id of a change of a fact, which was changed so often before."""
    return uuid.uuid5(fact, f"change/{number}")


def letter_id(conversation: UUID, deriver: str, from_seq: int, to_seq: int, recipe: str) -> UUID:
    """Give the id of a dead letter: the same stretch by the same recipe is one letter, however often it fails."""
    return uuid.uuid5(conversation, f"letter/{deriver}/{from_seq}-{to_seq}/{recipe}")


def document_id(user: UUID, namespace: Sequence[str], key: str) -> UUID:
    """Give the id of the document of this key; no label holds a NUL."""
    return uuid.uuid5(user, "document/" + "\0".join((*namespace, key)))


def model_id(name: str, dimensions: int) -> UUID:
    """Give the id under which an embedder's vectors are kept."""
    return uuid.uuid5(MEMSTORE, f"model/{name}/{dimensions}")


def is_beginning(text: str) -> bool:
    """Whether a text is an id, or so much of one that it can be looked for."""
    return _BEGINNING.fullmatch(text) is not None


def beginning_with(digits: str) -> tuple[UUID, UUID]:
    """Give the least and the greatest id that begin with these hexadecimal digits; dashes do not count.

    >>> beginning_with("3F2a-")
    (UUID('3f2a0000-0000-0000-0000-000000000000'), UUID('3f2affff-ffff-ffff-ffff-ffffffffffff'))
    """
    known = digits.replace("-", "")
    return UUID(known.ljust(32, "0")), UUID(known.ljust(32, "f"))


_LOCK = threading.Lock()
_latest = 0  # 48 bits of milliseconds, 74 of chance


def uuid7() -> UUID:
    """Give a UUID that begins with the milliseconds since 1970 (RFC 9562, version 7), after this process's last."""
    global _latest
    chance = int.from_bytes(os.urandom(10))
    with _LOCK:
        now = time.time_ns() // 1_000_000
        later = now << 74 | chance >> 6
        # By a step of chance, so that a fork's ids differ from its parent's.
        _latest = later if now > _latest >> 74 else _latest + 1 + (chance & 0xFFFFFFFF)
        value = _latest
    milliseconds, chance = value >> 74, value & (1 << 74) - 1
    return UUID(int=milliseconds << 80 | 7 << 76 | (chance >> 62) << 64 | 0b10 << 62 | chance & (1 << 62) - 1)
