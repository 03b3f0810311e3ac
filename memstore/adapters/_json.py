"""JSON of frameworks as Postgres keeps it: as it is, or as text where a string has what its JSON cannot hold."""

from __future__ import annotations

import json
from typing import Any

from memstore.text import INVALID_CHARS


def is_storable(value: object) -> bool:
    """Whether no string of it has a NUL or half a surrogate pair."""
    text = json.dumps(value, ensure_ascii=False)
    return "\\u0000" not in text and not INVALID_CHARS.search(text)


def pack(value: Any) -> Any:
    return value if is_storable(value) else json.dumps(value)


def unpack(stored: Any) -> Any:
    return json.loads(stored) if isinstance(stored, str) else stored
