"""Reads messages without a chat model: which of their words are worth keeping, and what they say.

The model is loaded with the first text.
"""

from __future__ import annotations

from collections.abc import Sequence

from memstore.derive.reader.notes import Note, ReaderInput


def read_notes(turns: Sequence[ReaderInput]) -> list[list[Note]]:
    """Return the notes of messages, also those that are hardly believed."""
    if not turns:
        return []
    from memstore.derive.reader.model import load

    return load().read(turns)
