"""Counts that are remembered, so that what was counted once is not tokenized again; of the texts nothing is kept."""

from __future__ import annotations

import os
from collections.abc import Callable
from hashlib import blake2b

MOST_KEPT = 30_000  # counts, of 150 bytes each; as many older ones stay until there are so many again


class Remembered:
    """Counts texts by `count`, each once while it is remembered. Safe to share by threads.

    A context is mostly made of what the one before it was made of. What is kept is a keyed digest of each text, 128
    bits with a key of this object alone: no word of a user may stay in memory after it was erased.
    """

    def __init__(self, count: Callable[[str], int]) -> None:
        self._count = count
        self._keyed = blake2b(key=os.urandom(32), digest_size=16)  # copied for each text: a third sooner than made anew
        self._counts: dict[bytes, int] = {}
        self._older: dict[bytes, int] = {}

    def __call__(self, text: str) -> int:
        """Give the number of tokens of a text, tokenized only where that is not known."""
        hashed = self._keyed.copy()
        hashed.update(text.encode("utf-8", "surrogatepass"))
        digest = hashed.digest()
        known = self._counts.get(digest)
        return self._learn(digest, text) if known is None else known

    def _learn(self, digest: bytes, text: str) -> int:
        older = self._older.get(digest)
        known = self._count(text) if older is None else older
        if len(self._counts) >= MOST_KEPT:
            self._older, self._counts = self._counts, {}
        self._counts[digest] = known
        return known
