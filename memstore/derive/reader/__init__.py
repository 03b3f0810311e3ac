"""Reads messages without a chat model: which of their words are worth keeping, what they say, and what they change.

The model is loaded with the first text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from memstore.derive.reader.notes import Note, Pair, ReaderInput
from memstore.providers import Vectors


def read_notes(turns: Sequence[ReaderInput]) -> list[list[Note]]:
    """Return the notes of messages, also those that are hardly believed."""
    if not turns:
        return []
    from memstore.derive.reader.model import load

    return load().read(turns)


def read_relations(pairs: Sequence[Pair]) -> Sequence[Mapping[str, float]]:
    """Return for each pair how probable each relation is of the later statement to the earlier one."""
    if not pairs:
        return []
    from memstore.derive.reader.model import load

    return load().relations(pairs)


def read_prompt(text: str) -> Vectors:
    from memstore.derive.reader.model import load

    return load().prompt_vector(text)
